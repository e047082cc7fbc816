"""Order statistics and counts: medians, modes, quantiles, histograms, unique values."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, devices, dtypes
from ...dtypes import dtype_of
from ...engine import Node, modes
from ...operators.attach import attach_methods, named
from ...operators.declare import general, reduction
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import of_tensors, overloads
from ...operators.index_bounds import bounds_of, check_has_values, check_values
from ...operators.levels.crossing import refuse_dynamic
from ...operators.operator import structure
from ...operators.schema import Array, Number, Operand
from ...operators.write import write_out
from ...tensor import (
    Tensor,
    array_of,
    asks_grad,
    edge_of,
    plain_edge,
    sizes_of,
    strides_of,
    wrap,
    wrap_strided,
)
from ...xla.cache import bounded
from ...xla.symbolic import at_most
from ..index.hostindex import trimmed
from .extrema import selected_grad, shared_grad
from .reductions import check_nonempty, is_complex, is_float, kept
from .sorting import at_rank, is_long, order

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


def _median(x: Any, axis: int, ignore_nan: bool, ties: bool = True) -> tuple[Any, Any]:
    """The lower median along `axis` and its index, dimensions kept; of a NaN, the first one's."""
    n = x.shape[axis]
    if is_float(x):
        count = jnp.sum(~jnp.isnan(x), axis=axis, keepdims=True).astype(jnp.int32)
        # NaNs lie at the end: the first one is at `count`.
        middle = jnp.maximum(count - 1, 0) // 2 if ignore_nan else jnp.where(count < n, count, (n - 1) // 2)
    else:
        middle = jnp.full(
            [1 if d == axis else size for d, size in enumerate(x.shape)], (n - 1) // 2, jnp.int32
        )
    return at_rank(x, middle, axis, ties)


def check_median(x: Any) -> None:
    if is_complex(x) or x.dtype == jnp.bool_:
        raise checks.not_implemented_for("median_cpu", dtype_of(x))


def _median_all(input: Any, ignore_nan: bool) -> Any:
    check_median(input)
    if input.size == 0:
        if is_float(input):
            return jnp.full((), jnp.nan, input.dtype)
        return jnp.full((), jnp.iinfo(input.dtype).min, input.dtype)
    return _median(input.reshape(-1), 0, ignore_nan, False)[0].reshape(())


def _median_along(input: Any, dim: int, keepdim: bool, ignore_nan: bool) -> tuple[Any, Any]:
    axis = checks.wrap_dim(dim, input.ndim)
    check_median(input)
    if input.ndim == 0:
        return input, jnp.zeros((), jnp.int64)
    check_nonempty("median", input.shape, dim, (axis,))
    value, index = _median(input, axis, ignore_nan)
    return kept(value, (axis,), keepdim), kept(index.astype(jnp.int64), (axis,), keepdim)


@reduction(name="median_all", node="Median", method=False, out=False, derivatives=dict(input=shared_grad))
def median_all(input: Array) -> Array:
    """The median of all elements."""
    return _median_all(input, False)


@reduction(
    name="nanmedian_all", node="Nanmedian", method=False, out=False, derivatives=dict(input=shared_grad)
)
def nanmedian_all(input: Array) -> Array:
    """The median of all elements that are not NaN."""
    return _median_all(input, True)


@reduction(
    name="median_dim",
    node="MedianBackward1",
    method=False,
    out="exact",
    returns=("values", "indices"),
    derivatives=dict(input=selected_grad),
)
def median_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, ...]:
    """The median along `dim` and its index."""
    return _median_along(input, dim, keepdim, False)


@reduction(
    name="nanmedian_dim",
    node="NanmedianBackward1",
    method=False,
    out="exact",
    returns=("values", "indices"),
    derivatives=dict(input=selected_grad),
)
def nanmedian_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, ...]:
    """The median along `dim` of the elements that are not NaN, and its index."""
    return _median_along(input, dim, keepdim, True)


median_dim.operator.returns = structure("median", ("values", "indices"))
nanmedian_dim.operator.returns = structure("nanmedian", ("values", "indices"))


