"""The view operators of PyTorch's "Tensor Views" page, and those that view where they can and copy where they cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import checks, dtypes, geometry
from ..geometry import Geometry
from ..tensor import Tensor, alias, sizes_of, strides_of
from .views import VIEWS, ViewOperator, alias_of, geometry_of, ints, view

__all__ = ["narrow", "permute", "select", "t", "transpose"]


@view(node="Transpose", aliases=("swapaxes", "swapdims"))
def transpose(g: Geometry, dim0: int, dim1: int) -> Geometry:
    """The view with two dimensions swapped."""
    return geometry.transpose(g, dim0, dim1)


@view(node="T")
def t(g: Geometry) -> Geometry:
    """The transpose of a tensor of at most two dimensions."""
    return geometry.t(g)


@view(varargs="dims")
def permute(g: Geometry, dims: Sequence[int]) -> Geometry:
    """The view with the dimensions in the order `dims`."""
    return geometry.permute(g, ints(dims))


@view()
def select(g: Geometry, dim: int, index: int) -> Geometry:
    """The view at one index of a dimension, which it loses."""
    return geometry.select(g, dim, index)


@view(name="slice", method=False)
def slice_(
    g: Geometry, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Geometry:
    """The view of every `step`-th index of a dimension from `start` up to `end`."""
    return geometry.slice(g, dim, start, end, step)


@view(node="Slice")
def narrow(g: Geometry, dim: int, start: int, length: int) -> Geometry:
    """The view of `length` indices of a dimension from `start` on."""
    return geometry.narrow(g, dim, start, length)
