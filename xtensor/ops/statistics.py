"""Order statistics and counts: medians, modes, quantiles, histograms, unique values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import checks, devices, dtypes
from ..tensor import Tensor, array_of, sizes_of, wrap
from .declare import general, reduction, structure
from .embedding import readable
from .extrema import at_index
from .index_bounds import bounds_of
from .reductions import check_nonempty, dtype_of, is_complex, is_float, kept
from .schema import Array, Operand
from .sorting import order

__all__ = [
    "bincount",
    "histc",
    "median",
    "mode",
    "nanmedian",
    "nanquantile",
    "quantile",
    "unique",
    "unique_consecutive",
]


# ---- medians -------------------------------------------------------------------------------------------------------


def _median(x: Any, axis: int, ignore_nan: bool) -> tuple[Any, Any]:
    """The lower median along `axis` and its index, dimensions kept; of a NaN, the first one's."""
    n = x.shape[axis]
    values, indices = order(x, axis, False)
    if not is_float(x):
        at = (n - 1) // 2
        return tuple(lax.slice_in_dim(a, at, at + 1, axis=axis) for a in (values, indices))
    count = jnp.sum(~jnp.isnan(x), axis=axis, keepdims=True).astype(jnp.int32)
    # NaNs lie at the end: the first one is at `count`.
    middle = jnp.maximum(count - 1, 0) // 2 if ignore_nan else jnp.where(count < n, count, (n - 1) // 2)
    here = lax.broadcasted_iota(jnp.int32, x.shape, axis) == middle
    value = jnp.take_along_axis(values, middle, axis=axis)
    index = jnp.sum(jnp.where(here, indices, 0), axis=axis, keepdims=True)
    return value, index


def check_median(x: Any) -> None:
    if is_complex(x) or x.dtype == jnp.bool_:
        raise checks.not_implemented_for("median_cpu", dtype_of(x))


def _median_all(input: Any, ignore_nan: bool) -> Any:
    check_median(input)
    if input.size == 0:
        if is_float(input):
            return jnp.full((), jnp.nan, input.dtype)
        return jnp.full((), jnp.iinfo(input.dtype).min, input.dtype)
    return _median(input.reshape(-1), 0, ignore_nan)[0].reshape(())


def _all_grad(grad: Array, input: Array, result: Array) -> Array:
    mask = jnp.where(jnp.isnan(result), jnp.isnan(input), input == result).astype(grad.dtype)
    return grad * mask / jnp.sum(mask)


def _picked_grad(grads: Any, results: Any, input_shape: Any, dim: int, keepdim: bool) -> Array:
    return at_index(grads[0], results[1], input_shape, checks.wrap_dim(dim, len(input_shape)), keepdim)


def _median_along(name: str, input: Any, dim: int, keepdim: bool, ignore_nan: bool) -> tuple[Any, Any]:
    axis = checks.wrap_dim(dim, input.ndim)
    check_median(input)
    if input.ndim == 0:
        return input, jnp.zeros((), jnp.int64)
    check_nonempty(name, input.shape, dim, (axis,))
    value, index = _median(input, axis, ignore_nan)
    return kept(value, (axis,), keepdim), kept(index.astype(jnp.int64), (axis,), keepdim)


@reduction(name="median_all", node="Median", method=False, out=False, derivatives=dict(input=_all_grad))
def median_all(input: Array) -> Array:
    """The median of all elements."""
    return _median_all(input, False)


@reduction(name="nanmedian_all", node="Nanmedian", method=False, out=False, derivatives=dict(input=_all_grad))
def nanmedian_all(input: Array) -> Array:
    """The median of all elements that are not NaN."""
    return _median_all(input, True)


@reduction(name="median_dim", node="Median", method=False, out="exact", returns=("values", "indices"), derivatives=dict(input=_picked_grad))
def median_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, ...]:
    """The median along `dim` and its index."""
    return _median_along("median", input, dim, keepdim, False)


@reduction(name="nanmedian_dim", node="Nanmedian", method=False, out="exact", returns=("values", "indices"), derivatives=dict(input=_picked_grad))
def nanmedian_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, ...]:
    """The median along `dim` of the elements that are not NaN, and its index."""
    return _median_along("nanmedian", input, dim, keepdim, True)


median_dim.operator.returns = structure("median", ("values", "indices"))
nanmedian_dim.operator.returns = structure("nanmedian", ("values", "indices"))


def median(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Any = None,
    axis: int | None = None,
    keepdims: bool | None = None,
) -> Any:
    """The median, the lower of two; along `dim` with its index, as `(values, indices)`. NaN if there is one."""
    dim = dim if axis is None else axis
    if dim is None:
        return median_all(input)
    return median_dim(input, dim, keepdim if keepdims is None else keepdims, out=out)


