"""Products of arrays, which the namespace and its `linalg` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ops.linalg import einsum, linear_algebra
from ..ops.linalg import matmul as products
from ..ops.shape import joining
from ..tensor import Tensor
from .array import Array, made, plain
from .promotion import operands

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Tensor, x2: Tensor, /) -> Array:
    """The product of matrices, batches of them or vectors; ValueError for numbers."""
    a, b = operands("matmul", "numeric", x1, x2)
    if a.dim() == 0 or b.dim() == 0:
        raise ValueError("matmul() is not for 0-d arrays")
    return made(products.matmul(a, b))


def matrix_transpose(x: Tensor, /) -> Array:
    """The transposes of matrices, as a view."""
    if x.dim() < 2:
        raise ValueError("matrix_transpose() needs at least 2 dimensions")
    return made(plain(x).transpose(-2, -1))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """The sums of products over pairs of dimensions, or over the last of `x1` and the first of `x2`."""
    a, b = operands("tensordot", "numeric", x1, x2)
    pairs: Any = axes if isinstance(axes, int) else tuple(list(dims) for dims in axes)
    return made(einsum.tensordot(a, b, pairs))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Array:
    """The inner products along a dimension, counted from the end, of `x1` conjugated and `x2`; the others broadcast."""
    a, b = operands("vecdot", "numeric", x1, x2)
    if not -min(a.dim(), b.dim()) <= axis < 0:
        raise ValueError("vecdot() needs an axis from the end that both arrays have")
    if a.shape[axis] != b.shape[axis]:
        raise ValueError("vecdot() needs dimensions of one size")
    a, b = joining.broadcast_tensors(a, b)
    return made(linear_algebra.vecdot(a, b, dim=axis))
