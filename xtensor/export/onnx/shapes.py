"""Translations of views, copies, joins, indices and new tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ..dims import Size
from .building import LARGEST, Builder, Untranslated, Value, dim_of, dims_of, product, translation

__all__: list[str] = []


def given(*values: Any) -> Any:
    """Sizes or dims given one by one, or as one sequence."""
    return values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values


# ---- views


@translation("view", "reshape", "_unsafe_view", "unflatten")
def view(b: Builder, input: Value, *shape: Any, **rest: Any) -> Value:
    return b.reshape(input, b.result.shape)


@translation("permute")
def permute(b: Builder, input: Value, *dims_: Any, dims: Any = None) -> Value:
    return b.transpose(input, [dim_of(d, input.rank) for d in (dims or given(*dims_))])


@translation("transpose", "swapaxes", "swapdims")
def transpose(b: Builder, input: Value, dim0: int, dim1: int) -> Value:
    order = list(range(input.rank))
    if order:
        one, two = dim_of(dim0, input.rank), dim_of(dim1, input.rank)
        order[one], order[two] = order[two], order[one]
    return b.transpose(input, order)


@translation("t", "reverse_dims", "matrix_transpose")
def t(b: Builder, input: Value) -> Value:
    if b.operator == "matrix_transpose":
        return transpose(b, input, -1, -2)
    return b.transpose(input, list(range(input.rank))[::-1])


@translation("movedim", "moveaxis")
def movedim(b: Builder, input: Value, source: Any, destination: Any) -> Value:
    sources, places = dims_of(source, input.rank), dims_of(destination, input.rank)
    order = [d for d in range(input.rank) if d not in sources]
    for place, dim in sorted(zip(places, sources, strict=True)):
        order.insert(place, dim)
    return b.transpose(input, order)


@translation("squeeze", "unsqueeze")
def squeeze(b: Builder, input: Value, *dims: Any, dim: Any = None) -> Value:
    return b.reshape(input, b.result.shape)


@translation("expand")
def expand(b: Builder, input: Value, *size_: Any, size: Any = None, implicit: bool = False) -> Value:
    return b.expand(input, b.result.shape)


@translation("select")
def select(b: Builder, input: Value, dim: int, index: Any) -> Value:
    if isinstance(index, Size):
        found = b.op("Gather", input, b.sized([index]), axis=dim_of(dim, input.rank))
        return b.reshape(found, b.result.shape)
    return b.op("Gather", input, b.constant(int(index)), axis=dim_of(dim, input.rank), shape=b.result.shape)


@translation("slice", "narrow")
def slice_(
    b: Builder, self: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1, **rest: Any
) -> Value:
    if b.operator == "narrow" and isinstance(start, int) and isinstance(end, int):
        # `narrow` has a length in the place of an end.
        start = start + self.shape[dim_of(dim, self.rank)] if start < 0 else start
        end = start + end
    elif b.operator == "narrow":
        raise Untranslated("narrow by sizes that are not known")
    found = b.slice(
        self, dim_of(dim, self.rank), 0 if start is None else start, LARGEST if end is None else end, step
    )
    return found._replace(shape=b.result.shape)


@translation(
    "split", "chunk", "split_with_sizes", "tensor_split", "equal_split", "hsplit", "vsplit", "dsplit"
)
def split(b: Builder, tensor: Value, *rest: Any, dim: int = 0, **more: Any) -> Any:
    metas = b.results
    if len(rest) > 1:
        dim = rest[1]
    if b.operator in ("hsplit", "vsplit", "dsplit"):
        dim = {"hsplit": 1 if tensor.rank > 1 else 0, "vsplit": 0, "dsplit": 2}[b.operator]
    at = dim_of(dim, tensor.rank)
    sizes = [m.shape[at] for m in metas]
    if not all(isinstance(s, int) for s in sizes):
        raise Untranslated(f"{b.operator} of an open size")
    found = b.ops("Split", tensor, b.constant(sizes), count=len(sizes), axis=at)
    return tuple([v._replace(shape=m.shape) for v, m in zip(found, metas, strict=True)])


@translation("unbind")
def unbind(b: Builder, input: Value, dim: int = 0) -> Any:
    at = dim_of(dim, input.rank)
    return tuple(
        [b.op("Gather", input, b.constant(i), axis=at, shape=m.shape) for i, m in enumerate(b.results)]
    )


@translation("diagonal")
def diagonal(b: Builder, input: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    one, two = dim_of(dim1, input.rank), dim_of(dim2, input.rank)
    rows, columns = input.shape[one], input.shape[two]
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise Untranslated("diagonal of open sizes")
    order = [d for d in range(input.rank) if d not in (one, two)]
    count = b.result.shape[-1]
    flat = b.reshape(
        b.transpose(input, [*order, one, two]), [*[input.shape[d] for d in order], rows * columns]
    )
    start = -offset * columns if offset < 0 else offset
    where = np.arange(count) * (columns + 1) + start
    return b.op("Gather", flat, b.constant(where), axis=len(order), shape=b.result.shape)


@translation("unfold")
def unfold(b: Builder, input: Value, dimension: int, size: int, step: int) -> Value:
    if not input.rank:
        raise Untranslated("unfold of a tensor without dimensions")
    at = dim_of(dimension, input.rank)
    count = b.result.shape[at]
    if not isinstance(count, int):
        raise Untranslated("unfold of an open size")
    where = np.arange(count)[:, None] * step + np.arange(size)
    found = b.op("Gather", input, b.constant(where), axis=at)
    shape = [*input.shape[:at], count, size, *input.shape[at + 1 :]]
    found = found._replace(shape=tuple(shape))
    return b.transpose(found, [*[d for d in range(input.rank + 1) if d != at + 1], at + 1])


@translation(
    "detach",
    "alias",
    "lift_fresh",
    "contiguous",
    "clone",
    "requires_grad_",
    "resolve_conj",
    "resolve_neg",
    "conj_physical",
)
def same(b: Builder, input: Value, *rest: Any, **more: Any) -> Value:
    return input


@translation("_to_copy", "to", "type", "float", "double", "half", "bfloat16", "int", "long", "short", "bool")
def to_copy(b: Builder, input: Value, *rest: Any, **more: Any) -> Value:
    return b.cast(input, b.result.dtype)


# ---- joins and repetitions


@translation("cat", "concat", "concatenate")
def cat(b: Builder, tensors: Sequence[Value], dim: int = 0, *, axis: Any = None, **rest: Any) -> Value:
    parts = [t for t in tensors if t.shape != (0,)]
    parts = [b.cast(t, b.result.dtype) for t in parts] or [tensors[0]]
    return b.op(
        "Concat", *parts, axis=dim_of(dim if axis is None else axis, parts[0].rank), shape=b.result.shape
    )


@translation("stack")
def stack(b: Builder, tensors: Sequence[Value], dim: int = 0, **rest: Any) -> Value:
    at = dim_of(dim, tensors[0].rank + 1)
    parts = []
    for tensor in tensors:
        shape = (*tensor.shape[:at], 1, *tensor.shape[at:])
        parts.append(b.cast(b.op("Unsqueeze", tensor, b.constant([at]), shape=shape), b.result.dtype))
    return b.op("Concat", *parts, axis=at, shape=b.result.shape)


@translation("repeat")
def repeat(b: Builder, input: Value, *repeats_: Any, repeats: Any = None) -> Value:
    times = list(repeats or given(*repeats_))
    source = b.reshape(input, [*([1] * (len(times) - input.rank)), *input.shape])
    return b.op("Tile", source, b.sized(times), shape=b.result.shape)


@translation("flip")
def flip(b: Builder, input: Value, *dims_: Any, dims: Any = None) -> Value:
    axes = [dim_of(d, input.rank) for d in (dims if dims is not None else given(*dims_))]
    if not axes:
        return input
    ends = [b.constant([value] * len(axes)) for value in (-1, -LARGEST - 1)]
    return b.op("Slice", input, ends[0], ends[1], b.constant(axes), b.constant([-1] * len(axes)))


@translation("roll")
def roll(b: Builder, input: Value, shifts: Any, dims: Any = ()) -> Value:
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    axes = [dims] if isinstance(dims, int) else list(dims)
    found = input if axes else b.reshape(input, [product(input.shape)])
    for shift, dim in zip(shifts, axes or [0], strict=True):
        at = dim_of(dim, found.rank)
        # The last ones come first.
        last = b.slice(found, at, -shift if shift > 0 else abs(shift), LARGEST)
        first = b.slice(found, at, 0, -shift if shift > 0 else abs(shift))
        if shift:
            found = b.op("Concat", last, first, axis=at, shape=found.shape)
    return b.reshape(found, input.shape)


@translation("tril", "triu")
def tril(b: Builder, input: Value, diagonal: int = 0, **rest: Any) -> Value:
    if input.dtype is dtypes.bool:
        found = b.op(
            "Trilu", b.cast(input, dtypes.int32), b.constant(diagonal), upper=int(b.operator == "triu")
        )
        return b.cast(found, dtypes.bool)
    return b.op("Trilu", input, b.constant(diagonal), upper=int(b.operator == "triu"))


@translation("pixel_shuffle", "pixel_unshuffle")
def pixel_shuffle(b: Builder, input: Value, factor: int) -> Value:
    lead, sizes = list(input.shape[:-3]), input.shape[-3:]
    four = b.reshape(input, [product([*lead, 1]), *sizes]) if input.rank != 4 else input
    if b.operator == "pixel_shuffle":
        found = b.op("DepthToSpace", four, blocksize=factor, mode="CRD")
    else:
        batch, channels, rows, columns = four.shape
        cut = b.reshape(four, [batch, channels, rows // factor, factor, columns // factor, factor])
        found = b.transpose(cut, [0, 1, 3, 5, 2, 4])
    return b.reshape(found._replace(shape=()), b.result.shape)


@translation("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(b: Builder, input: Value, groups: int) -> Value:
    batch, channels, *rest = input.shape
    cut = b.reshape(input, [batch, groups, channels // groups, *rest])
    return b.reshape(b.transpose(cut, [0, 2, 1, *range(3, cut.rank)]), input.shape)


@translation("constant_pad_nd", "border_pad")
def pad(b: Builder, input: Value, pad: Sequence[int], value: Any = 0) -> Value:
    mode = (
        "constant"
        if b.operator == "constant_pad_nd"
        else {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[value]
    )
    count = len(pad) // 2
    before, after = [0] * input.rank, [0] * input.rank
    for i in range(count):
        before[input.rank - 1 - i], after[input.rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    if mode == "wrap" and b.opset < 19:
        found = input
        for dim in range(input.rank):
            if before[dim] or after[dim]:
                parts = [b.slice(found, dim, -before[dim], LARGEST)] if before[dim] else []
                parts += [found, *([b.slice(found, dim, 0, after[dim])] if after[dim] else [])]
                shape = tuple([b.result.shape[d] if d <= dim else s for d, s in enumerate(found.shape)])
                found = b.op("Concat", *parts, axis=dim, shape=shape)
        return found
    fill = [b.number(value, input)] if mode == "constant" else []
    return b.op("Pad", input, b.constant([*before, *after]), *fill, mode=mode, shape=b.result.shape)


# ---- indices


@translation("gather")
def gather(b: Builder, input: Value, dim: int, index: Value, **rest: Any) -> Value:
    at = dim_of(dim, input.rank)
    if not input.rank:
        return b.reshape(input, index.shape)
    source = input
    for d in range(input.rank):
        if d != at and index.shape[d] != input.shape[d]:
            source = b.slice(source, d, 0, index.shape[d])
    return b.op("GatherElements", source, index, axis=at, dtype=input.dtype, shape=index.shape)


@translation("index_select")
def index_select(b: Builder, input: Value, dim: int, index: Value, **rest: Any) -> Value:
    if not input.rank or index.rank != 1:
        raise Untranslated("index_select of a tensor without dimensions")
    return b.op("Gather", input, index, axis=dim_of(dim, input.rank), shape=b.result.shape)


@translation("take")
def take(b: Builder, input: Value, index: Value, **rest: Any) -> Value:
    flat = b.op("Reshape", input, b.constant([-1]), shape=(product(input.shape),))
    return b.op("Gather", flat, index, axis=0, shape=b.result.shape)


@translation("embedding")
def embedding(b: Builder, weight: Value, indices: Value, *rest: Any, **more: Any) -> Value:
    return b.op("Gather", weight, indices, axis=0, shape=b.result.shape)


@translation("index")
def index(b: Builder, input: Value, indices: Sequence[Value], *, dims: Sequence[int]) -> Value:
    dims = list(dims)
    if any(i.dtype is dtypes.bool for i in indices):
        raise Untranslated("an index that is a mask gives as many elements as there are")
    if len(dims) == 1:
        return b.op("Gather", input, indices[0], axis=dims[0], shape=b.result.shape)
    if dims != list(range(len(dims))):
        raise Untranslated("several index tensors that do not stand first")
    columns = [b.expand(i, b.broadcast([j.shape for j in indices])) for i in indices]
    columns = [b.op("Unsqueeze", c, b.constant([c.rank]), shape=(*c.shape, 1)) for c in columns]
    stacked = b.op("Concat", *columns, axis=columns[0].rank - 1, shape=(*columns[0].shape[:-1], len(columns)))
    return b.op("GatherND", input, stacked, shape=b.result.shape)


@translation("scatter")
def scatter(
    b: Builder,
    input: Value,
    dim: int,
    index: Value,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
    **rest: Any,
) -> Value:
    if not input.rank or not index.rank or 0 in index.shape:
        raise Untranslated(f"{b.operator} of no elements, or of a tensor without dimensions")
    wish = src if src is not None else value
    at = dim_of(dim, input.rank)
    if isinstance(wish, Value):
        source = wish
        for d in range(index.rank):
            if source.shape[d] != index.shape[d]:
                source = b.slice(source, d, 0, index.shape[d])
    else:
        source = b.expand(b.number(wish, input), index.shape)
    how = {"add": "add", "multiply": "mul"}.get(reduce)
    return b.op("ScatterElements", input, index, source, axis=at, reduction=how, like=input)


@translation("scatter_add")
def scatter_add(b: Builder, input: Value, dim: int, index: Value, src: Value, **rest: Any) -> Value:
    return scatter(b, input, dim, index, src, reduce="add")


@translation("index_fill")
def index_fill(b: Builder, input: Value, dim: int, index: Value, value: Any) -> Value:
    at = dim_of(dim, input.rank)
    size = input.shape[at]
    if not isinstance(size, int):
        raise Untranslated("index_fill of an open size")
    where = b.op(
        "Equal",
        b.op("Unsqueeze", index, b.constant([0])),
        b.constant(np.arange(size)[:, None]),
        dtype=dtypes.bool,
    )
    hit = b.cast(b.op("ReduceMax", b.cast(where, dtypes.int32), b.constant([1]), keepdims=0), dtypes.bool)
    hit = b.reshape(hit._replace(shape=(size,)), [size, *([1] * (input.rank - 1 - at))])
    return b.op("Where", hit, b.number(value, input), input, like=input)


@translation("one_hot_kernel", "one_hot")
def one_hot(b: Builder, tensor: Value, num_classes: int = -1) -> Value:
    values = b.constant([0, 1])
    return b.op(
        "OneHot", tensor, b.constant(num_classes), values, axis=-1, dtype=dtypes.int64, shape=b.result.shape
    )


# ---- new tensors


def filled(b: Builder, value: Any) -> Value:
    """A tensor of one value, of the result's sizes and dtype."""
    return b.expand(b.constant(value, b.result.dtype), b.result.shape)