def nanmedian(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Any = None,
    axis: int | None = None,
    keepdims: bool | None = None,
) -> Any:
    """The median of the elements that are not NaN; along `dim` with its index, as `(values, indices)`."""
    dim = dim if axis is None else axis
    if dim is None:
        return nanmedian_all(input)
    return nanmedian_dim(input, dim, keepdim if keepdims is None else keepdims, out=out)


# ---- mode ----------------------------------------------------------------------------------------------------------


@reduction(out="exact", returns=("values", "indices"), derivatives=dict(input=_picked_grad))
def mode(input: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, ...]:
    """The most frequent element along `dim`, the smallest of several, and the index where it stands last."""
    axis = checks.wrap_dim(dim, input.ndim)
    if is_complex(input):
        raise checks.not_implemented_for("mode_cpu", dtype_of(input))
    if input.ndim == 0:
        return input, jnp.zeros((), jnp.int64)
    check_nonempty("mode", input.shape, dim, (axis,))
    values, indices = order(input, axis, False)
    n = values.shape[axis]
    place = lax.broadcasted_iota(jnp.int32, values.shape, axis)
    before = jnp.roll(values, 1, axis)
    fresh = (place == 0) | (values != before)
    start = lax.cummax(jnp.where(fresh, place, 0), axis)
    run = place - start
    # The first of the longest runs; its last element is where the run's count peaks.
    best = jnp.max(run, axis=axis, keepdims=True)
    at = jnp.min(jnp.where(run == best, place, n), axis=axis, keepdims=True)
    value = jnp.take_along_axis(values, at, axis=axis)
    index = jnp.take_along_axis(indices, at, axis=axis)
    return kept(value, (axis,), keepdim), kept(index, (axis,), keepdim)


# ---- quantiles -----------------------------------------------------------------------------------------------------

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(x: Any, q: Any, axis: int, interpolation: str, ignore_nan: bool) -> Any:
    """The quantiles along `axis`, put in front."""
    ordered = jnp.moveaxis(jnp.sort(x, axis=axis), axis, -1)
    n = ordered.shape[-1]
    missing = jnp.isnan(ordered)
    count = jnp.sum(~missing, axis=-1, keepdims=True)
    if ignore_nan:
        last = jnp.maximum(count - 1, 0).astype(x.dtype)
    else:
        last = jnp.full(count.shape, n - 1, x.dtype)
    rank = q.reshape((-1,) + (1,) * ordered.ndim).astype(x.dtype) * last[None]
    if interpolation == "lower":
        rank = jnp.floor(rank)
    elif interpolation == "higher":
        rank = jnp.ceil(rank)
    elif interpolation == "nearest":
        rank = jnp.round(rank)
    below = jnp.floor(rank)
    above = jnp.ceil(rank)
    rows = jnp.broadcast_to(ordered[None], (rank.shape[0], *ordered.shape))

    def pick(at: Any) -> Any:
        return jnp.take_along_axis(rows, at.astype(jnp.int32), axis=-1)[..., 0]

    low, high = pick(below), pick(above)
    weight = jnp.full_like(rank, 0.5) if interpolation == "midpoint" else rank - below
    out = _lerp(low, high, weight[..., 0])
    if not ignore_nan:
        out = jnp.where(jnp.any(missing, axis=-1)[None], jnp.full_like(out, jnp.nan), out)
    return out


def _lerp(a: Any, b: Any, weight: Any) -> Any:
    return jnp.where(weight < 0.5, a + weight * (b - a), b - (b - a) * (1 - weight))


def _quantile_grad(
    grad: Array, input: Array, q: Any, dim: Any, keepdim: bool, interpolation: str, ignore_nan: bool
) -> Array:
    from_kernel = lambda x: quantiles_of(x, q, dim, keepdim, interpolation, ignore_nan)  # noqa: E731
    return _vjp(from_kernel, input, grad)


def _vjp(function: Any, x: Any, grad: Any) -> Any:
    import jax

    return jax.vjp(function, x)[1](grad)[0]


def quantiles_of(input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, ignore_nan: bool) -> Any:
    x = input
    q = jnp.asarray(q)
    ndim = x.ndim
    if dim is None:
        x, axis = x.reshape(-1), 0
    else:
        axis = checks.wrap_dim(dim, ndim)
        x = x.reshape(1) if ndim == 0 else x
    out = _quantile(x, q.reshape(-1), axis, interpolation, ignore_nan)
    if keepdim and ndim:
        out = out.reshape((out.shape[0], *[1] * ndim)) if dim is None else jnp.expand_dims(out, axis + 1)
    return out[0] if q.ndim == 0 else out


METHODS: dict[str, Any] = {}
