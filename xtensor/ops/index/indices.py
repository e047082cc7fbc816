"""Indices made and taken apart, and reading and writing at indices under a mask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from ... import checks, dtypes, geometry
from ...operators.declare import composite, general
from ...operators.functions.overloads import of_tensors
from ...operators.schema import Array
from ...tensor import Size, Tensor
from ..create.ingest import tensor
from ..shape.joining import cat

__all__ = [
    "_chunk_cat",
    "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate",
    "broadcast_shapes",
    "nonzero_static",
    "unravel_index",
]


@general(method=True, out="exact", derivatives=None)
def nonzero_static(input: Array, *, size: int, fill_value: int = -1) -> Array:
    """The first `size` indices of what is not zero, one row each; rows that are left are `fill_value`.

    Shape: `input` `(*)` of d dimensions, result `(size, d)`.
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if input.ndim == 0:
        return jnp.zeros((size, 0), jnp.int64)
    if input.size == 0:
        return jnp.full((size, input.ndim), fill_value, jnp.int64)
    found = jnp.nonzero(input, size=size, fill_value=fill_value)
    return jnp.stack([f.astype(jnp.int64) for f in found], axis=1)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Flat indices as one tensor of indices for every dimension of `shape`."""
    checks.check_type(
        not (indices.is_complex() or indices.is_floating_point() or indices.dtype.name == "bool"),
        f"expected 'indices' to be integer dtype, but got {indices.dtype}",
    )
    if isinstance(shape, int):
        shape = (shape,)
    checks.check_type(
        isinstance(shape, Sequence), f"expected 'shape' to be int or sequence of ints, but got {type(shape)}"
    )
    for size in shape:
        checks.check_type(
            isinstance(size, int), f"expected 'shape' sequence to only contain ints, but got {type(size)}"
        )
    checks.check_value(
        all(size >= 0 for size in shape), f"'shape' cannot have negative values, but got {tuple(shape)}"
    )
    steps = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    steps, sizes = (tensor(x, dtype=dtypes.int64, device=indices.device) for x in (steps, list(shape)))
    return tuple(indices.unsqueeze(-1).floor_divide(steps).remainder(sizes).unbind(-1)) if shape else ()


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The sizes of the result of broadcasting tensors of these sizes."""
    given = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    for sizes in given:
        if any(s < 0 for s in sizes):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
    found = [1] * max(map(len, given), default=0)
    for number, sizes in enumerate(given):
        for d in range(-1, -len(sizes) - 1, -1):
            if sizes[d] != 1 and sizes[d] != found[d]:
                if found[d] != 1:
                    raise RuntimeError(
                        f"Attempting to broadcast a dimension of length {sizes[d]} at {d}! Mismatching argument at index "
                        f"{number} had {checks.spelled('Size')}({list(sizes)}); but expected shape should be broadcastable to {found}"
                    )
                found[d] = sizes[d]
    return Size(found)


def clamped(input: Tensor, indices: Sequence[Tensor | None]) -> tuple[Any, ...]:
    """Indices brought into their dimensions."""
    sizes = tuple(input.shape)
    return tuple(
        [
            slice(None) if index is None else index.clamp(-sizes[d], sizes[d] - 1)
            for d, index in enumerate(indices)
        ]
    )


@of_tensors()
def _unsafe_masked_index(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: float
) -> Tensor:
    """`input[indices]` where `mask` is true, `fill` elsewhere; indices are clamped to the sizes.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.
    """
    if not input.numel():
        return input.new_full(
            tuple(geometry.broadcast_shapes(*[tuple(i.shape) for i in indices if i is not None])), fill
        )
    return input[clamped(input, indices)].masked_fill(mask.logical_not(), fill)


@of_tensors()
def _unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    """`values`, where `mask` is true, added to a copy of `input` at indices clamped to the sizes.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.
    """
    if not input.numel():
        return input.clone()
    places: Any = [None if isinstance(i, slice) else i for i in clamped(input, indices)]
    return input.index_put(places, values.masked_fill(mask.logical_not(), 0), accumulate=True)


@composite(out="join")
def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Tensors cut into `num_chunks` along `dim`, padded with zeros, and laid side by side chunk by chunk.

    Raises: IndexError where `dim` is out of range.
    """
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    first = tensors[0]
    if any(t.dtype is not first.dtype for t in tensors):
        raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
    dim = checks.wrap_dim(dim, first.dim())
    parts = []
    for t in tensors:
        if t.dim() <= dim or not t.numel():
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if tuple(t.shape)[:dim] != tuple(first.shape)[:dim]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
        length = t.shape[dim]
        short = -(-length // num_chunks) * num_chunks - length
        if short:
            more = (*t.shape[:dim], short, *t.shape[dim + 1 :])
            t = cat([t, t.new_zeros(more)], dim)
        parts.append(t.reshape((*t.shape[:dim], num_chunks, -1)))
    return cat(parts, dim + 1)
