"""Elements by index, by value and in order, and what is different among them."""

from __future__ import annotations

from typing import NamedTuple

from .. import dtypes
from ..ops.create import creation, ranges
from ..ops.index import index_rows, masks, scatter
from ..ops.reduce import extrema, reductions, sorting, statistics
from ..ops.shape import reinterpret
from ..tensor import Tensor
from .array import Array, made, made_all, place_of, plain
from .manipulation import Axes
from .promotion import Operand, check, operands

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


# ---- by index ------------------------------------------------------------------------------------------------------


def from_start(indices: Tensor, size: int) -> Tensor:
    """Indices as int64, those from the end counted from the beginning."""
    found = plain(indices).to(dtypes.int64)
    return masks.where(found < 0, found + size, found)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Array:
    """The parts of an array at these indices along a dimension, which a vector need not name."""
    if axis is None and x.dim() != 1:
        raise ValueError("take() needs `axis` for other than vectors")
    dim = place_of(0 if axis is None else axis, x.dim())
    found = from_start(indices, x.shape[dim])
    taken = index_rows.index_select(plain(x), dim, found.reshape(-1))
    return made(taken.reshape(*x.shape[:dim], *found.shape, *x.shape[dim + 1 :]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Array:
    """For each place of `indices` the element of `x` at that index along a dimension; the other dimensions broadcast."""
    dim = place_of(axis, x.dim())
    return made(scatter.take_along_dim(plain(x), from_start(indices, x.shape[dim]), dim))


# ---- by value ------------------------------------------------------------------------------------------------------


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the greatest element, the first of several."""
    check("argmax", "real", x.dtype)
    return made(extrema.argmax(plain(x), axis, keepdims))


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the smallest element, the first of several."""
    check("argmin", "real", x.dtype)
    return made(extrema.argmin(plain(x), axis, keepdims))


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The number of elements other than 0."""
    return made(reductions.sum(plain(x) != 0, axis, keepdims))


def nonzero(x: Tensor, /) -> tuple[Array, ...]:
    """The indices of elements other than 0, for each dimension; ValueError where there is none."""
    if x.dim() == 0:
        raise ValueError("nonzero() is not for 0-d arrays")
    return tuple(made_all(masks.nonzero(plain(x), as_tuple=True)))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Array:
    """Where the elements of `x2` are to be put into the sorted vector `x1`, or one that `sorter` sorts."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right', not {side!r}")
    a, b = operands("searchsorted", "real", x1, x2)
    if sorter is not None:
        a = index_rows.index_select(a, 0, plain(sorter).to(dtypes.int64))
    return made(sorting.searchsorted(a, b, side=side))


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Array:
    """Elements of `x1` where the condition holds, else of `x2`, in the dtype that they promote to."""
    check("where", "bool", condition.dtype)
    a, b = operands("where", "any", x1, x2)
    return made(masks.where(plain(condition), a, b))


# ---- in order ------------------------------------------------------------------------------------------------------


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along a dimension."""
    check("sort", "real", x.dtype)
    return made(sorting.sort(plain(x), axis, descending, stable=stable)[0])


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The indices that bring the elements in order along a dimension."""
    check("argsort", "real", x.dtype)
    return made(sorting.sort(plain(x), axis, descending, stable=stable)[1])


# ---- what is different ---------------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def distinct(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The different values in order, where each element's stands, and how often each is there; every NaN is one."""
    flat = plain(x).reshape(-1)
    if flat.dtype.is_complex:
        pairs = reinterpret.view_as_real(flat) + 0.0  # of zeros there is one
        values, inverse, counts = statistics.unique(pairs, return_inverse=True, return_counts=True, dim=0)
        values = reinterpret.view_as_complex(values.contiguous())
    else:
        values, inverse, counts = statistics.unique(flat, return_inverse=True, return_counts=True)
    return values, inverse.reshape(x.shape), counts


def unique_all(x: Tensor, /) -> UniqueAll:
    """The different values, where each is first in row-major order, where each element's stands, and how often each is there.

    >>> values, indices, inverse, counts = xtensor.array_api.unique_all(xtensor.tensor([3, 1, 3]))
    >>> values, indices, inverse, counts
    (Array([1, 3]), Array([1, 0]), Array([1, 0, 1]), Array([1, 2]))
    """
    values, inverse, counts = distinct(x)
    number = inverse.numel()
    places = ranges.arange(number, device=values.device)
    first = creation.full((values.numel(),), number, dtype=dtypes.int64, device=values.device)
    first = scatter.scatter_reduce(first, 0, inverse.reshape(-1), places, "amin")
    return UniqueAll(made(values), made(first), made(inverse), made(counts))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The different values, and how often each is there."""
    values, _, counts = distinct(x)
    return UniqueCounts(made(values), made(counts))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The different values, and where each element's stands among them."""
    values, inverse, _ = distinct(x)
    return UniqueInverse(made(values), made(inverse))


def unique_values(x: Tensor, /) -> Array:
    """The different values, in order."""
    return made(distinct(x)[0])
