"""Bags of embeddings: sums, means or maxima of rows of a table, without the rows in between."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...engine import modes
from ...operators.declare import general
from ...operators.functions.overloads import of_tensors
from ...operators.index_bounds import check_values, in_bounds, readable
from ...operators.schema import Array
from ...tensor import Tensor, array_of, sizes_of
from ..create.ranges import arange
from ..reduce.reductions import argument
from ..shape.joining import cat
from . import embedding
from .embedding import renormalise_rows

__all__ = ["embedding_bag"]

SUM, MEAN, MAX = 0, 1, 2
MODES = {"sum": SUM, "mean": MEAN, "max": MAX}


def bag_numbers(offsets: Any, count: int, include_last_offset: bool) -> Any:
    """The bag of each of `count` lookups."""
    begins = offsets[:-1] if include_last_offset else offsets
    place = jnp.arange(count, dtype=offsets.dtype)
    return (jnp.searchsorted(begins, place, side="right") - 1).astype(jnp.int32)


def lookups(indices: Any, rows: int, padding_idx: int | None) -> tuple[Any, Any]:
    """Which rows are looked up, and which of them count."""
    flat = indices.reshape(-1).astype(jnp.int32)
    used = jnp.ones(flat.shape, bool) if padding_idx is None else flat != padding_idx % max(rows, 1)
    return flat, used


def check_bags(weight: Any, indices: Any, offsets: Any, mode: int, per_sample_weights: Any) -> None:
    """PyTorch's errors for the dtypes and shapes of `embedding_bag`."""
    where = "embedding_bag"
    for x in (indices, offsets):
        checks.check_dtypes(where, argument(x, "indices", 1), dtypes.int64, dtypes.int32)
    floats = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
    checks.check_dtypes(where, argument(weight, "weight", 1), *floats)
    if mode not in (SUM, MEAN, MAX):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if indices.ndim not in (1, 2):
        raise RuntimeError(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {indices.ndim}")
    if offsets.ndim != 1:
        raise RuntimeError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.ndim}")
    if per_sample_weights is not None:
        if mode != SUM:
            raise RuntimeError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum'"
            )
        pair = argument(weight, "weight", 1), argument(per_sample_weights, "per_sample_weights", 1)
        checks.check_same_dtype(where, *pair)
        if per_sample_weights.shape != indices.shape:
            raise RuntimeError(
                "expected per_sample_weights to be 1D tensor with the same number of elements as input"
            )


def _weight_grad(
    grads: Any,
    indices: Any,
    offsets: Any,
    per_sample_weights: Any,
    result2: Any,
    result3: Any,
    weight_shape: Any,
    mode: int,
    scale_grad_by_freq: bool,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Any:
    grad = grads[0]
    rows, width = weight_shape
    grad = grad.astype(dtypes.compute_type(dtype_of(grad)).numpy)
    table = jnp.zeros((rows, width), grad.dtype)
    if mode == MAX:
        full = jnp.where((result2 > 0)[:, None], grad, jnp.zeros_like(grad))
        return table.at[result3.astype(jnp.int32), jnp.arange(width)].add(full)
    flat, used = lookups(indices, rows, padding_idx)
    if not flat.size or not grad.shape[0]:
        return table
    bag = bag_numbers(offsets, flat.size, include_last_offset)
    values = grad[bag]
    if mode == MEAN:
        values = values / jnp.maximum(result2, 1).astype(grad.dtype)[bag][:, None]
    if per_sample_weights is not None:
        values = values * per_sample_weights.astype(grad.dtype)[:, None]
    if scale_grad_by_freq:
        often = jnp.zeros((rows,), grad.dtype).at[flat].add(1)
        values = values / often[flat][:, None]
    return table.at[flat].add(jnp.where(used[:, None], values, jnp.zeros_like(values)))


def _sample_grad(
    grads: Any,
    weight: Any,
    indices: Any,
    offsets: Any,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Any:
    grad = grads[0]
    flat, used = lookups(indices, weight.shape[0], padding_idx)
    if not flat.size or not grad.shape[0]:
        return jnp.zeros(flat.shape, grad.dtype)
    bag = bag_numbers(offsets, flat.size, include_last_offset)
    wide = dtypes.compute_type(dtype_of(grad)).numpy
    dots = jnp.sum(grad[bag].astype(wide) * weight[flat].astype(wide), axis=1)
    return jnp.where(used, dots, jnp.zeros_like(dots))


@general(
    name="bags", node="EmbeddingBag", derivatives=dict(weight=_weight_grad, per_sample_weights=_sample_grad)
)
def bags(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Array, ...]:
    """`embedding_bag` as PyTorch's kernel has it: the bags, the bag of every lookup, their sizes, maxima's rows."""
    check_bags(weight, indices, offsets, mode, per_sample_weights)
    rows, width = weight.shape
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
        )
    if include_last_offset and not offsets.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    count = offsets.size - include_last_offset
    kind = jnp.promote_types(indices.dtype, offsets.dtype)
    flat, used = lookups(indices, rows, padding_idx)
    wide = dtypes.compute_type(dtype_of(weight)).numpy
    if not count or not flat.size:
        nothing = jnp.zeros((count, width), weight.dtype)
        sizes = jnp.zeros((count,), kind)
        return (
            nothing,
            jnp.zeros(flat.shape, kind),
            sizes,
            jnp.zeros((count, width) if mode == MAX else (count,), kind),
        )
    bag = bag_numbers(offsets, flat.size, include_last_offset)
    looked = weight.at[flat].get(mode="fill").astype(wide)
    sizes = jnp.zeros((count,), jnp.int32).at[bag].add(used.astype(jnp.int32))
    if mode == MAX:
        shown = jnp.where(used[:, None], looked, jnp.asarray(-jnp.inf, wide))
        best = jnp.full((count, width), -jnp.inf, wide).at[bag].max(shown)
        # The first of equals, as a running maximum finds it.
        number = jnp.arange(flat.size, dtype=jnp.int32)[:, None]
        chosen = jnp.where((shown == best[bag]) & used[:, None], number, flat.size)
        first = jnp.full((count, width), flat.size, jnp.int32).at[bag].min(chosen)
        filled = (sizes > 0)[:, None]
        out = jnp.where(filled, best, jnp.zeros_like(best))
        places = jnp.where(filled, flat[jnp.minimum(first, flat.size - 1)], 0)
        return out.astype(weight.dtype), bag.astype(kind), sizes.astype(kind), places.astype(kind)
    if per_sample_weights is not None:
        looked = looked * per_sample_weights.astype(wide)[:, None]
    looked = jnp.where(used[:, None], looked, jnp.zeros_like(looked))
    total = jnp.zeros((count, width), wide).at[bag].add(looked)
    if mode == MEAN:
        total = total / jnp.maximum(sizes, 1).astype(wide)[:, None]
    sizes = sizes.astype(kind)
    return total.astype(weight.dtype), bag.astype(kind), sizes, sizes


def check_lookups(input: Tensor, offsets: Tensor, rows: int, mode: int) -> None:
    """PyTorch's errors for values of indices and offsets, where looking at them costs no transfer."""
    array, begins = array_of(input), array_of(offsets)
    count = array.size

    def wrong(values: np.ndarray[Any, Any]) -> Exception | None:
        if values[0] != 0:
            return RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {values[0]}"
            )
        if values[-1] > count:
            return RuntimeError(
                f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {values[-1]}"
            )
        if (np.diff(values) < 0).any():
            return RuntimeError("offsets has to be sorted in ascending order")
        return None

    if begins.dtype.kind in "iu" and begins.size and begins.ndim == 1:
        check_values(begins, wrong)
    if array.dtype.kind in "iu" and readable(array) and not in_bounds(array, rows, False):
        values = np.asarray(array).reshape(-1)
        at = int(np.flatnonzero((values < 0) | (values >= rows))[0])
        if mode == MAX:
            raise RuntimeError(
                f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {values[at]}"
            )
        raise RuntimeError(
            f"Index {at} of input takes value {values[at]} which is not in the valid range [0, {rows})"
        )


