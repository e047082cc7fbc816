"""Reductions of the elements that a mask keeps, of sparse tensors: over what is stored, group by group."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..ops.create.creation import full, zeros
from ..tensor import Tensor
from .convert import as_coo, densify
from .elementwise import restored
from .layout import SparseTensor, elements, host, indices_from, is_coo
from .parts import at_places, coalesce, of_pattern, pattern_of, picked, sparse_dims
from .pattern import Pattern
from .reductions import dims_of

__all__ = ["masked_reduction"]

WAYS = {"sum": "sum", "mean": "sum", "prod": "prod", "amax": "amax", "amin": "amin"}

NOTHING = {"prod": 1, "amax": -float("inf"), "amin": float("inf")}
"""What these are of no elements."""


def kept(input: SparseTensor, mask: Tensor | None, name: str) -> SparseTensor:
    """The elements that count: those stored, or those at the places of a mask."""
    if mask is None:
        if name != "sum":
            raise ValueError(
                f"masked {name} expects explicit mask for {str(input.layout).partition('.')[2]} tensor input"
            )
        return coalesce(as_coo(input))
    whole = densify(mask) if isinstance(mask, SparseTensor) else mask
    coo = as_coo(input)
    held = np.broadcast_to(host(whole).astype(bool), tuple(input.shape))
    count = sparse_dims(coo)
    if held.ndim > count:
        held = held.reshape(*held.shape[:count], -1).any(-1)
    index = np.stack(np.nonzero(held)) if count else np.zeros((0, int(held)), np.int64)
    pattern = Pattern(index.astype(np.int64), tuple(input.shape)[:count])
    shape = (pattern.nnz, *coo.shape[count:])
    like = of_pattern(pattern, zeros(shape, dtype=coo.dtype, device=coo.device), tuple(coo.shape))
    return of_pattern(pattern, at_places(coo, like), tuple(coo.shape))


def masked_reduction(
    name: str,
    input: SparseTensor,
    dim: Any,
    keepdim: bool,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """`sum`, `mean`, `prod`, `amax` or `amin` of the elements that count, as a tensor of the same layout."""
    coo = kept(input, mask, name)
    dims, count = dims_of(dim, coo.dim()) if coo.dim() else (), sparse_dims(coo)
    values, pattern = elements(coo), pattern_of(coo)
    if dtype is not None:
        values = values.to(dtype)
    elif name in ("sum", "prod") and (values.dtype.is_integral or values.dtype is dtypes.bool):
        values = values.to(dtypes.int64)
    inner = [d - count + 1 for d in dims if d >= count]
    if inner:
        values = over_dense(WAYS[name], values, inner, keepdim)
    folded = [d for d in dims if d < count]
    size = tuple(1 if d in dims else s for d, s in enumerate(coo.shape) if keepdim or d not in dims)
    if keepdim:
        rows = [np.zeros_like(r) if d in folded else r for d, r in enumerate(pattern.indices)]
        index = np.stack(rows) if rows else pattern.indices
        sizes = tuple(1 if d in folded else s for d, s in enumerate(pattern.sizes))
    else:
        left = [d for d in range(count) if d not in folded]
        index, sizes = pattern.indices[left], tuple(pattern.sizes[d] for d in left)
    merged = Pattern(index, sizes).merged
    groups = len(merged.starts) if pattern.nnz else 0
    made = by_group(WAYS[name], values, merged.target, groups) if groups else values[:0]
    if name == "mean":
        lengths = np.diff(np.append(merged.starts, pattern.nnz)).astype(np.float64)
        shape = (-1, *(1,) * (made.dim() - 1))
        made = made / indices_from(lengths, made.device).to(made.dtype).reshape(shape)
    where = Pattern(index[:, merged.order[merged.starts]], sizes)
    if len(folded) == count and not pattern.nnz and name in NOTHING:
        # One element is left, folded of none.
        where = Pattern(np.zeros((len(sizes), 1), np.int64), sizes)
        made = nothing(name, values, size[len(sizes) :])
    found = of_pattern(where, made, size)
    return found if is_coo(input) else restored(found, input)


def nothing(name: str, like: Tensor, size: tuple[int, ...]) -> Tensor:
    """What a reduction of no elements is."""
    value = NOTHING[name]
    if value != 1 and not like.dtype.is_floating_point:
        limits = np.iinfo(like.dtype.numpy)
        value = limits.min if value < 0 else limits.max
    return full((1, *size), value, dtype=like.dtype, device=like.device)


def over_dense(way: str, values: Tensor, dims: list[int], keepdim: bool) -> Tensor:
    """The elements folded over dense dimensions."""
    if way != "prod":
        return getattr(values, way)(dims, keepdim=keepdim)
    for d in sorted(dims, reverse=True):
        values = values.prod(d, keepdim=keepdim)
    return values


def by_group(way: str, values: Tensor, target: np.ndarray[Any, Any], groups: int) -> Tensor:
    """The elements of each group folded."""
    place = indices_from(target, values.device)
    if way == "sum":
        start = zeros((groups, *values.shape[1:]), dtype=values.dtype, device=values.device)
        return start.index_add(0, place, values)
    first = picked(values.detach(), np.unique(target, return_index=True)[1])
    start = full(tuple(first.shape), 1, dtype=values.dtype, device=values.device) if way == "prod" else first
    spread = place.reshape(-1, *(1,) * (values.dim() - 1)).expand(tuple(values.shape))
    return start.scatter_reduce(0, spread, values, way, include_self=way == "prod")
