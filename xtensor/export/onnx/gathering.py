"""Primitives that take or replace elements by their places, put them in order, or accumulate them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ..dims import size_of
from .building import LARGEST, Builder, Untranslated, Value
from .kernels import Pair, Primitives, primitive
from .moving import Params, Results, fixed, offsets, strides_of

__all__: list[str] = []


def linear(
    b: Builder, indices: Value, dims: Sequence[int], shape: Any, sizes: Any, batching: Any, clip: bool
) -> tuple[Value, Value | None]:
    """The place of the first element of each part, and whether the part lies within; None where it surely does."""
    strides = strides_of(shape)
    lead = indices.shape[:-1]
    where, inside = b.constant(np.zeros(lead, np.int64)), None
    indices = b.cast(indices, dtypes.int64)
    for at, dim in enumerate(dims):
        column = b.op("Gather", indices, b.constant(at), axis=indices.rank - 1, shape=lead)
        last = b.constant(shape[dim] - sizes[dim])
        within = b.op("Min", b.op("Max", column, b.constant(0)), last)
        if not clip:
            hit = b.op("Equal", within, column, dtype=dtypes.bool)
            inside = hit if inside is None else b.op("And", inside, hit)
        where = b.op("Add", where, b.op("Mul", within, b.constant(strides[dim])), shape=lead)
    for dim, batch in batching:
        places = [1] * len(lead)
        places[batch] = -1
        where = b.op(
            "Add", where, b.constant((np.arange(lead[batch]) * strides[dim]).reshape(places)), shape=lead
        )
    return where, inside


@primitive("gather", pairs=True)
def gather(p: Primitives, params: Params, results: Results, x: Any, indices: Value) -> Any:
    if isinstance(x, Pair):
        return Pair(*[gather(p, params, results, part, indices) for part in x])
    b, numbers, sizes = p.builder, params["dimension_numbers"], list(map(size_of, params["slice_sizes"]))
    mode, shape = str(params["mode"]), results[0].shape
    fill = "FILL" in mode or params["mode"] is None
    collapsed, dims = numbers.collapsed_slice_dims, numbers.start_index_map
    rows = len(dims) == 1 and tuple(collapsed) == tuple(dims) and not numbers.operand_batching_dims
    if (
        rows
        and all(sizes[d] == x.shape[d] for d in range(x.rank) if d != dims[0])
        and isinstance(x.shape[dims[0]], int)
    ):
        return whole_rows(b, x, indices, numbers, fill, params.get("fill_value"), shape)
    fixed(x.shape, indices.shape)
    batching = list(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    where, inside = linear(b, indices, dims, x.shape, sizes, batching, not fill)
    gone = {*collapsed, *numbers.operand_batching_dims}
    left = [d for d in range(x.rank) if d not in gone]
    strides = strides_of(x.shape)
    parts = offsets([sizes[d] for d in left], [strides[d] for d in left])
    lead = list(where.shape)
    places = b.op(
        "Add", b.reshape(where, [*lead, *[1] * len(left)]), b.constant(parts), shape=(*lead, *parts.shape)
    )
    found = b.op("Gather", b.reshape(x, [math.prod(x.shape)]), places, axis=0, shape=places.shape)
    if inside is not None:
        hit = b.reshape(inside, [*lead, *[1] * len(left)])
        found = b.op("Where", hit, found, filler(b, x, params.get("fill_value")), like=found)
    return b.transpose(found, order_of(len(shape), numbers.offset_dims, len(lead)))


def order_of(rank: int, offset_dims: Sequence[int], lead: int) -> list[int]:
    """The order that puts the dimensions of parts, which come last, where they belong."""
    batch, part = iter(range(lead)), iter(range(lead, rank))
    return [next(part) if d in offset_dims else next(batch) for d in range(rank)]


def filler(b: Builder, x: Value, value: Any) -> Value:
    """What stands for an element that is not there."""
    if value is None:
        value = np.nan if x.dtype.is_floating_point else False if x.dtype is dtypes.bool else None
    if value is None:
        limits = np.iinfo(x.dtype.numpy)
        value = limits.max if limits.min == 0 else limits.min
    return b.constant(value, x.dtype)


def whole_rows(
    b: Builder, x: Value, indices: Value, numbers: Any, fill: bool, value: Any, shape: Any
) -> Value:
    """Rows of one dimension by their numbers."""
    (dim,) = numbers.start_index_map
    lead = indices.shape[:-1]
    column = b.reshape(b.cast(indices, dtypes.int64), lead)
    within = b.op("Min", b.op("Max", column, b.constant(0)), b.constant(x.shape[dim] - 1))
    sizes = [*lead, *[s for d, s in enumerate(x.shape) if d != dim]]
    if not x.shape[dim]:
        return b.expand(filler(b, x, value), shape)
    moved = b.transpose(x, [dim, *[d for d in range(x.rank) if d != dim]])
    found = b.op("Gather", moved, within, axis=0, shape=sizes)
    if fill:
        hit = b.reshape(b.op("Equal", within, column, dtype=dtypes.bool), [*lead, *[1] * (x.rank - 1)])
        found = b.op("Where", hit, found, filler(b, x, value), like=found)
    return b.transpose(found, order_of(len(shape), numbers.offset_dims, len(lead)))


def scatterer(how: str | None) -> Any:
    def run(p: Primitives, params: Params, results: Results, x: Any, indices: Value, updates: Any) -> Any:
        if isinstance(x, Pair):
            if how not in (None, "add"):
                raise Untranslated("products of complex numbers at the same place")
            return Pair(*[run(p, params, results, x[i], indices, updates[i]) for i in range(2)])
        b, numbers = p.builder, params["dimension_numbers"]
        fixed(x.shape, indices.shape, updates.shape)
        if not math.prod(updates.shape):
            return x
        gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        left = [d for d in range(x.rank) if d not in gone]
        sizes = [1] * x.rank
        for dim, of_update in zip(left, numbers.update_window_dims, strict=True):
            sizes[dim] = updates.shape[of_update]
        batching = list(
            zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        )
        clip = "CLIP" in str(params["mode"])
        where, inside = linear(
            b, indices, numbers.scatter_dims_to_operand_dims, x.shape, sizes, batching, clip
        )
        strides, count = strides_of(x.shape), math.prod(x.shape)
        parts = offsets([sizes[d] for d in left], [strides[d] for d in left])
        lead = list(where.shape)
        places = b.op(
            "Add", b.reshape(where, [*lead, *[1] * len(left)]), b.constant(parts), shape=(*lead, *parts.shape)
        )
        if inside is not None:
            # What lies outside goes to a place behind the last one, which is cut off.
            hit = b.reshape(inside, [*lead, *[1] * len(left)])
            places = b.op("Where", hit, places, b.constant(count), like=places)
        window = list(numbers.update_window_dims)
        order = [*[d for d in range(updates.rank) if d not in window], *window]
        rows = b.reshape(b.transpose(updates, order), [math.prod(updates.shape)])
        flat = b.op(
            "Concat", b.reshape(x, [count]), b.constant(np.zeros(1), x.dtype), axis=0, shape=(count + 1,)
        )
        found = b.op(
            "ScatterND",
            flat,
            b.reshape(places, [math.prod(updates.shape), 1]),
            rows,
            reduction=how,
            like=flat,
        )
        return b.reshape(b.slice(found, 0, 0, count)._replace(shape=(count,)), x.shape)

    return run


for name, kind in (("scatter", None), ("scatter-add", "add"), ("scatter_add", "add"), ("scatter-mul", "mul"), ("scatter_mul", "mul"),
                   ("scatter-min", "min"), ("scatter_min", "min"), ("scatter-max", "max"), ("scatter_max", "max")):  # fmt: skip
    primitive(name, pairs=True)(scatterer(kind))


# ---- orders and scans


def ranked(b: Builder, key: Value, dim: int) -> Value:
    """The numbers that put a dimension into ascending order, equal ones as they are."""
    size = key.shape[dim]
    if key.dtype is dtypes.bool:
        key = b.cast(key, dtypes.int32)
    source, odd = key, None
    if key.dtype.is_floating_point:
        odd = b.op("IsNaN", key, dtype=dtypes.bool)
        source = b.op("Where", odd, b.constant(np.inf, key.dtype), key, like=key)
    count = b.sized([size])
    wish: dict[str, Any] = dict(axis=dim, largest=0, sorted=1)
    _, found = b.ops("TopK", source, count, count=2, like=key, **wish)
    found = found._replace(dtype=dtypes.int64)
    if odd is None:
        return found
    # What is no number comes last.
    last = b.cast(b.op("GatherElements", odd, found, axis=dim, dtype=dtypes.bool), dtypes.int32)
    _, again = b.ops("TopK", last, count, count=2, like=key, **wish)
    return b.op("GatherElements", found, again._replace(dtype=dtypes.int64), axis=dim, like=found)


@primitive("sort")
def sort(p: Primitives, params: Params, results: Results, *operands: Value) -> list[Value]:
    b, dim = p.builder, params["dimension"]
    if not operands[0].rank:
        return list(operands)
    order: Any = None
    for key in operands[: params["num_keys"]][::-1]:
        moved = key if order is None else b.op("GatherElements", key, order, axis=dim, like=key)
        found = ranked(b, moved, dim)
        order = found if order is None else b.op("GatherElements", order, found, axis=dim, like=order)
    return [b.op("GatherElements", v, order, axis=dim, like=v) for v in operands]


@primitive("top_k")
def top(p: Primitives, params: Params, results: Results, x: Value) -> list[Value]:
    b, axis = p.builder, params.get("axis", x.rank - 1) % x.rank
    values, found = b.ops(
        "TopK", x, b.constant([params["k"]]), count=2, axis=axis, largest=1, sorted=1, shape=results[0].shape
    )
    return [values, found._replace(dtype=dtypes.int64)]


@primitive("cumsum", moves=True)
def cumsum(p: Primitives, params: Params, results: Results, x: Value) -> Value:
    return p.builder.op("CumSum", x, p.builder.constant(params["axis"]), reverse=int(params["reverse"]))


def accumulated(p: Primitives, x: Value, params: Params, first: Any, join: Any) -> Value:
    """Partial results of an operation that may be grouped: joined at distances of 1, 2, 4, ..."""
    b, axis = p.builder, params["axis"]
    fixed([x.shape[axis]])
    size, distance = x.shape[axis], 1
    while distance < size:
        edge = [*x.shape]
        edge[axis] = distance
        filling = b.expand(b.constant(first, x.dtype), edge)
        if params["reverse"]:
            parts = [b.slice(x, axis, distance, LARGEST), filling]
        else:
            parts = [filling, b.slice(x, axis, 0, size - distance)]
        x = join(b.op("Concat", *parts, axis=axis, shape=x.shape), x)
        distance *= 2
    return x


@primitive("cumprod")
def cumprod(p: Primitives, params: Params, results: Results, x: Value) -> Value:
    return accumulated(p, x, params, 1, lambda one, two: p.builder.op("Mul", one, two))


def running(kind: str) -> Any:
    def run(p: Primitives, params: Params, results: Results, x: Value) -> Value:
        if x.dtype.is_floating_point:
            least: Any = -np.inf if kind == "Max" else np.inf
        else:
            limits = np.iinfo(x.dtype.numpy)
            least = limits.min if kind == "Max" else limits.max
        return accumulated(p, x, params, least, lambda one, two: p.builder.op(kind, one, two))

    return run


primitive("cummax")(running("Max"))
primitive("cummin")(running("Min"))