@translation(
    "zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty", "new_empty_strided", "zero"
)
def zeros(b: Builder, *args: Any, **rest: Any) -> Value:
    return filled(b, 0)


@translation("ones", "ones_like", "new_ones")
def ones(b: Builder, *args: Any, **rest: Any) -> Value:
    return filled(b, 1)


@translation("full", "full_like", "new_full", "fill")
def full(b: Builder, first: Any, *args: Any, fill_value: Any = None, value: Any = None, **rest: Any) -> Value:
    wish = fill_value if fill_value is not None else value if value is not None else args[-1]
    if isinstance(wish, Value):
        return b.expand(b.cast(wish, b.result.dtype), b.result.shape)
    return filled(b, wish)


@translation("copy")
def copy(b: Builder, self: Value, src: Any, *rest: Any, **more: Any) -> Value:
    return b.expand(b.number(src, self), self.shape)


@translation("arange")
def arange(
    b: Builder, *args: Any, start: Any = None, end: Any = None, step: Any = None, **rest: Any
) -> Value:
    bounds = list(args)
    if len(bounds) == 1 and end is None:
        start, end = 0, bounds[0]
    else:
        start, end, step = [*bounds, *[None] * 3][:3] if bounds else (start, end, step)
    start, step = start or 0, 1 if step is None else step
    like = Value("", b.result.dtype, ())
    if not any(isinstance(v, Size) for v in (start, end, step)):
        return b.constant(np.arange(start, end, step), b.result.dtype)
    parts = [b.number(v, like) for v in (start, end, step)]
    return b.op("Range", *parts, dtype=b.result.dtype, shape=b.result.shape)