def _median_function(name: str, whole: Any, along: Any, doc: str) -> Any:
    """A median of all elements, or along a dimension with its index."""

    def found(
        input: Tensor,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        out: Any = None,
        axis: int | None = None,
        keepdims: bool | None = None,
    ) -> Any:
        dim = dim if axis is None else axis
        if dim is None:
            return whole(input)
        return along(input, dim, keepdim if keepdims is None else keepdims, out=out)

    signatures = "Tensor input", "Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None"
    text = (
        f"{doc}\n\nShape: `input` `(*)`; result `()`, or values and indices without the dimension `dim` (size 1 if "
        f"`keepdim`).\n\nRaises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; "
        f"NotImplementedError for complex and bool tensors.\n\n>>> xtensor.{name}(xtensor.tensor([5.0, 1.0, 2.0]))\ntensor(2.)"
    )
    return overloads(*signatures)(named(found, name, text))


median = _median_function(
    "median",
    median_all,
    median_dim,
    "The median, the lower of two; along `dim` with its index, as `(values, indices)`. NaN if there is one.",
)
nanmedian = _median_function(
    "nanmedian",
    nanmedian_all,
    nanmedian_dim,
    "The median of the elements that are not NaN; along `dim` with its index, as `(values, indices)`.",
)


# ---- mode ----------------------------------------------------------------------------------------------------------


@reduction(out="exact", returns=("values", "indices"), derivatives=dict(input=selected_grad))
def mode(input: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, ...]:
    """The most frequent element along `dim`, the smallest of several, and the index where it stands last.

    Shape: `input` `(*)`; values and indices without the dimension `dim`, or with size 1 there if `keepdim`.

    Raises: NotImplementedError for complex tensors.
    """
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

FEW = 2
"""Quantiles of a long row that are found without putting all elements in order."""
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(x: Any, q: Any, axis: int, interpolation: str, ignore_nan: bool) -> Any:
    """The quantiles along `axis`, put in front."""
    rows = jnp.moveaxis(x, axis, -1)
    n = rows.shape[-1]
    missing = jnp.isnan(rows)
    count = jnp.sum(~missing, axis=-1, keepdims=True)
    if ignore_nan:
        last = jnp.maximum(count - 1, 0).astype(x.dtype)
    else:
        last = jnp.full(count.shape, n - 1, x.dtype)
    rank = q.reshape((-1,) + (1,) * rows.ndim).astype(x.dtype) * last[None]
    if not ignore_nan:  # the last one in order is NaN where any is, and has the gradient
        rank = jnp.where(count[None] < n, jnp.asarray(n - 1, x.dtype), rank)
    if interpolation == "lower":
        rank = jnp.floor(rank)
    elif interpolation == "higher":
        rank = jnp.ceil(rank)
    elif interpolation == "nearest":
        rank = jnp.round(rank)
    below, above = jnp.floor(rank), jnp.ceil(rank)
    few = is_long(n) and at_most(rank.shape[0], FEW)
    ordered = (
        None if few else jnp.broadcast_to(order(rows, rows.ndim - 1, False)[0], (rank.shape[0], *rows.shape))
    )

    def pick(at: Any) -> Any:
        places = at.astype(jnp.int32)
        if ordered is not None:
            return jnp.take_along_axis(ordered, places, axis=-1)[..., 0]
        return jnp.stack([at_rank(rows, places[i], -1, False)[0][..., 0] for i in range(rank.shape[0])])

    if interpolation in ("lower", "higher", "nearest"):
        return pick(rank)  # between infinities there is nothing to interpolate
    low, high = pick(below), pick(above)
    weight = jnp.full_like(rank, 0.5) if interpolation == "midpoint" else rank - below
    return _lerp(low, high, weight[..., 0])


def _lerp(a: Any, b: Any, weight: Any) -> Any:
    return jnp.where(weight < 0.5, a + weight * (b - a), b - (b - a) * (1 - weight))