@of_tensors()
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or max of the rows of `weight` in every bag; an empty bag gives zeros.

    Shape: `input` `(B, n)`, or `(n)` with `offsets` `(B)`; `weight` `(V, D)`; result `(B, D)`.
    `input` is `(B, N)`, one bag per row, or all bags one after the other with `offsets` where each begins. With
    `sparse` the gradient of `weight` is a sparse tensor. Differs from PyTorch: `scale_grad_by_freq` divides by how often an index occurs (PyTorch's CPU kernel
    takes another index's count), and on an accelerator an index out of range gives NaN.

    Raises: TypeError for arguments of other kinds; RuntimeError for complex, bool and integer tensors.
    """
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        checks.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same "
            f"shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        length = sizes_of(input)[1]
        offsets = arange(0, input.numel(), length, dtype=input.dtype, device=input.device)
        include_last_offset = False
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max":
        if scale_grad_by_freq:
            raise ValueError("max mode does not support scaling the gradient by the frequency")
        if sparse:
            raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        with modes.no_grad():
            renormalise_rows(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    check_lookups(input, offsets, sizes_of(weight)[0], MODES[mode])
    if sparse and embedding.sparse_rows is not None and embedding.follows(weight):
        return sparse_bags(
            weight,
            input,
            offsets,
            scale_grad_by_freq,
            mode,
            per_sample_weights,
            include_last_offset,
            padding_idx,
        )
    return bags(
        weight, input, offsets, scale_grad_by_freq, MODES[mode], sparse, per_sample_weights, include_last_offset,
        padding_idx,
    )[0]  # fmt: skip


def sparse_bags(
    weight: Tensor,
    input: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: str,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Tensor:
    """`embedding_bag` with a sparse gradient: bags of the rows, each looked up once for its place."""
    assert embedding.sparse_rows is not None
    padding = None if padding_idx is None else padding_idx % sizes_of(weight)[0]
    rows = embedding.sparse_rows(weight, input, padding, scale_grad_by_freq)
    places = arange(0, input.numel(), dtype=dtypes.int64, device=input.device)
    nowhere = None
    if padding_idx is not None:
        nowhere = input.numel()
        places = places.masked_fill(input == padding, nowhere)
        rows = cat([rows, rows.new_zeros((1, sizes_of(weight)[1]))])
    return bags(
        rows, places, offsets, False, MODES[mode], False, per_sample_weights, include_last_offset, nowhere
    )[0]
