"""Primitives that take or replace elements at places that are operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode

from ....dtypes import FROM_NUMPY
from ....tensor import Tensor
from .moving import as_tensor, cut, permuted
from .table import Rule, asked, filled, op, rule

__all__: list[str] = []


def start_of(start: Any, size: Any, taken: Any) -> Any:
    """Where a part begins, so that it lies within."""
    if isinstance(start, Tensor):
        return clamped(start, size - taken)
    return max(0, min(int(start), size - taken))


def clamped(start: Tensor, last: Any) -> Tensor:
    """Places that are within, the last one included."""
    if isinstance(last, int):
        return op("clamp", start, 0, last)
    return op("minimum", op("clamp_min", start, 0), as_tensor(last).to(start.dtype))


def places(start: Any, taken: Any) -> Tensor:
    """The numbers of the elements of a part."""
    return op("add", op("arange", taken), start)


@rule("dynamic_slice", moves=True)
def dynamic_slice(equation: Any, x: Any, *starts: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    for dim, taken in enumerate(equation.params["slice_sizes"]):
        size = x.shape[dim]
        if taken == size:
            continue
        start = start_of(starts[dim], size, taken)
        if isinstance(start, Tensor):
            x = op("index_select", x, dim, places(start, taken))
        else:
            x = cut(x, dim, start, start + taken)
    return x


@rule("dynamic_update_slice", moves=True)
def dynamic_update_slice(equation: Any, x: Any, update: Any, *starts: Any) -> Any:
    x = filled(x, equation.invars[0].aval)
    update = filled(update, equation.invars[1].aval)
    found = [start_of(s, a, b) for s, a, b in zip(starts, x.shape, update.shape, strict=True)]
    if any(isinstance(s, Tensor) for s in found):
        rank = len(found)
        grid = [
            op("reshape", places(s, n), [n if d == dim else 1 for d in range(rank)])
            for dim, (s, n) in enumerate(zip(found, update.shape, strict=True))
        ]
        return asked("index_put", "default", x, grid, update)
    return put(x, update, found)


def put(x: Tensor, update: Tensor, starts: Sequence[Any]) -> Tensor:
    """A tensor with another one in its place from some elements on."""
    sizes = enumerate(zip(starts, update.shape, strict=True))
    parts = [(d, s, s + n) for d, (s, n) in sizes if n != x.shape[d]]
    bases = [x]
    for dim, start, end in parts:
        bases.append(cut(bases[-1], dim, start, end))
    for base, (dim, start, end) in zip(bases[-2::-1], reversed(parts), strict=True):
        update = asked("slice_scatter", "default", base, update, dim, start, end, 1)
    return update


def linear(
    indices: Tensor, dims: Any, shape: Any, sizes: Any, batching: Any, clip: bool
) -> tuple[Tensor, Any]:
    """The places of parts' first elements among all, and whether the parts lie within; None where they are made to."""
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    lead = list(indices.shape)[:-1]
    where = op("full", lead, 0, dtype=FROM_NUMPY[np.dtype(np.int64)])
    inside = None
    for at, dim in enumerate(dims):
        column = op("select", indices, -1, at).to(where.dtype)
        within = clamped(column, shape[dim] - sizes[dim])
        if not clip:
            hit = op("eq", within, column)
            inside = hit if inside is None else op("logical_and", inside, hit)
        where = op("add", where, op("mul", within, strides[dim]))
    for dim, batch in batching:
        numbers = op("mul", op("arange", lead[batch]), strides[dim])
        where = op("add", where, op("reshape", numbers, [-1] + [1] * (len(lead) - batch - 1)))
    return where, inside


def spread(where: Tensor, inside: Any, shape: Any, sizes: Any, left: Sequence[int]) -> tuple[Tensor, Any]:
    """The places of all elements of parts; the dimensions of the parts come last."""
    lead, rank = list(where.shape), len(left)
    found = op("reshape", where, [*lead, *[1] * rank])
    for at, dim in enumerate(left):
        steps = op("mul", op("arange", sizes[dim]), math.prod(shape[dim + 1 :]))
        found = op("add", found, op("reshape", steps, [-1] + [1] * (rank - at - 1)))
    return found, None if inside is None else op("reshape", inside, [*lead, *[1] * rank])


def ordered(rank: int, offset_dims: Sequence[int], lead: int) -> list[int]:
    """The order that puts the dimensions of parts, which come last, where they belong."""
    batch, part = iter(range(lead)), iter(range(lead, rank))
    return [next(part) if d in offset_dims else next(batch) for d in range(rank)]


def is_fill(mode: Any) -> bool:
    return mode is None or GatherScatterMode.from_any(mode) is GatherScatterMode.FILL_OR_DROP


def filler_of(dtype: Any, value: Any) -> Any:
    """What stands for an element that is not there."""
    if value is not None:
        return np.asarray(value).item()
    if dtype.is_floating_point or dtype.is_complex:
        return math.nan
    kind = np.dtype(dtype.numpy)
    if kind.kind == "b":
        return True
    return int(np.iinfo(kind).max if kind.kind == "u" else np.iinfo(kind).min)