@general(autocast=dict(cpu="float32"), name="quantiles", node="Quantile", derivatives=FROM_KERNEL)
def quantiles(
    input: Array, q: Operand, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool
) -> Array:
    """The quantiles along `dim` (or of all elements) by sorting and interpolating."""
    name = "quantile()"
    if input.size == 0:
        raise RuntimeError(f"{name} input tensor must be non-empty")
    if dtype_of(input) not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"{name} input tensor must be either float or double dtype")
    q = jnp.asarray(q)
    if q.ndim > 1:
        raise RuntimeError(f"{name} q must be a scalar or 1D tensor")
    if not q.weak_type and q.dtype != input.dtype:
        raise RuntimeError(f"{name} q tensor must be same dtype as the input tensor")
    ndim = input.ndim
    axis = 0 if dim is None else checks.wrap_dim(dim, ndim)
    x = input.reshape(-1) if dim is None or ndim == 0 else input
    out = _quantile(x, q.reshape(-1), axis, interpolation, ignore_nan)
    if keepdim and ndim:
        out = out.reshape((out.shape[0], *[1] * ndim)) if dim is None else jnp.expand_dims(out, axis + 1)
    return out[0] if q.ndim == 0 else out


QUANTILE_OPTIONS = 'int dim = None, bool keepdim = False, *, str interpolation = "linear", Tensor out = None'


def _quantile_function(name: str, doc: str) -> Any:
    """`quantile` or `nanquantile`, by the operator that is both."""

    def found(
        input: Tensor,
        q: float | Tensor,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        out: Tensor | None = None,
    ) -> Tensor:
        if interpolation not in INTERPOLATIONS:
            raise RuntimeError(
                f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
            )
        if isinstance(q, Tensor):
            if q.dtype.is_floating_point:
                error = RuntimeError("quantile() q values must be in the range [0, 1]")
                check_values(
                    array_of(q), lambda values: None if ((values >= 0) & (values <= 1)).all() else error
                )
        elif not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        else:
            q = float(q)
        if isinstance(q, Tensor) and interpolation != "linear":
            q = q.detach()  # it chooses elements only: no gradient, not one of zeros
        made = quantiles(input, q, dim, keepdim, interpolation, name == "nanquantile")
        if out is None:
            return made
        write_out(name, out, made, [input], "general")
        return out

    signatures = [f"Tensor input, {q}, {QUANTILE_OPTIONS}" for q in ("Tensor q", "float q")]
    text = (
        f"{doc}\n\nShape: `input` `(*)`, result without the dimension `dim` (size 1 if `keepdim`), `()` where not given; "
        f"first the size of a vector `q`.\n\nRaises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; "
        f"RuntimeError for complex, bool and integer tensors.\n\n>>> xtensor.{name}(xtensor.tensor([1.0, 2.0, 4.0]), 0.5)\ntensor(2.)"
    )
    return overloads(*signatures)(named(found, name, text))


quantile = _quantile_function(
    "quantile",
    "The quantiles `q` (one or a vector, whose dimension comes first) along `dim`; NaN where there is a NaN.",
)
nanquantile = _quantile_function(
    "nanquantile", "The quantiles `q` along `dim` of the elements that are not NaN."
)


# ---- histograms and counts -----------------------------------------------------------------------------------------


@general(out="exact", name="histc", derivatives=None)
def histogram(input: Array, low: Number, high: Number, bins: int) -> Array:
    """The number of elements in each of `bins` equal intervals; all of the range if `low == high`."""
    x = input.reshape(-1)
    wide = dtypes.compute_type(dtype_of(input)).numpy
    x = x.astype(wide)
    a, b = jnp.asarray(low).astype(wide), jnp.asarray(high).astype(wide)
    if x.size:
        same = a == b
        a, b = jnp.where(same, jnp.min(x), a), jnp.where(same, jnp.max(x), b)
    same = a == b
    a, b = jnp.where(same, a - 1, a), jnp.where(same, b + 1, b)
    at = jnp.floor((x - a) * (np.asarray(bins, wide) / (b - a)))
    at = jnp.where(x == b, bins - 1, at)
    inside = (x >= a) & (x <= b)
    at = jnp.clip(jnp.where(inside, at, 0), 0, bins - 1).astype(jnp.int32)
    return jnp.zeros((bins,), jnp.float32).at[at].add(inside.astype(jnp.float32)).astype(input.dtype)


def without_range(values: np.ndarray[Any, Any]) -> Exception | None:
    low, high = float(values.min()), float(values.max())
    if math.isfinite(low) and math.isfinite(high):
        return None
    return RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")