@translation("tensor", "scalar_tensor")
def tensor(b: Builder, data: Any, **rest: Any) -> Value:
    return b.constant(data, b.result.dtype)


@translation("eye")
def eye(b: Builder, n: int, m: Any = None, **rest: Any) -> Value:
    return b.constant(np.eye(n, m), b.result.dtype)


@translation("linspace")
def linspace(b: Builder, start: Any, end: Any, steps: int, **rest: Any) -> Value:
    return b.constant(np.linspace(start, end, steps), b.result.dtype)


# ---- random numbers


@translation("bernoulli")
def bernoulli(b: Builder, input: Value, p: Any = None, **rest: Any) -> Value:
    chance = b.expand(b.constant(p, dtypes.float32), b.result.shape) if p is not None else input
    # Not by ONNX's own node, which runtimes turn round.
    below = b.op("Less", b.op("RandomUniformLike", chance, dtype=chance.dtype), chance, dtype=dtypes.bool)
    return b.cast(below, b.result.dtype)


@translation("rand", "rand_like", "randn", "randn_like", "uniform", "normal")
def rand(b: Builder, *args: Any, **rest: Any) -> Value:
    kind = "RandomNormalLike" if b.operator in ("randn", "randn_like", "normal") else "RandomUniformLike"
    return b.op(kind, filled(b, 0))
