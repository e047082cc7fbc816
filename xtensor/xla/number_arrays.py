"""Python numbers as arrays that stay on the device."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .cache import BoundedCache, bounded
from .levels import tracing
from .pending import Pending
from .symbolic import Inconclusive
from .x64 import call, jit

__all__ = ["NUMBER_ARRAYS", "NumberArrays", "as_operand", "beside", "operand", "size_as"]

_as_weak = jit(lambda value: value)


class NumberArrays(BoundedCache[tuple[type, Any], Any]):
    """Python numbers as weakly typed arrays, kept since converting one anew costs 1 us per call.

    Only where the CPU is JAX's default: elsewhere such an array would have to travel to a CPU tensor's device. What is
    refused here goes the complete way, which has the errors for ints of more than 64 bits too.
    """

    __slots__ = ()

    def __missing__(self, key: tuple[type, Any]) -> Any:
        kind, value = key
        if kind is bool or kind is complex or jax.default_backend() != "cpu":
            raise LookupError
        if kind is int and not -(2**63) <= value < 2**63:
            raise LookupError
        if kind is float and value == 0:  # 0.0 and -0.0 are one key
            key = kind, repr(value)
            kept = self.get(key)
            if kept is not None:
                return kept
        if tracing.recorder is None:
            array = call(_as_weak, value)
        else:  # who records what programs come to reads numbers out of their operands
            with jax.ensure_compile_time_eval():
                array = call(_as_weak, value)
        if isinstance(array, Tracer):  # what is made while JAX traces belongs to that trace
            return array
        self[key] = array
        return array


NUMBER_ARRAYS = NumberArrays(4096)


def as_operand(value: Any) -> Any:
    """What a program is given for a value: a kept array for a Python number, so that one signature serves all."""
    if type(value) is not int and type(value) is not float:
        return value
    try:
        return NUMBER_ARRAYS[type(value), value]
    except LookupError:
        return value


_placed: BoundedCache[tuple[type, Any, Any], Any] = BoundedCache(4096)


@bounded(1)
def _at_home() -> bool:
    """Whether the CPU is JAX's default."""
    return jax.default_backend() == "cpu"


def beside(args: list[Any], near: Any = None) -> list[Any]:
    """Arguments of a program with their Python numbers as kept arrays on the device of the others, or of `near`, where the CPU is
    not JAX's default: a number of the host's would travel there at every call, in 60 us to a GPU.
    """
    if _at_home() or not any(type(a) in (int, float) for a in args):
        return args
    arrays = (a for a in (*args, near) if isinstance(a, (jax.Array, Pending)) and not isinstance(a, Tracer))
    array = next(arrays, None)
    if array is None or len(array.devices()) != 1 or tracing.recorder is not None:
        return args
    (device,) = array.devices()
    return [_number_on(a, device) if type(a) in (int, float) else a for a in args]


def _number_on(value: Any, device: Any) -> Any:
    key = type(value), value, device
    found = _placed.get(key)
    if found is None:
        if type(value) is int and not -(2**63) <= value < 2**63:
            return value
        with jax.default_device(device):
            found = call(_as_weak, value)
        if not (
            isinstance(found, Tracer) or (type(value) is float and value == 0)
        ):  # 0.0 and -0.0 are one key
            _placed[key] = found
    return found


def operand(value: Any, near: Any) -> Any:
    """A number for a program whose other operand is `near`: as a kept array where that is cheaper."""
    try:
        return NUMBER_ARRAYS[float if type(value) is float else int, value]
    except LookupError:
        return beside([value], near)[0]
    except Inconclusive:  # an open size
        return size_as(value, np.int64)


def size_as(count: Any, dtype: Any) -> Any:
    """A size as a number of a dtype: NumPy's, or an array where a kernel is traced with symbolic sizes."""
    if isinstance(count, (int, float)):
        return np.asarray(count, dtype)
    return jnp.asarray(count).astype(dtype)