def histc(
    input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None
) -> Tensor:
    """The number of elements in each of `bins` equal intervals of [min, max], by default the range of the values.

    Shape: `input` `(*)`, result `(bins)`.
    Differs from PyTorch: a range that is not finite gives zeros and no error on an accelerator.

    Raises: NotImplementedError for complex, bool and integer tensors; TypeError for arguments of other kinds.

    >>> xtensor.histc(xtensor.tensor([1.0, 2.0, 1.0]), bins=2, min=0, max=4)
    tensor([2., 1.])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("histc", "input", 1, "Tensor", input)
    if not input.dtype.is_floating_point:
        raise checks.not_implemented_for("histogram_cpu", input.dtype)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    if min == max and input.numel():
        check_values(array_of(input), without_range)
    return histogram(input, float(min), float(max), bins, out=out)


@general(name="bincount", derivatives=None)
def counts_of(input: Array, weights: Array | None, size: int) -> Array:
    """How often every number below `size` occurs, or the sum of the weights where it does."""
    if weights is None:
        return jnp.zeros((size,), jnp.int64).at[input].add(jnp.ones(input.shape, jnp.int64))
    dtype = jnp.float32 if weights.dtype == jnp.float32 else jnp.float64
    return jnp.zeros((size,), dtype).at[input].add(weights.astype(dtype))


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often every non-negative integer occurs, or the sum of the weights where it does.

    The largest one is read on the host, since the shape of the result depends on it.

    Shape: `input` `(n)`; result `(m)`, m one more than the largest, and at least `minlength`.

    Raises: RuntimeError for negative numbers; TypeError for arguments of other kinds.

    >>> xtensor.bincount(xtensor.tensor([0, 1, 1, 3]))
    tensor([1, 2, 0, 1])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("bincount", "input", 1, "Tensor", input)
    if not isinstance(weights, Tensor | None):
        raise checks.argument_error("bincount", "weights", 2, "Tensor", weights)
    if not input.dtype.is_integral:
        raise checks.not_implemented_for("bincount_cpu", input.dtype)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    wrong = RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if input.dim() != 1:
        raise wrong
    if input.numel() == 0:
        return input.new_zeros((minlength,), dtype=dtypes.int64)
    check_has_values(array_of(input))
    refuse_dynamic(input, "bincount")
    least, most = bounds_of(array_of(input))
    if least < 0:
        raise wrong
    if weights is not None and (weights.dim() != 1 or weights.numel() != input.numel()):
        raise RuntimeError("weights should be 1-d and have the same length as input")
    size = max(most + 1, minlength)
    # A program for every largest number would be one too many: the result is a part of one of a round size.
    room = size if minlength == size else 1 << (size - 1).bit_length()
    result = counts_of(input, weights, room)
    return result if room == size else trimmed(result, size)


# ---- unique values -------------------------------------------------------------------------------------------------


def _unique(name: str, input: Tensor, inverse: bool, counts: bool, dim: int | None, consecutive: bool) -> Any:
    """Unique values on the host: their number is the result's shape."""
    if input.dtype.is_complex:
        raise checks.not_implemented_for(name, input.dtype)
    check_has_values(array_of(input))
    values = np.asarray(array_of(input))
    axis = None if dim is None else checks.wrap_dim(dim, input.dim())
    rows = moved = values.reshape(-1)
    if axis is not None:
        if values.ndim and 0 in values.shape and values.shape[axis] != 0:
            raise RuntimeError(
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
            )
        if values.shape.count(0) > 1:
            raise RuntimeError(
                "Number of zero sized dimensions is more than one, so unique cannot be applied "
            )
        moved = np.moveaxis(values, axis, 0)
        rows = moved.reshape(moved.shape[0], math.prod(moved.shape[1:]))
    made = None if consecutive or axis is not None else _counted(rows, inverse)
    if made is None:
        first, back, amounts = _arranged(rows, consecutive, inverse)
        found = rows[first] if axis is None else moved[first]
    else:
        found, back, amounts = made
    place = input.device
    values = put(np.ascontiguousarray(found), place)
    results: list[Tensor] = [values if axis is None else moved_back(values, axis)]
    if not modes.state.mode & modes.NO_GRAD and input.dtype.is_floating_point and asks_grad(input):
        asked = "unique_consecutive" if consecutive else "_unique2" if axis is None else "unique_dim"
        results[0]._xt_edge = (underived(asked)((plain_edge(edge_of(input)),)), 0)
    if inverse:
        shape = tuple(sizes_of(input)) if axis is None else (len(rows),)
        results.append(put(back.reshape(shape), place))
    if counts:
        results.append(put(amounts, place))
    return results[0] if len(results) == 1 else tuple(results)