def starts_of(indices: Any, shape: Any, dims: Sequence[int], sizes: Any, fill: bool) -> list[int] | None:
    """Where the only part begins that known indices name, so that it lies within; None where that is not so."""
    if isinstance(indices, Tensor) or any(n != 1 for n in indices.shape[:-1]):
        return None
    starts = [0] * len(shape)
    for dim, start in zip(dims, indices.reshape(-1), strict=True):
        starts[dim] = start_of(start, shape[dim], sizes[dim])
        if fill and starts[dim] != start:
            return None
    return starts


@rule("gather", placed=True)
def gather(equation: Any, x: Any, indices: Any, constant: Any) -> Tensor:
    params = equation.params
    x = filled(x, equation.invars[0].aval, constant)
    if not isinstance(indices, Tensor):
        indices = np.broadcast_to(indices, equation.invars[1].aval.shape)
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    fill = is_fill(params["mode"])
    shape, dims, collapsed = list(x.shape), numbers.start_index_map, numbers.collapsed_slice_dims
    batching = list(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    starts = None if batching else starts_of(indices, shape, dims, sizes, fill)
    if starts is not None:
        for dim, start in enumerate(starts):
            x = cut(x, dim, start, start + sizes[dim])
        return op("reshape", x, list(equation.outvars[0].aval.shape))
    indices = filled(indices, equation.invars[1].aval, constant)
    where, inside = linear(indices, dims, shape, sizes, batching, not fill)
    rank = len(equation.outvars[0].aval.shape)
    left = [d for d in range(len(shape)) if d not in {*collapsed, *numbers.operand_batching_dims}]
    order = ordered(rank, numbers.offset_dims, len(where.shape))
    if (
        len(dims) == 1
        and list(collapsed) == list(dims)
        and not batching
        and all(sizes[d] == shape[d] for d in left)
    ):
        dim = dims[0]
        column = clamped(op("select", indices, -1, 0), shape[dim] - 1)
        moved = permuted(x, [dim, *left])
        found = moved[column]
        if inside is not None:
            inside = op("reshape", inside, [*where.shape, *[1] * len(left)])
    else:
        at, inside = spread(where, inside, shape, sizes, left)
        found = op("reshape", x, [-1])[at]
    if inside is not None:
        found = op("where", inside, found, filler_of(x.dtype, params.get("fill_value")))
    return permuted(found, order)


REDUCED = {"mul": "prod", "min": "amin", "max": "amax"}


def scatterer(how: str) -> Rule:
    def run(equation: Any, x: Any, indices: Any, updates: Any, constant: Any) -> Tensor:
        params = equation.params
        x = filled(x, equation.invars[0].aval, constant)
        updates = filled(updates, equation.invars[2].aval, constant)
        if not isinstance(indices, Tensor):
            indices = np.broadcast_to(indices, equation.invars[1].aval.shape)
        numbers, shape = params["dimension_numbers"], list(x.shape)
        left = [
            d
            for d in range(len(shape))
            if d not in {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        ]
        window = list(numbers.update_window_dims)
        sizes = [1] * len(shape)
        for dim, of_update in zip(left, window, strict=True):
            sizes[dim] = updates.shape[of_update]
        batching = list(
            zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        )
        clip = not is_fill(params["mode"])
        dims = numbers.scatter_dims_to_operand_dims
        starts = None if batching or how else starts_of(indices, shape, dims, sizes, not clip)
        if starts is not None:
            return put(x, op("reshape", updates, sizes), starts)
        indices = filled(indices, equation.invars[1].aval, constant)
        where, inside = linear(indices, dims, shape, sizes, batching, clip)
        at, inside = spread(where, inside, shape, sizes, left)
        count = math.prod(shape)
        flat = op("reshape", x, [-1])
        if inside is not None:  # what lies outside goes behind the last element, which is cut off
            flat = op("constant_pad_nd", flat, [0, 1], 0)
            at = op("where", inside, at, count)
        order = [*[d for d in range(len(updates.shape)) if d not in window], *window]
        rows = op("reshape", permuted(updates, order), [-1])
        at = op("reshape", op("expand", at, [updates.shape[d] for d in order]), [-1])
        if how in REDUCED:
            found = op("scatter_reduce", flat, 0, at, rows, REDUCED[how])
        else:
            found = asked("index_put", "default", flat, [at], rows, how == "add")
        return op("reshape", cut(found, 0, 0, count), shape)

    return run


for name, how in (("", ""), ("-add", "add"), ("_add", "add"), ("-mul", "mul"), ("_mul", "mul"), ("-min", "min"), ("_min", "min"),
                  ("-max", "max"), ("_max", "max")):  # fmt: skip
    rule(f"scatter{name}", placed=True)(scatterer(how))
