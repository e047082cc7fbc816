"""Reductions and normalizations of the elements that a mask keeps: `xtensor.masked`, the functions of `torch.masked`.

Every function takes `mask=`: a bool tensor that broadcasts to the input, True where an element counts. What does not
count is replaced by the operation's identity, so that a row without any gives that (for means and variances: NaN).
Tensors that carry a mask are in `masked_tensor.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from . import dtypes
from .masked_tensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor
from .operators.attach import named
from .ops.index.masks import where
from .ops.pointwise import activations, special
from .ops.reduce import cumulative, extrema, norms, reductions, statistics
from .sparse.layout import SparseTensor
from .sparse.masked_reductions import masked_reduction
from .tensor import Tensor, sizes_of

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "as_masked_tensor",
    "is_masked_tensor",
    "masked_tensor",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

Dims = int | Sequence[int] | None
Function = TypeVar("Function", bound=Callable[..., Tensor])
# ---- masks and dimensions ------------------------------------------------------------------------------------------


def spread_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The mask as bools in the shape of the input."""
    if not isinstance(mask, Tensor):
        raise ValueError(f"input mask must be a Tensor, got {type(mask).__name__}")
    if mask.dim() > input.dim():
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
        )
    return mask.broadcast_to(tuple(sizes_of(input))).to(dtypes.bool)


def kept(input: Tensor, mask: Tensor | None, identity: Any) -> Tensor:
    """The input with what does not count replaced by the operation's identity."""
    if mask is None:
        return input
    return where(spread_mask(input, mask), input, input.new_full((), identity))


def least(name: str, input: Tensor) -> Any:
    """What every value of the dtype is at least."""
    own = input.dtype
    if own.is_floating_point:
        return -math.inf
    if own.is_complex or own is dtypes.bool:
        raise NotImplementedError(f"identity of {name} on {own} input")
    return dtypes.iinfo(own).min


def largest(name: str, input: Tensor) -> Any:
    own = input.dtype
    if own.is_floating_point:
        return math.inf
    if own.is_complex or own is dtypes.bool:
        raise NotImplementedError(f"identity of {name} on {own} input")
    return dtypes.iinfo(own).max


def dims_of(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions, counted from the front and sorted; all for None."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    size = max(ndim, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -size <= d < size:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {d})"
            )
        found.append(d % size)
    return tuple(sorted(found))


def axis_of(dim: int, ndim: int) -> int:
    """One dimension, counted from the front; 0 of a tensor without any."""
    return (dims_of(dim, ndim) or (0,))[0]


def total_dtype(input: Tensor, dtype: dtypes.dtype | None) -> dtypes.dtype:
    """The dtype of a sum or product: int64 for shorter integers and bools."""
    if dtype is not None:
        return dtype
    short = input.dtype.is_integral or input.dtype is dtypes.bool
    return dtypes.int64 if short else input.dtype


