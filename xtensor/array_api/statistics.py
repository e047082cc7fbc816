"""Functions that fold, scan or compare along dimensions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..dtypes import dtype
from ..ops.create import creation
from ..ops.reduce import cumulative, extrema, reductions
from ..ops.shape import joining
from ..tensor import Tensor
from .array import Array, made, place_of, plain
from .manipulation import Axes
from .promotion import check, result_type

__all__ = [
    "all",
    "any",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def summed(x: Tensor, wanted: dtype | None) -> dtype:
    """The dtype of sums and products: integers are folded in 64 bits."""
    if wanted is not None:
        return wanted
    if not x.dtype.is_integral:
        return x.dtype
    return dtypes.int64 if x.dtype.is_signed else dtypes.uint64


def dims(x: Tensor, axis: Axes) -> tuple[int, ...]:
    """The dimensions that `axis` names, all of them with None; IndexError for one that is not there."""
    if axis is None:
        return tuple(range(x.dim()))
    return tuple(place_of(d, x.dim()) for d in ((axis,) if isinstance(axis, int) else axis))


def sum(x: Tensor, /, *, axis: Axes = None, dtype: dtype | None = None, keepdims: bool = False) -> Array:
    """The sum along some dimensions, by default all; of integers in 64 bits."""
    check("sum", "numeric", x.dtype)
    if axis == ():
        return made(plain(x).to(summed(x, dtype)))
    return made(reductions.sum(plain(x), dims(x, axis), keepdims, dtype=summed(x, dtype)))


def prod(x: Tensor, /, *, axis: Axes = None, dtype: dtype | None = None, keepdims: bool = False) -> Array:
    """The product along some dimensions, by default all; of integers in 64 bits."""
    check("prod", "numeric", x.dtype)
    wanted = summed(x, dtype)
    source = plain(x).to(wanted)
    # One dimension at a time, from the last one on: that is what PyTorch's function takes.
    for dim in sorted(dims(x, axis), reverse=True):
        source = reductions.prod(source, dim, keepdims, dtype=wanted)
    return made(source)


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The mean along some dimensions, by default all."""
    check("mean", "floating", x.dtype)
    return made(plain(x).clone() if axis == () else reductions.mean(plain(x), dims(x, axis), keepdims))


def var(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance along some dimensions; `correction` is taken off the number of elements."""
    check("var", "real floating", x.dtype)
    if axis == ():
        return made(plain(x) * 0 / (1 - correction))
    with warnings.catch_warnings():
        # The standard has NaN where no degree of freedom is left, and no warning.
        warnings.filterwarnings("ignore", message=r".*degrees of freedom.*")
        return made(reductions.var(plain(x), dims(x, axis), correction=correction, keepdim=keepdims))


def std(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The standard deviation along some dimensions; `correction` is taken off the number of elements."""
    check("std", "real floating", x.dtype)
    return made(plain(var(x, axis=axis, correction=correction, keepdims=keepdims)).sqrt())


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The greatest element along some dimensions, by default all; ValueError where there is none."""
    return extreme("max", extrema.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The smallest element along some dimensions, by default all; ValueError where there is none."""
    return extreme("min", extrema.amin, x, axis, keepdims)


def extreme(name: str, function: Callable[..., Any], x: Tensor, axis: Axes, keepdims: bool) -> Array:
    check(name, "real", x.dtype)
    found = dims(x, axis)
    if 0 in [x.shape[d] for d in found]:
        raise ValueError(f"{name}() of no elements")
    return made(function(plain(x), found, keepdims) if found else plain(x).clone())


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether all elements along some dimensions, by default all, are other than 0."""
    found = dims(x, axis)
    return made(reductions.all(plain(x) != 0, found, keepdims) if found else plain(x) != 0)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether one of the elements along some dimensions, by default all, is other than 0."""
    found = dims(x, axis)
    return made(reductions.any(plain(x) != 0, found, keepdims) if found else plain(x) != 0)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Array:
    """The sums up to each element along a dimension, which a vector need not name; with `include_initial`, from 0 on."""
    check("cumulative_sum", "numeric", x.dtype)
    return scanned("cumulative_sum", cumulative.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Array:
    """The products up to each element along a dimension, which a vector need not name; with `include_initial`, from 1 on."""
    check("cumulative_prod", "numeric", x.dtype)
    return scanned("cumulative_prod", cumulative.cumprod, 1, x, axis, dtype, include_initial)


def scanned(
    name: str,
    function: Callable[..., Any],
    first: int,
    x: Tensor,
    axis: int | None,
    wanted: dtype | None,
    initial: bool,
) -> Array:
    if axis is None and x.dim() != 1:
        raise ValueError(f"{name}() needs `axis` for other than vectors")
    dim = place_of(0 if axis is None else axis, x.dim())
    result = function(plain(x), dim, dtype=summed(x, wanted))
    if initial:
        sizes = [1 if d == dim else size for d, size in enumerate(x.shape)]
        start: Tensor = creation.full(sizes, first, dtype=result.dtype, device=result.device)
        result = joining.cat([start, result], dim)
    return made(result)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Array:
    """The differences of neighbours along a dimension, `n` times over, after `prepend` and `append` were put around."""
    check("diff", "numeric", x.dtype)
    parts = [part for part in (prepend, x, append) if part is not None]
    wanted = result_type(*parts)
    return made(cumulative.diff(joining.cat([plain(part).to(wanted) for part in parts], axis), n, axis))
