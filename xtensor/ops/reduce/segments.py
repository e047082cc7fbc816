"""Reductions of segments: runs of elements along one dimension, whose lengths or offsets are a tensor."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.functions.overloads import of_tensors
from ...operators.index_bounds import check_values
from ...operators.promotion import as_dtype
from ...operators.schema import Array
from ...tensor import Tensor, array_of, sizes_of

__all__ = ["_segment_reduce", "segment_reduce"]

KINDS = ("sum", "prod", "mean", "amax", "max", "amin", "min")
STARTS = {"sum": 0, "mean": 0, "prod": 1, "amax": -jnp.inf, "max": -jnp.inf, "amin": jnp.inf, "min": jnp.inf}


def spans(lengths: Any, count: int) -> tuple[Any, Any]:
    """The segment of every element, and whether it has one, from `(*, segments)` lengths: both `(*, count)`."""
    ends = jnp.cumsum(lengths, axis=-1)
    place = jnp.arange(count, dtype=ends.dtype)
    number = jnp.sum(place[:, None] >= ends[..., None, :], axis=-1)
    return number, number < lengths.shape[-1]


def reduced(kind: str, data: Any, lengths: Any, start: Any, axis: int, nothing: Any) -> Any:
    """The reduction of every segment, the dimension `axis` first among those that `lengths` has not; a mean of nothing is `nothing`."""
    count, segments = data.shape[axis], lengths.shape[-1]
    lead = data.shape[:axis]
    rows = data.reshape((math.prod(lead), *data.shape[axis:]))
    runs = lengths.reshape((rows.shape[0], segments))
    initial = jnp.full((segments, *rows.shape[2:]), start, data.dtype)

    def one(row: Any, run: Any) -> Any:
        number, inside = spans(run, count)
        at = jnp.where(inside, number, segments).astype(jnp.int32)
        places = initial.at[at]
        if kind in ("amax", "max"):
            return places.max(row, mode="drop")
        if kind in ("amin", "min"):
            return places.min(row, mode="drop")
        if kind == "prod":
            return places.multiply(row, mode="drop")
        total = places.add(row, mode="drop")
        if kind == "mean":
            share = run.astype(data.dtype).reshape((segments,) + (1,) * (row.ndim - 1))
            mean = total / jnp.where(share > 0, share, 1)
            return jnp.where(share > 0, mean, nothing)
        return total

    return jax.vmap(one)(rows, runs).reshape((*lead, segments, *data.shape[axis + 1 :]))


def _data_grad(
    grad: Array, result: Array, data: Array, lengths: Array, reduce: str, axis: int, initial: Any
) -> Array:
    count = data.shape[axis]
    flat = data.reshape((math.prod(data.shape[:axis]), *data.shape[axis:]))
    runs = lengths.reshape((flat.shape[0], lengths.shape[-1]))

    def one(row: Any, run: Any, g: Any, r: Any) -> Any:
        number, inside = spans(run, count)
        at = jnp.minimum(number, run.shape[0] - 1).astype(jnp.int32)
        keep = inside.reshape((count,) + (1,) * (row.ndim - 1))
        taken, mine = g[at], r[at]
        if reduce == "mean":
            taken = taken / jnp.maximum(run, 1)[at].astype(row.dtype).reshape(keep.shape)
        elif reduce in ("amax", "max", "amin", "min"):
            same = (row == mine) | jnp.isnan(row)
            ties = jnp.zeros(g.shape, row.dtype).at[at].add(jnp.where(keep & same, 1, 0).astype(row.dtype))
            taken = jnp.where(same, taken / jnp.maximum(ties, 1)[at], 0)
        elif reduce == "prod":
            start = 1 if initial is None else initial

            def beside(special: Any) -> Any:
                """How many other elements of the segment are such."""
                special = (keep & special).astype(jnp.int32)
                return jnp.zeros(g.shape, jnp.int32).at[at].add(special)[at] - special

            plain = (row != 0) & ~jnp.isnan(row)
            others = jnp.full(g.shape, start, row.dtype).at[at].multiply(jnp.where(keep & plain, row, 1))[at]
            others = jnp.where(beside(row == 0) > 0, 0, others / jnp.where(plain, row, 1))
            taken = taken * jnp.where(beside(jnp.isnan(row)) > 0, jnp.nan, others)
        return jnp.where(keep, taken, jnp.zeros_like(taken))

    g, r = (x.reshape((flat.shape[0], *x.shape[axis:])) for x in (grad, result))
    return jax.vmap(one)(flat, runs, g, r).reshape(data.shape)


@general(name="segment_reduce", derivatives=dict(data=_data_grad))
def by_lengths(data: Array, lengths: Array, reduce: str, axis: int = 0, initial: Any = None) -> Array:
    """`segment_reduce` with lengths."""
    own = dtype_of(data)
    if not own.is_floating_point:
        raise checks.not_implemented_for("_segment_reduce_cpu", own)
    wide = dtypes.compute_type(own)
    nothing = jnp.nan if initial is None else initial
    if data.shape[axis] == 0 or lengths.size == 0:
        start = nothing if reduce == "mean" else STARTS[reduce] if initial is None else initial
        return jnp.full((*data.shape[:axis], lengths.shape[-1], *data.shape[axis + 1 :]), start, data.dtype)
    start = STARTS[reduce] if initial is None else initial
    return reduced(reduce, as_dtype(data, wide), lengths, start, axis, nothing).astype(data.dtype)


@of_tensors()
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """The sum, prod, mean, max or min of every segment of the dimension `axis`.

    `lengths` (or `offsets`, one more) says how long each is, row by row where it has more than one dimension; they are
    checked, unless `unsafe`, where looking at them costs no transfer.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    if reduce not in KINDS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None:
        if offsets is None:
            raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
        lengths = offsets.diff()
    elif offsets is not None:
        raise RuntimeError("segment_reduce(): Only one of lengths or offsets may be defined.")
    axis = checks.wrap_dim(axis, data.dim())
    if lengths.dim() - 1 != axis:
        raise RuntimeError(
            "segment_reduce(): Expected lengths.dim() to be one more than the dimension that is reduced, and its leading "
            "dimensions to be those of data"
        )
    size = sizes_of(data)[axis]

    def wrong(values: np.ndarray[Any, Any]) -> Exception | None:
        if (values < 0).any():
            return RuntimeError("lengths contains negative value!")
        if offsets is None and (values.sum(axis=-1) != size).any():
            return RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
        return None

    if not unsafe:
        check_values(array_of(lengths), wrong)
    return by_lengths(data, lengths, reduce, axis, initial)


_segment_reduce = segment_reduce
