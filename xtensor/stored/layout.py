"""Tensors whose elements no array has. Written through `__torch_function__`, as any extension could be.

A tensor of this class lies over the memory of its bytes: the same storage, seen with a dtype that only stores. `held` and
`seen_as` lead between it and the integers of its bytes. Those of complex32 are numbers too: `widened` and `narrowed` lead between
it and complex64, each the other's derivative, so that operators computed there have their gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.core import ShapedArray

from .. import dtypes
from ..engine import modes
from ..operators.overriding import answering_in, arm
from ..operators.recording import noted
from ..sparse.layout import UNANSWERED, LayoutNode, by_table
from ..tensor import (
    Tensor,
    array_of,
    asks_grad,
    counter_of,
    edge_of,
    make_view,
    plain_edge,
    sizes_of,
    strides_of,
    tensor_over,
    wrap,
)
from ..xla.x64 import call, jit

__all__ = ["HANDLERS", "StoredTensor", "handles", "held", "is_complex32", "narrowed", "seen_as", "widened"]

HANDLERS: dict[str, Callable[..., Any]] = {}
"""What answers for an operator when such a tensor is among its arguments, by the operator's name."""

handles = answering_in(HANDLERS)
"""Has a function answer for operators of these names."""

KEPT = frozenset(
    "__get__ __set__ __delete__ is_contiguous storage_offset stride data_ptr untyped_storage storage const_data_ptr is_set_to nbytes "
    "dim_order sparse_dim dense_dim storage_type _version is_inference".split()
)
"""What is answered by the memory."""


class StoredTensor(Tensor):
    """A tensor of a dtype that only stores.

    Differs from PyTorch: transforms of functions (`vmap`, `func.grad`) refuse it; bytes without numbers print as bytes.

    >>> x = xtensor.tensor([1, 2, 3], dtype=xtensor.uint8).view(xtensor.bits8)
    >>> x.dtype, x[1:].view(xtensor.uint8)
    (xtensor.bits8, tensor([2, 3], dtype=xtensor.uint8))
    """

    _xt_arms_late = True
    _prints_as = "tensor"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = by_table(HANDLERS, KEPT, func, args, kwargs or {})
        if made is UNANSWERED:
            return HANDLERS["_any"](func, getattr(func, "__name__", ""), args, kwargs or {})
        return made

    @property
    def T(self) -> Any:
        return self.t() if self.dim() == 2 else self.permute(*range(self.dim())[::-1])

    @property
    def mT(self) -> Any:
        return self.transpose(-2, -1)

    @property
    def H(self) -> Any:
        return self.mH

    @property
    def mH(self) -> Any:
        return self.adjoint()

    @property
    def real(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return HANDLERS["real"](self)

    @property
    def imag(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return HANDLERS["imag"](self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuilt, (held(self), self.dtype, self.requires_grad)


def rebuilt(integers: Tensor, dtype: dtypes.dtype, requires_grad: bool) -> Any:
    """Such a tensor as pickle finds it."""
    return seen_as(integers, dtype).requires_grad_(requires_grad)


def data_of(self: StoredTensor) -> Any:
    """The same bytes, unknown to autograd."""
    return seen_as(held(self), self.dtype)


def set_data(self: StoredTensor, source: Any) -> None:
    """Hold what another such tensor does."""
    self._xt_storage, self._xt_view = source._xt_storage, source._xt_view


StoredTensor.data = property(data_of, set_data)  # pyright: ignore[reportAttributeAccessIssue]


def is_complex32(value: Any) -> bool:
    """Whether this is a tensor of complex32."""
    return isinstance(value, StoredTensor) and value.dtype is dtypes.complex32


# ---- between bytes and stored tensors ------------------------------------------------------------------------------


def strided_over(source: Tensor, dtype: dtypes.dtype, kind: type[Tensor] | None = None) -> Any:
    """A tensor over the memory of another whose elements have as many bytes, unknown to autograd."""
    view = source._xt_view
    offset = 0 if view is None else view.offset
    found: Any = make_view(
        source._xt_storage, counter_of(source), dtype, sizes_of(source), strides_of(source), offset
    )
    return tensor_over(source._xt_storage, found, kind=kind)


def held(stored: Tensor) -> Tensor:
    """The integers of the bytes, in the same memory."""
    return strided_over(stored, dtypes.STORED[stored.dtype])


def seen_as(source: Tensor, dtype: dtypes.dtype) -> Any:
    """A tensor of a dtype that only stores, over the memory of another whose elements have as many bytes."""
    arm(StoredTensor)
    return strided_over(source, dtype, StoredTensor)


# ---- complex32 and complex64 ---------------------------------------------------------------------------------------


@jit
def widen(words: Any) -> Any:
    parts = lax.bitcast_convert_type(words, jnp.float16).astype(jnp.float32)
    return lax.complex(parts[..., 0], parts[..., 1])


@jit
def narrow(values: Any) -> Any:
    parts = jnp.stack([values.real, values.imag], -1)
    return lax.bitcast_convert_type(parts.astype(jnp.float32).astype(jnp.float16), jnp.uint32)


def follow(title: str, made: Tensor, source: Tensor, transposed: Callable[[Any], Any]) -> Any:
    """A result with its place in the graph, if its source has one."""
    if not modes.state.mode & modes.NO_GRAD and asks_grad(source):
        aval = ShapedArray(tuple(sizes_of(made)), dtypes.complex64.numpy)
        edges = (plain_edge(edge_of(source)),)
        made._xt_edge = (noted(LayoutNode(title, edges, aval, lambda grad: (transposed(grad),))), 0)
    return made


def widened(stored: Any) -> Any:
    """Complex numbers of halves as complex64, which autograd follows."""
    made = wrap(call(widen, array_of(held(stored))))
    return follow("ToCopyBackward0", made, stored, narrowed)


def narrowed(values: Any) -> Any:
    """Complex numbers in complex32, rounded, which autograd follows; those that are so already as they are."""
    if is_complex32(values):
        return values
    if values.dtype is not dtypes.complex64:
        values = values.to(dtypes.complex64)
    made = seen_as(wrap(call(narrow, array_of(values))), dtypes.complex32)
    return follow("ToCopyBackward0", made, values, wide)


def wide(grad: Any) -> Any:
    """A gradient in complex64."""
    return widened(grad) if is_complex32(grad) else grad