@bounded(16)
def underived(name: str) -> type[Node]:
    """The class of the nodes of an operator whose derivative PyTorch lacks: the graph says so when it is walked."""

    def apply(self: Any, grads: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    title = "".join([part.capitalize() for part in name.split("_")])
    return type(f"{title}Backward0", (Node,), {"__slots__": (), "apply": apply})


def _counted(values: Any, inverse: bool) -> tuple[Any, Any, Any] | None:
    """The distinct integers, where each element went, and how many there were, by counting; None where they lie too far apart."""
    if values.dtype.kind not in "iu" or not values.size:
        return None
    least = values.min()
    span = int(values.max()) - int(least)
    if span > 4 * values.size:
        return None
    # Of short signed integers the differences need more room; those of long ones are small.
    wide = values.astype(np.int64) if values.dtype.kind == "i" else values
    places = (wide - least.astype(wide.dtype)).astype(np.int64)
    counts = np.bincount(places)
    there = np.flatnonzero(counts)
    back = None
    if inverse:
        place = np.empty(span + 1, np.int64)
        place[there] = np.arange(there.size)
        back = place[places]
    found = (there.astype(wide.dtype) + least.astype(wide.dtype)).astype(values.dtype)
    return found, back, counts[there].astype(np.int64)


def _arranged(rows: Any, consecutive: bool, inverse: bool) -> tuple[Any, Any, Any]:
    """The first of each group of equal elements or rows, by sorting; which group each went to, and how many were in it."""
    n = len(rows)
    order_of = None
    if not consecutive and rows.ndim == 1:
        order_of = np.argsort(rows, kind="stable")
    elif not consecutive and rows.shape[1]:
        order_of = np.lexsort(rows.T[::-1])
    arranged = rows if order_of is None else rows[order_of]
    fresh = np.ones(n, bool)
    other = arranged[1:] != arranged[:-1]
    fresh[1:] = other if rows.ndim == 1 else other.any(axis=1)
    first = np.flatnonzero(fresh)
    back = None
    if inverse:
        group = np.cumsum(fresh) - 1
        back = group if order_of is None else np.empty(n, np.int64)
        if order_of is not None:
            back[order_of] = group
    return first if order_of is None else order_of[first], back, np.diff(first, append=n).astype(np.int64)


def moved_back(found: Tensor, axis: int) -> Tensor:
    """Slices that lie one after the other, seen along a dimension."""
    sizes, strides = list(sizes_of(found)), list(strides_of(found))
    sizes.insert(axis, sizes.pop(0))
    strides.insert(axis, strides.pop(0))
    return wrap_strided(array_of(found), tuple(sizes), tuple(strides))


def put(values: Any, place: Any) -> Tensor:
    return wrap(devices.put(values, place))


@of_tensors("_unique2")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements (or slices along `dim`) in order; with where each element went, and how many there were.

    Computed on the host, since the shape of the result depends on the values.

    Shape: `input` `(*)`; result `(n)`, or with `dim` as the input, with n there.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; TypeError for flags that
    are no bools.

    >>> xtensor.unique(xtensor.tensor([3, 1, 3, 2]), return_counts=True)
    (tensor([1, 2, 3]), tensor([1, 1, 2]))
    """
    name = "_unique2" if dim is None else "unique_dim"
    checks.check_bools(name, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    refuse_dynamic(input, "_unique2")
    return _unique("unique", input, return_inverse, return_counts, dim, False)


@of_tensors()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along `dim`) without those equal to the one before.

    Shape: `input` `(*)`; result `(n)`, or `(*)` with n along `dim`; inverse as `input` or that size, counts
    `(n)`.
    Computed on the host, since the shape of the result depends on the values.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; TypeError for flags that
    are no bools.
    """
    checks.check_bools("unique_consecutive", return_inverse=return_inverse, return_counts=return_counts)
    refuse_dynamic(input, "unique_consecutive")
    return _unique("unique_consecutive", input, return_inverse, return_counts, dim, True)


attach_methods(bincount, histc, median, nanmedian, nanquantile, quantile, unique, unique_consecutive)
