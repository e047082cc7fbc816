"""Primitives that move elements: other sizes and orders, and parts, also at places that are not known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ..dims import size_of
from .building import LARGEST, Builder, Untranslated, Value
from .kernels import Pair, Primitives, primitive

__all__ = ["Params", "Results", "fixed", "offsets", "padded", "strides_of"]

Results = Sequence[Any]
Params = dict[str, Any]


def fixed(*shapes: Sequence[Any]) -> None:
    """Refuse open sizes."""
    if not all(isinstance(s, int) for shape in shapes for s in shape):
        raise Untranslated("a kernel that counts elements over open sizes has no form in ONNX here")


# ---- sizes and orders


@primitive("broadcast_in_dim", moves=True)
def broadcast(p: Primitives, params: Params, results: Results, x: Value, *sizes: Any) -> Value:
    b, shape, dims = p.builder, results[0].shape, params["broadcast_dimensions"]
    places = [1] * len(shape)
    for at, dim in enumerate(dims):
        places[dim] = x.shape[at]
    return b.expand(b.reshape(x, places), shape)


@primitive("reshape", "squeeze", "expand_dims", moves=True)
def reshape(p: Primitives, params: Params, results: Results, x: Value, *sizes: Any) -> Value:
    return p.builder.reshape(x, results[0].shape)


@primitive("transpose", moves=True)
def transpose(p: Primitives, params: Params, results: Results, x: Value) -> Value:
    return p.builder.transpose(x, params["permutation"])


@primitive("rev", moves=True)
def reverse(p: Primitives, params: Params, results: Results, x: Value) -> Value:
    return reversed_along(p.builder, x, params["dimensions"])


def reversed_along(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    """The elements the other way round."""
    if not dims:
        return x
    steps, ends = [-1] * len(dims), [-LARGEST - 1] * len(dims)
    return b.op("Slice", x, b.constant(steps), b.constant(ends), b.constant(list(dims)), b.constant(steps))


@primitive("concatenate", moves=True)
def concatenate(p: Primitives, params: Params, results: Results, *parts: Value) -> Value:
    return p.builder.op("Concat", *parts, axis=params["dimension"], shape=results[0].shape)


@primitive("stack", moves=True)
def stack(p: Primitives, params: Params, results: Results, *parts: Value) -> Value:
    b, axis = p.builder, params["axis"]
    rows = [b.op("Unsqueeze", part, b.constant([axis])) for part in parts]
    return b.op("Concat", *rows, axis=axis, shape=results[0].shape)


@primitive("split", moves=True)
def split(p: Primitives, params: Params, results: Results, x: Value) -> list[Value]:
    sizes = [int(s) for s in params["sizes"]]
    return p.builder.ops("Split", x, p.builder.constant(sizes), count=len(sizes), axis=params["axis"])


@primitive("slice", moves=True)
def slice_(p: Primitives, params: Params, results: Results, x: Value) -> Value:
    starts, ends = params["start_indices"], params["limit_indices"]
    steps = params["strides"] or [1] * len(starts)
    return sliced(p.builder, x, starts, ends, steps, results[0].shape)


def sliced(b: Builder, x: Value, starts: Any, ends: Any, steps: Any, shape: Any) -> Value:
    """A part of a tensor."""
    starts, ends = list(map(size_of, starts)), list(map(size_of, ends))
    dims = [d for d in range(x.rank) if (starts[d], ends[d], steps[d]) != (0, x.shape[d], 1)]
    if not dims:
        return x
    given = [b.sized([each[d] for d in dims]) for each in (starts, ends)]
    return b.op("Slice", x, *given, b.constant(dims), b.constant([int(steps[d]) for d in dims]), shape=shape)


@primitive("pad", moves=True)
def pad(p: Primitives, params: Params, results: Results, x: Value, value: Value) -> Value:
    return padded(p.builder, x, value, params["padding_config"], results[0].shape)


def padded(b: Builder, x: Value, value: Value, config: Any, shape: Any) -> Value:
    """A tensor with something around and between its elements; less than nothing cuts off."""
    for dim, (_, _, between) in enumerate(config):
        if between:
            fixed([x.shape[dim]])
            size = x.shape[dim]
            rows = b.op("Unsqueeze", x, b.constant([dim + 1]))._replace(
                shape=(*x.shape[: dim + 1], 1, *x.shape[dim + 1 :])
            )
            more = [0] * (2 * rows.rank)
            more[rows.rank + dim + 1] = between
            wide = [*x.shape[:dim], size, between + 1, *x.shape[dim + 1 :]]
            rows = b.op("Pad", rows, b.constant(more), value, shape=wide)
            merged = [*x.shape[:dim], size * (between + 1), *x.shape[dim + 1 :]]
            x = b.reshape(rows, merged)
            ends = [*merged]
            ends[dim] = max(size * (between + 1) - between, 0)
            x = sliced(b, x, [0] * x.rank, ends, [1] * x.rank, ends)
    before, after = [c[0] for c in config], [c[1] for c in config]
    if any(v > 0 for v in (*before, *after)):
        sizes = [
            n if not isinstance(n, int) else n + max(i, 0) + max(j, 0)
            for n, i, j in zip(x.shape, before, after, strict=True)
        ]
        x = b.op("Pad", x, b.constant([max(v, 0) for v in (*before, *after)]), value, shape=sizes)
    if any(v < 0 for v in (*before, *after)):
        starts = [max(-v, 0) for v in before]
        ends = [min(v, 0) or LARGEST for v in after]
        dims = list(range(x.rank))
        x = b.op("Slice", x, b.constant(starts), b.constant(ends), b.constant(dims), shape=shape)
    return x._replace(shape=tuple(shape))


@primitive("iota")
def iota(p: Primitives, params: Params, results: Results, *sizes: Any) -> Value:
    b, shape, dim = p.builder, results[0].shape, params["dimension"]
    kind = results[0].dtype
    if all(isinstance(s, int) for s in shape) and math.prod(shape) <= 65536:
        places = [1] * len(shape)
        places[dim] = -1
        return b.constant(np.broadcast_to(np.arange(shape[dim]).reshape(places), shape), kind)
    row = b.op(
        "Range",
        b.constant(0),
        b.scalar_size(shape[dim]),
        b.constant(1),
        dtype=dtypes.int64,
        shape=(shape[dim],),
    )
    column: list[Any] = [1] * len(shape)
    column[dim] = shape[dim]
    return b.expand(b.reshape(b.cast(row, kind), column), shape)


@primitive("dim_as_value")
def size(p: Primitives, params: Params, results: Results) -> Value:
    return p.builder.cast(p.builder.scalar_size(size_of(params["dim"])), results[0].dtype)


# ---- parts at places that are not known


def clamped_starts(
    b: Builder, starts: Sequence[Value], shape: Sequence[int], sizes: Sequence[int]
) -> list[Value]:
    """Where a part begins, so that it lies within."""
    return [
        b.op("Min", b.op("Max", b.cast(s, dtypes.int64), b.constant(0)), b.constant(n - k))
        for s, n, k in zip(starts, shape, sizes, strict=True)
    ]


@primitive("dynamic_slice", pairs=True)
def dynamic_slice(p: Primitives, params: Params, results: Results, x: Any, *starts: Value) -> Any:
    if isinstance(x, Pair):
        return Pair(*[dynamic_slice(p, params, results, part, *starts) for part in x])
    b, sizes = p.builder, params["slice_sizes"]
    if not x.rank:
        return x
    fixed(x.shape, sizes)
    rows = [b.reshape(s, [1]) for s in clamped_starts(b, starts, x.shape, sizes)]
    first = b.op("Concat", *rows, axis=0, shape=(x.rank,))
    last = b.op("Add", first, b.constant(list(sizes)))
    return b.op("Slice", x, first, last, b.constant(list(range(x.rank))), shape=sizes)


@primitive("dynamic_update_slice", pairs=True)
def dynamic_update_slice(
    p: Primitives, params: Params, results: Results, x: Any, update: Any, *starts: Value
) -> Any:
    if isinstance(x, Pair):
        return Pair(*[dynamic_update_slice(p, params, results, x[i], update[i], *starts) for i in range(2)])
    b = p.builder
    if not x.rank:
        return update
    fixed(x.shape, update.shape)
    strides = strides_of(x.shape)
    first = b.constant(0)
    for start, stride in zip(clamped_starts(b, starts, x.shape, update.shape), strides, strict=True):
        first = b.op("Add", first, b.op("Mul", start, b.constant(stride)))
    where = b.op(
        "Add",
        first,
        b.constant(offsets(update.shape, strides).reshape(-1, 1)),
        shape=(math.prod(update.shape), 1),
    )
    return written(b, x, where, b.reshape(update, [math.prod(update.shape)]), None)


def strides_of(shape: Sequence[int]) -> list[int]:
    """How far apart elements lie in memory."""
    return [math.prod(shape[d + 1 :]) for d in range(len(shape))]


def offsets(shape: Sequence[int], strides: Sequence[int]) -> np.ndarray[Any, Any]:
    """Where each element of a part lies, counted from the part's first."""
    found = np.zeros(tuple(shape), np.int64)
    for dim, stride in enumerate(strides):
        places = [1] * len(shape)
        places[dim] = -1
        found = found + (np.arange(shape[dim]) * stride).reshape(places)
    return found


def written(b: Builder, x: Value, where: Value, updates: Value, how: str | None) -> Value:
    """A tensor in whose memory elements are replaced, or joined with what is there."""
    flat = b.reshape(x, [math.prod(x.shape)])
    return b.reshape(b.op("ScatterND", flat, where, updates, reduction=how, like=flat), x.shape)