def sparse_too(function: Function) -> Function:
    """The function, which answers for sparse tensors too: of what is stored, in their layout."""

    @functools.wraps(function)
    def reduced(
        input: Tensor,
        dim: Dims = None,
        *,
        keepdim: bool = False,
        dtype: dtypes.dtype | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if isinstance(input, SparseTensor):
            return masked_reduction(function.__name__, input, dim, keepdim, dtype, mask)
        return function(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)

    return cast("Function", reduced)


# ---- sums and products ---------------------------------------------------------------------------------------------


@sparse_too
def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the elements that count; 0 where none does.

    Shape: `input` `(*)`, `mask` broadcast to it; result without the dimensions `dim`, or with size 1 there if
    `keepdim`.

    Raises: IndexError where `dim` is out of range.
    """
    dims = dims_of(dim, input.dim())
    return reductions.sum(kept(input, mask, 0), dims, keepdim, dtype=total_dtype(input, dtype))


@sparse_too
def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the elements that count; 1 where none does.

    Shape: `input` `(*)`, `mask` broadcast to it; result without the dimensions `dim`, or with size 1 there if
    `keepdim`.

    Raises: IndexError where `dim` is out of range.
    """
    made = kept(input, mask, 1).to(total_dtype(input, dtype))
    for d in reversed(dims_of(dim, input.dim())):
        made = made.prod(d, keepdim)
    return made


def cumsum(
    input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The running sum along `dim` of the elements that count.

    Shape: `input` `(*)`, `mask` broadcast to it; result `(*)`.

    Raises: IndexError where `dim` is out of range.
    """
    return cumulative.cumsum(kept(input, mask, 0), axis_of(dim, input.dim()), dtype=dtype or input.dtype)


def cumprod(
    input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The running product along `dim` of the elements that count.

    Shape: `input` `(*)`, `mask` broadcast to it; result `(*)`.

    Raises: IndexError where `dim` is out of range.
    """
    return cumulative.cumprod(kept(input, mask, 1), axis_of(dim, input.dim()), dtype=dtype or input.dtype)


# ---- extrema -------------------------------------------------------------------------------------------------------


@sparse_too
def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest of the elements that count; the least value of the dtype where none does.

    Shape: `input` `(*)`, `mask` broadcast to it; result without the dimensions `dim`, or with size 1 there if
    `keepdim`.

    Raises: IndexError where `dim` is out of range.
    """
    made = kept(input, mask, least("amax", input) if mask is not None else None)
    return extrema.amax(made, dims_of(dim, input.dim()), keepdim).to(dtype or input.dtype)


@sparse_too
def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The least of the elements that count; the largest value of the dtype where none does.

    Shape: `input` `(*)`, `mask` broadcast to it; result without the dimensions `dim`, or with size 1 there if
    `keepdim`.

    Raises: IndexError where `dim` is out of range.
    """
    made = kept(input, mask, largest("amin", input) if mask is not None else None)
    return extrema.amin(made, dims_of(dim, input.dim()), keepdim).to(dtype or input.dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the largest of the elements that count, in the input's dtype as PyTorch's (or `dtype`).

    Shape: `input` `(*)`, `mask` broadcast to it; result without the dimension `dim`, or with size 1 there if
    `keepdim`.

    Raises: IndexError where `dim` is out of range.
    """
    made = kept(input, mask, least("argmax", input) if mask is not None else None)
    return extrema.argmax(made, dim, keepdim).to(dtype or input.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the least of the elements that count, in the input's dtype as PyTorch's (or `dtype`).

    Shape: `input` `(*)`, `mask` broadcast to it; result without the dimension `dim`, or with size 1 there if
    `keepdim`.

    Raises: IndexError where `dim` is out of range.
    """
    made = kept(input, mask, largest("argmin", input) if mask is not None else None)
    return extrema.argmin(made, dim, keepdim).to(dtype or input.dtype)


# ---- statistics ----------------------------------------------------------------------------------------------------


def count_of(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements count."""
    ones = input.new_ones(tuple(sizes_of(input)), dtype=dtypes.int64) if mask is None else mask
    return reductions.sum(ones, dims_of(dim, input.dim()), keepdim)


@sparse_too
def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the elements that count; NaN where none does.

    Shape: `input` `(*)`, `mask` broadcast to it; result without the dimensions `dim`, or with size 1 there if
    `keepdim`.

    Raises: IndexError where `dim` is out of range.
    """
    own = input.dtype if dtype is None else dtype
    if not (own.is_floating_point or own.is_complex):
        source = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {own}"
        )
    counting = None if mask is None else spread_mask(input, mask)
    total = sum(input, dim, keepdim=keepdim, dtype=own, mask=counting)
    return total / count_of(input, dim, keepdim, counting)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The lower median along `dim` of the elements that count; NaN where none does (ValueError for integers).

    Shape: `input` `(*)`, `mask` broadcast to it; result without the dimension `dim`, or with size 1 there if
    `keepdim`.

    Raises: IndexError where `dim` is out of range.
    """
    own = input.dtype if dtype is None else dtype
    axis = axis_of(dim, input.dim())
    floating = input.dtype.is_floating_point
    x = input if floating else input.to(dtypes.float32)
    found = statistics.nanmedian(kept(x, mask, math.nan), axis, keepdim).values
    if floating:
        return found
    if mask is not None and bool(found.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(own)


def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of the exponentials of the elements that count.

    Shape: `input` `(*)`, `mask` broadcast to it; result without the dimensions `dim`, or with size 1 there if
    `keepdim`.

    Raises: IndexError where `dim` is out of range.
    """
    identity = None
    if mask is not None:
        identity = -math.inf if input.dtype.is_complex else least("logsumexp", input)
    made = reductions.logsumexp(kept(input, mask, identity), dims_of(dim, input.dim()), keepdim)
    return made.to(dtype or input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: dtypes.dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """`log(exp(input) + exp(other))` of the elements that count, each by a mask of its own.

    Shape: `input` and `other` `(*)`, each mask broadcast to it; result `(*)`.

    Raises: RuntimeError where sizes do not fit.
    """
    a = kept(input, input_mask, least("logaddexp", input) if input_mask is not None else None)
    b = kept(other, other_mask, least("logaddexp", other) if other_mask is not None else None)
    return special.logaddexp(a, b).to(dtype or input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of order `ord` of the elements that count.

    Shape: `input` `(*)`, `mask` broadcast to it; result without the dimensions `dim`, or with size 1 there if
    `keepdim`.

    Raises: IndexError where `dim` is out of range.
    """
    made = kept(input, mask, math.inf if ord == -math.inf else 0)
    dims = dims_of(dim, input.dim())
    return norms.vector_norm(made, 2 if ord is None else ord, dims, keepdim, dtype=dtype or input.dtype)


def floating(kind: dtypes.dtype) -> dtypes.dtype:
    return kind if kind.is_floating_point or kind.is_complex else dtypes.float32


def spread(name: str, of_variance: Callable[[Tensor], Tensor], doc: str):
    """A function of the variance: of the elements that count, around their mean."""

    def over(
        input: Tensor,
        dim: Dims = None,
        unbiased: bool | None = None,
        *,
        correction: float | None = None,
        keepdim: bool = False,
        dtype: dtypes.dtype | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if unbiased is not None and correction is not None:
            raise AssertionError("Only one of unbiased and correction may be given")
        less = 1.0 if unbiased is None or unbiased else 0.0
        less = less if correction is None else float(correction)
        own = floating(input.dtype) if dtype is None else dtype
        wide = floating(own)
        counting = None if mask is None else spread_mask(input, mask)
        count = count_of(input, dim, True, counting)
        centre = sum(input, dim, keepdim=True, dtype=own, mask=counting) / count
        x = input - centre
        total = sum(x * x.conj(), dim, keepdim=keepdim, dtype=wide, mask=counting)
        if not keepdim:
            count = count.reshape(tuple(sizes_of(total)))
        if less:
            count = (count.to(wide.to_real() if wide.is_complex else wide) - less).clamp(min=0)
        return of_variance((total / count).to(own))

    shapes = "`input` `(*)`, `mask` broadcast to it; result without the dimensions `dim`, or with size 1 there if `keepdim`."
    return named(over, name, f"{doc}\n\nShape: {shapes}\n\nRaises: IndexError where `dim` is out of range.")


var = spread(
    "var",
    lambda variance: variance,
    "The variance of the elements that count: squares over the count less `correction` (1).",
)
std = spread("std", Tensor.sqrt, "The standard deviation of the elements that count, the root of `var`.")


# ---- normalizations ------------------------------------------------------------------------------------------------


def softmax(
    input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The softmax along `dim` of the elements that count; 0 for the others, NaN where none counts.

    Shape: `input` `(*)`, `mask` broadcast to it; result `(*)`.

    Raises: IndexError where `dim` is out of range.
    """
    made = kept(input, mask, least("amax", input) if mask is not None else None)
    return activations.softmax(made, axis_of(dim, input.dim()), dtype or input.dtype)


def log_softmax(
    input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of `softmax`.

    Shape: `input` `(*)`, `mask` broadcast to it; result `(*)`.

    Raises: IndexError where `dim` is out of range.
    """
    made = kept(input, mask, least("amax", input) if mask is not None else None)
    return activations.log_softmax(made, axis_of(dim, input.dim()), dtype or input.dtype)


def softmin(
    input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The softmax of the negated elements that count.

    Shape: `input` `(*)`, `mask` broadcast to it; result `(*)`.

    Raises: IndexError where `dim` is out of range.
    """
    made = kept(input, mask, largest("amin", input) if mask is not None else None)
    return activations.softmax(-made, axis_of(dim, input.dim()), dtype or input.dtype)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: dtypes.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements that count over their norm along `dim`, or over `eps` where that is larger; 0 for the others.

    Shape: `input` `(*)`, `mask` broadcast to it; result `(*)`.

    Raises: IndexError where `dim` is out of range; RuntimeError where sizes do not fit.
    """
    length = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return kept(input, mask, 0) / length.maximum(length.new_full((), eps))
