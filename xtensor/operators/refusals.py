"""Values that PyTorch refuses on a CPU: integer divisors of zero, probabilities outside [0, 1], negative variances.

A program cannot raise, so what it was given is looked at from the host, once it has been started (in-place: before). Python
numbers are free. Of a tensor on a CPU one small program answers; arrays are immutable, so what was found of one stays
true while it lives. On an accelerator nothing is asked, as PyTorch does not: the host would wait for the device.
"""

from __future__ import annotations

import weakref
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ..storage import MetaArray
from ..tensor import Tensor, array_of
from ..xla.cache import BoundedCache
from ..xla.levels import ground
from ..xla.x64 import call, jit
from .index_bounds import later, on_cpu

__all__ = [
    "all_finite",
    "passes",
    "refuse_negative_variance",
    "refuse_no_probabilities",
    "refuse_zero_divisors",
]

NUMBER_KINDS = {bool: "b", int: "i", float: "f", complex: "c"}

# Arrays that pass a test.
_passed: BoundedCache[tuple[Any, int], weakref.ref[Any]] = BoundedCache(4096)


@jit
def no_zeros(array: Any) -> Any:
    return jnp.all(array != 0)


@jit
def all_finite(array: Any) -> Any:
    """Whether no value is infinite or NaN."""
    return jnp.all(jnp.isfinite(array))


@jit
def all_probabilities(array: Any) -> Any:
    return jnp.all((array >= 0) & (array <= 1))


@jit
def none_negative(array: Any) -> Any:
    return ~jnp.any(array < 0)


def passes(test: Any, array: Any) -> bool:
    """Whether the values of an array pass a test; those that are nowhere or not on a CPU do."""
    found = _passed.get((test, id(array)))
    if found is not None and found() is array:
        return True
    array = ground(array)
    if array.size == 0 or type(array) is MetaArray:
        return True
    if isinstance(array, Tracer):
        later(array, lambda values: passes(test, values))
        return True
    if not on_cpu(array):
        return True
    flag = call(test, array)
    if isinstance(flag, Tracer):  # a constant within a trace
        with jax.ensure_compile_time_eval():
            flag = call(test, array)
    if not flag:
        return False
    _passed[test, id(array)] = weakref.ref(array)
    return True


def kind_of(value: Any) -> str:
    """NumPy's letter for the dtype of an operand: i, u, b, or another."""
    if isinstance(value, Tensor):
        view = value._xt_view
        return (value._xt_storage.raw.dtype if view is None else view.dtype.numpy).kind
    return NUMBER_KINDS.get(type(value), "f")


def narrowed(input: Any, other: Tensor) -> bool:
    """Whether a 0-d divisor is cast to a smaller type, in which it may be zero."""
    if other.ndim or not isinstance(input, Tensor) or not input.ndim:
        return False
    return other.dtype.itemsize > input.dtype.itemsize


def refuse_zero_divisors(input: Any, other: Any) -> None:
    """RuntimeError for a division of integers by zero on a CPU, if there is anything to divide."""
    if type(other) is int and 0 < other < 256:
        return
    by = kind_of(other)
    if by not in "iub":
        return
    of = kind_of(input)
    if of not in "iub" or by == of == "b":
        return
    if not isinstance(other, Tensor):
        # The divisor takes the tensor's dtype: 256 is a zero of 8 bits.
        tensor = isinstance(input, Tensor)
        bits = 8 * input.dtype.itemsize if tensor and of != "b" else 64
        zero = int(other) % 2**bits == 0 and (not tensor or input.device.type == "cpu")
    elif of != "b" and narrowed(input, other):
        zero = not passes(no_zeros, array_of(other.to(input.dtype)))
    else:
        zero = not passes(no_zeros, array_of(other))
    if zero and not (isinstance(input, Tensor) and input.numel() == 0):
        raise RuntimeError("ZeroDivisionError")


refuse_zero_divisors.of_integers_alone = True  # pyright: ignore[reportFunctionMemberAccess]


def refuse_no_probabilities(input: Tensor, target: Tensor, *rest: Any) -> None:
    """RuntimeError where values or targets on a CPU lie outside [0, 1], or are NaN."""
    for name, tensor in (("input", input), ("target", target)):
        if not passes(all_probabilities, array_of(tensor)):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")


def refuse_negative_variance(input: Tensor, target: Tensor, var: Tensor, *rest: Any) -> None:
    """ValueError where a variance on a CPU is negative."""
    if not passes(none_negative, array_of(var)):
        raise ValueError("var has negative entry/entries")
