"""What tensors of a class that dispatches say of themselves, where the class is to answer for their sizes, device or layout.

`_make_subclass` and `_make_wrapper_subclass` take the wish; from then on the class has these questions of its own, which ask
`__torch_dispatch__`. None is the answer that the tensor would have given.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ... import checks, devices, dtypes
from ...geometry import is_contiguous, is_non_overlapping_and_dense
from ...geometry import numel as numel_of
from ...tensor import Size, Tensor, checked_dim, sizes_of, strides_of
from .aten import BESIDES, OpOverloadPacket, known, packet
from .dispatching import asked_about, dispatched

__all__ = ["answers_metadata"]

ANSWERS = "_xt_answers"
"""What a class has that answers: the names of the policies."""


def told(
    policy: str, name: str, self: Tensor, *args: Any, overload: str = "default", of: str = "aten"
) -> Any:
    """What is made of a question by who answers; None where nobody does, or knows."""
    if policy not in getattr(type(self), ANSWERS, ()):
        return None
    found = asked_about((self,))
    if found is None:
        return None
    func = packet(name, of).overload(overload)
    return dispatched(func, found, (self, *args), {}, called=checks.spelled(f"ops.{of}.{name}"))


def number(name: str, plain: Callable[[Tensor], int]) -> Callable[[Tensor], int]:
    """The method for a number that sizes decide."""

    def ask(self: Tensor) -> int:
        made = told("sizes", name, self)
        return plain(self) if made is None else made

    return ask


dim = number("dim", Tensor.dim)
numel = number("sym_numel", Tensor.numel)
storage_offset = number("sym_storage_offset", Tensor.storage_offset)


def shape(self: Tensor) -> Size:
    made = told("sizes", "sym_size", self)
    return Size(sizes_of(self) if made is None else made)


def size(self: Tensor, dim: int | None = None) -> Any:
    return shape(self) if dim is None else shape(self)[checked_dim(dim, self.dim())]


def stride(self: Tensor, dim: int | None = None) -> Any:
    made = told("strides", "sym_stride", self)
    strides = strides_of(self) if made is None else tuple(made)
    return strides if dim is None else strides[checked_dim(dim, len(strides))]


def contiguity(self: Tensor, memory_format: Any = dtypes.contiguous_format) -> bool:
    plain = memory_format is dtypes.contiguous_format
    args, overload = ((), "default") if plain else ((memory_format,), "memory_format")
    made = told("strides", "is_contiguous", self, *args, overload=overload)
    return Tensor.is_contiguous(self, memory_format) if made is None else made


def data_ptr(self: Tensor) -> int:
    count = told("sizes", "numel", self)
    if count is None:
        count = numel_of(sizes_of(self))
    return self._xt_storage.data_ptr() + Tensor.storage_offset(self) * self.dtype.itemsize if count else 0


def device(self: Tensor) -> devices.device:
    return told("device", "device", self, of="prim") or self._xt_storage.device


def layout(self: Tensor) -> Any:
    return told("layout", "layout", self, of="prim") or dtypes.strided


def is_strides_like_format(self: Tensor, memory_format: Any) -> bool:
    """Whether the elements lie in a memory format's order."""
    made = told("strides", "is_strides_like_format", self, memory_format)
    return is_contiguous(sizes_of(self), strides_of(self), memory_format.name) if made is None else made


def non_overlapping_and_dense(self: Tensor) -> bool:
    """Whether the elements lie side by side, in whatever order."""
    made = told("strides", "is_non_overlapping_and_dense", self)
    return is_non_overlapping_and_dense(sizes_of(self), strides_of(self)) if made is None else made


# Operators about a tensor's memory that have no function or method.
BESIDES["is_strides_like_format"] = is_strides_like_format
BESIDES["is_non_overlapping_and_dense"] = non_overlapping_and_dense

for name in ("device", "layout"):
    known[("prim", name)] = OpOverloadPacket("prim", name, operator.attrgetter(name))

QUESTIONS: dict[str, dict[str, Any]] = {
    "sizes": {
        "shape": property(shape),
        "size": size,
        "dim": dim,
        "ndimension": dim,
        "ndim": property(dim),
        "numel": numel,
        "nelement": numel,
        "storage_offset": storage_offset,
        "data_ptr": data_ptr,
    },
    "strides": {"stride": stride, "is_contiguous": contiguity},
    "device": {"device": property(device)},
    "layout": {"layout": property(layout)},
}
"""By policy, the methods and properties of Tensor that ask."""


def answers_metadata(cls: type[Tensor], sizes: str | None, device: bool, layout: bool) -> None:
    """Have a class answer for what its tensors say of themselves.

    sizes: "strides" for strides and contiguity, "sizes" for those and all that sizes decide.

    Raises: ValueError for another policy.
    """
    if sizes not in (None, "sizes", "strides"):
        raise ValueError(f"Unknown sizes_strides_policy: {sizes}; expected 'strides' or 'sizes'")
    wished = {"strides": bool(sizes), "sizes": sizes == "sizes", "device": device, "layout": layout}
    before = getattr(cls, ANSWERS, frozenset())
    new = {policy for policy, wish in wished.items() if wish} - before
    if new:
        setattr(cls, ANSWERS, before | new)
    for policy in new:
        for name, question in QUESTIONS[policy].items():
            if getattr(cls, name) is getattr(Tensor, name) or isinstance(question, property):
                setattr(cls, name, question)
