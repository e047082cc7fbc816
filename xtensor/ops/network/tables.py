"""Sums of elements along a dimension that a table names: windows of several lengths, taps of resized images, and their gradients."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

__all__ = ["NONE", "combine", "transposed"]

NONE = -1  # an index that stands for no element
FEW = 16
"""Elements of a sum that are gathered each by itself."""


def combine(x: Any, axis: int, index: Any, weight: Any) -> Any:
    """The weighted sums of elements of `x` along one dimension."""
    shape, tail = x.shape, (1,) * (x.ndim - axis - 1)
    if index.shape[1] == 1 and (weight == 1).all():
        if index.shape[0] == shape[axis] and (index[:, 0] == np.arange(shape[axis])).all():
            return x
        if (index != NONE).all():
            return jnp.take(x, index[:, 0].astype(np.int32), axis=axis, mode="clip")
    if index.shape[1] <= FEW:
        # One gather for each: XLA computes what a gather of them all reads anew for every element.
        parts = [part for k in range(index.shape[1]) for part in tap(x, axis, index[:, k], weight[:, k])]
        return (
            functools.reduce(jnp.add, parts)
            if parts
            else jnp.zeros((*shape[:axis], len(index), *shape[axis + 1 :]), x.dtype)
        )
    flat = np.maximum(index, 0).astype(np.int32).reshape(-1)
    parts = jnp.take(x, flat, axis=axis, mode="clip").reshape(
        (*shape[:axis], *index.shape, *shape[axis + 1 :])
    )
    weighed = parts * jnp.asarray(weight.reshape(weight.shape + tail), x.dtype)
    if (index == NONE).any():
        present = (index != NONE).reshape(index.shape + tail)
        weighed = jnp.where(present, weighed, jnp.zeros((), x.dtype))
    return jnp.sum(weighed, axis=axis + 1)


def tap(x: Any, axis: int, index: Any, weight: Any) -> list[Any]:
    """One summand of `combine`; none where it names no element."""
    tail = (1,) * (x.ndim - axis - 1)
    present = index != NONE
    if not present.any():
        return []
    part = jnp.take(x, np.maximum(index, 0).astype(np.int32), axis=axis, mode="clip")
    if not (weight == 1).all():
        part = part * jnp.asarray(weight.reshape(-1, *tail), x.dtype)
    return [part if present.all() else jnp.where(present.reshape(-1, *tail), part, jnp.zeros((), x.dtype))]


def transposed(index: Any, weight: Any, size: int) -> tuple[Any, Any]:
    """The table of the gradient: for every input element the output elements that it went into."""
    out, count = index.shape
    source = index.reshape(-1)
    rows = np.repeat(np.arange(out), count)[source != NONE]
    values = weight.reshape(-1)[source != NONE]
    source = source[source != NONE]
    order = np.argsort(source, kind="stable")
    source, rows, values = source[order], rows[order], values[order]
    often = np.bincount(source, minlength=size)
    place = np.arange(source.size) - np.repeat(np.cumsum(often) - often, often)
    back = np.full((size, max(int(often.max(initial=0)), 1)), NONE)
    weights = np.zeros(back.shape, weight.dtype)
    back[source, place], weights[source, place] = rows, values
    return back, weights
