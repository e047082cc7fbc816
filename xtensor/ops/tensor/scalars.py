"""A tensor as a Python number, truth, list or iterator."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from ... import checks
from ...engine import modes
from ...host.elements import elements
from ...host.numbers import BOOL, HostNumber, held, known_number
from ...operators.attach import attach_methods
from ...operators.functions.overloads import of_tensors
from ...storage import HostValues, MetaArray, WrapperArray
from ...tensor import ARRAY, Tensor, asks_grad, host_array, plain_in
from ...xla import segments
from ...xla.levels import batches_of

__all__ = ["is_nonzero"]


def item(self: Tensor) -> Any:
    """The value of a tensor of one element as a Python number.

    Shape: one element, of any number of dimensions; a number.

    Raises: RuntimeError where there is not one element.

    >>> xtensor.tensor([2.5]).item()
    2.5
    """
    found = known_number(self)
    if found is not None:
        return found
    if self.numel() != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    if type(self._xt_storage.raw) is MetaArray:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    if batches_of(self._xt_storage.array):
        refuse_in_derivative()
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
            "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
            "internals, please file a bug report."
        )
    return host_array(self).item()


def refuse_in_derivative() -> None:
    """RuntimeError for a value that is asked of a batch within a derivative: there nobody knows what for."""
    if modes.state.transforms and modes.state.transforms[-1].born:
        raise RuntimeError(
            "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a Tensor in some "
            "data-dependent control flow or (3) encountering this error in PyTorch internals. For (1): we don't support vmap "
            "over calling .item() on a Tensor, please try to rewrite what you're doing with other operations. For (2): we don't "
            "support data-dependent control flow in vmap yet, please file an issue at "
            "https://github.com/pytorch/pytorch/issues . For (3): please file an issue."
        )


def tolist(self: Tensor) -> Any:
    """The values as nested lists of Python numbers; of a tensor of no dimensions, its number.

    Shape: any; lists nested as deep as there are dimensions.

    Raises: NotImplementedError on the meta device.

    >>> xtensor.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    if type(self._xt_storage.raw) is WrapperArray:
        raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")
    if type(self._xt_storage.raw) is MetaArray:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    found = listed(self)
    return host_array(self).tolist() if found is None else found


def listed(tensor: Tensor) -> list[Any] | None:
    """The values of a view of one dimension whose few elements lie one after the other in XLA's memory; None of others."""
    view, storage = tensor._xt_view, tensor._xt_storage
    if view is None or len(view.sizes) != 1 or view.strides != (1,) or type(storage.raw) is HostValues:
        return None
    array = storage.array
    if type(array) is not ARRAY or not plain_in(view, array):
        return None
    found = elements(array, view.offset, view.sizes[0], view.dtype.numpy)
    segments.state.reads += found is not None
    return found


def at_once(self: Tensor) -> Any:
    """`known_number` in the default modes; None in others, which see `item`."""
    return known_number(self) if modes.state.mode <= modes.NO_GRAD else None


def truth(self: Tensor) -> bool:
    raw = self._xt_storage.raw
    if type(raw) is HostNumber and raw.dtype is BOOL and modes.state.mode <= modes.NO_GRAD and held(self):
        return raw.value
    found = at_once(self)
    if found is not None:
        return bool(found)
    count = self.numel()
    if count != 1:
        few = "no values" if count == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {few} is ambiguous")
    if batches_of(self._xt_storage.array):
        refuse_in_derivative()
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
            "yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
        )
    return bool(item(self))


PLOTTING = frozenset({"matplotlib", "mpl_toolkits"})


def asked_by_plotting() -> bool:
    """Whether a plotting library asks for a value, maybe through NumPy: gradients do not get lost in a picture."""
    frame = sys._getframe(2)
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in ("numpy", "xtensor"):
            return package in PLOTTING
        frame = frame.f_back
    return False


def single(self: Tensor) -> Any:
    """The one value, for Python's conversions."""
    view = self._xt_view
    if (self._xt_storage.raw.shape if view is None else view.sizes) and self.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if asks_grad(self) and modes.is_grad_enabled() and not asked_by_plotting():
        checks.warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first.",
            UserWarning,
        )
    return item(self)


def real_number(self: Tensor) -> Any:
    value = single(self)
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError("value cannot be converted to type double without overflow")
        return value.real
    return value


REAL = frozenset((int, float, bool))
WHOLE = frozenset((int, bool))


def as_int(self: Tensor) -> int:
    found = at_once(self)
    return int(found if type(found) in REAL and not asks_grad(self) else real_number(self))


def as_float(self: Tensor) -> float:
    found = at_once(self)
    return float(found if type(found) in REAL and not asks_grad(self) else real_number(self))


def index(self: Tensor) -> int:
    found = at_once(self)
    if type(found) in WHOLE:
        return int(found)
    dtype = self.dtype
    if self.numel() != 1 or dtype.is_floating_point or dtype.is_complex:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return operator.index(item(self))


def formatted(self: Tensor, spec: str) -> str:
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
        return item(self).__format__(spec)
    return object.__format__(self, spec)


def contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, int, float, complex, np.generic)):
        found: Any = element == self
        return bool(found.any().item())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


def iterate(self: Tensor) -> Any:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def backwards(self: Tensor) -> Tensor:
    return self if self.dim() == 0 else self.flip((0,))


@of_tensors()
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element of `input` is not zero; RuntimeError if there is not exactly one.

    Raises: TypeError for arguments of other kinds; RuntimeError where there is not one element.
    """
    return truth(input)


attach_methods(item, tolist, is_nonzero)
attach_methods(
    __bool__=truth,
    __index__=index,
    __format__=formatted,
    __contains__=contains,
    __iter__=iterate,
    __reversed__=backwards,
    __int__=as_int,
    __float__=as_float,
    __complex__=lambda self: complex(single(self)),
)
