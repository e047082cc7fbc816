"""Sums of products of 8-bit integers over windows: the parts of programs that quantised convolutions are.

Channels lie last. What a window meets is laid side by side, as a row of columns, and multiplied in 32 bits, so that sums are
exact however many products there are. Large convolutions go block by block: beside arguments and results, the padded input and
one block of columns and sums is all that is held.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

__all__ = ["Window", "centred", "window_sums"]


class Window(NamedTuple):
    """Where the kernel of a convolution lies: each a number for every dimension of space."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    transposed: bool = False
    output_padding: tuple[int, ...] = ()


CPU_BLOCK, BLOCK = 1 << 24, 1 << 28
"""Bytes of columns and sums at a time: on a CPU near what its caches hold, elsewhere what keeps a device busy."""
SHIFTED_TAPS = 128
"""Elements of a kernel up to which a channel with kernels of its own is a sum of shifted products."""


# ---- geometry ------------------------------------------------------------------------------------------------------


class Along(NamedTuple):
    """What windows meet along one dimension, step by step.

    A transposed convolution is one without stride, whose channels are the `pitch` results that lie between one element of the
    input and the next; of the first step's, `skip` are left out.
    """

    out: int
    pitch: int
    skip: int
    stride: int
    low: int
    """Places put before the input."""
    taps: tuple[int, ...]
    """The places of the padded input that the first window meets."""

    def steps(self, results: int) -> int:
        """Steps of so many results."""
        return -(-(self.skip + results) // self.pitch)

    def reach(self, results: int) -> int:
        """Places of the padded input that the windows of so many results meet."""
        return (self.steps(results) - 1) * self.stride + max(self.taps) + 1


class Span(NamedTuple):
    """How results along a dimension are parted: in blocks of one size, the last of which may overlap the one before."""

    size: int
    every: int
    number: int


def along(at: Window, i: int, size: int, kernel: int) -> Along:
    """What windows meet along a dimension of space; RuntimeError where there are none."""
    stride, padding, dilation = at.stride[i], at.padding[i], at.dilation[i]
    reach = dilation * (kernel - 1) + 1
    if not at.transposed:
        out = (size + 2 * padding - reach) // stride + 1
        if out <= 0:
            name = f"[QConv{max(2, len(at.stride))}D]"
            raise RuntimeError(f"{name} each dimension of output tensor should be greater than 0")
        return Along(out, 1, 0, stride, padding, tuple(range(0, reach, dilation)))
    more = at.output_padding[i]
    out = (size - 1) * stride - 2 * padding + reach + more
    if out <= 0:
        raise RuntimeError(
            f"Output dimension is zero for {i} axis; kernel: {kernel}, stride: {stride}, input padding: {padding}, "
            f"output padding: {more}, dilation: {dilation}"
        )
    first, skip = divmod(padding, stride)
    count = -(-reach // stride)
    low = max(0, count - 1 - first)
    start = first + low - (count - 1)
    return Along(out, stride, skip, 1, low, tuple(range(start, start + count)))


def span(one: Along, room: int) -> Span:
    """Blocks of at most so many steps, as equal as can be; a few steps are taken in any case."""
    whole = one.steps(one.out)
    least = 1 if one.pitch == 1 else 3
    count = -(-whole // max(least, room))
    size = max(least, -(-whole // count)) * one.pitch - one.skip
    # Every block starts where the first one does among the results of a step, the last one too.
    size -= (size - one.out) % one.pitch
    if size >= one.out:
        return Span(one.out, one.out, 1)
    every = size - size % one.pitch
    return Span(size, every, 1 - (size - one.out) // every)


def spans(batch: int, space: Sequence[Along], room: int) -> list[Span]:
    """Blocks of samples and of results in each dimension, of so many steps: whole dimensions from the last one on."""
    found = []
    for one in reversed([Along(max(batch, 1), 1, 0, 1, 0, (0,)), *space]):
        found.append(span(one, room))
        room //= one.steps(found[-1].size)
    return found[::-1]


# ---- kernels -------------------------------------------------------------------------------------------------------


def centred(values: Any) -> tuple[Any, int]:
    """Integers as int8, and how much less they are: XLA multiplies 8 bits with a sign."""
    if values.dtype == jnp.uint8:
        return (values.astype(jnp.int32) - 128).astype(jnp.int8), 128
    return values, 0


class Kernel(NamedTuple):
    """A kernel as columns meet it; what a step gives between two elements of a transposed convolution are results of a group."""

    matrix: Any
    """int8 (groups, taps, ..., in, results), of every dimension as many taps as windows meet places."""
    points: Any
    """The zero points, (groups, results), or None where they are 0."""
    totals: Any
    """Sums of what it stands for, (groups, results): so often a sum has the zero point of the input too much."""


def kernel_of(w: Any, w_point: Any, at: Window) -> Kernel:
    """The kernel of an integer weight; w_point: a number or one per channel, None where they are 0."""
    n, groups = len(at.stride), at.groups
    w, less = centred(w)
    parts = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    out = parts.shape[2 if at.transposed else 1]
    points = None
    if w_point is not None or less:
        points = jnp.asarray(0 if w_point is None else w_point).astype(jnp.int32) - less
        points = jnp.broadcast_to(points, (groups * out,)).reshape(groups, out)
    if not at.transposed:
        matrix = parts.transpose(0, *range(3, n + 3), 2, 1)
        totals = parts.astype(jnp.int32).reshape(groups, out, -1).sum(2, dtype=jnp.int32)
    else:
        # Elements that a kernel has not are the number zero, too.
        zeros = 0 if points is None else points.reshape(groups, 1, out, *[1] * n)
        reach = [(d * (k - 1) + 1, d, s) for k, d, s in zip(w.shape[2:], at.dilation, at.stride, strict=True)]
        sides = [(0, 0, 0)] * 3 + [(0, -r % s, d - 1) for r, d, s in reach]
        parts = (lax.pad(parts.astype(jnp.int32) - zeros, jnp.int32(0), sides) + zeros).astype(jnp.int8)
        parts = parts.reshape(*parts.shape[:3], *[size for r, _, s in reach for size in (-(-r // s), s)])
        parts = lax.rev(parts, range(3, 3 + 2 * n, 2))
        parts = parts.transpose(0, *range(3, 3 + 2 * n, 2), 1, *range(4, 3 + 2 * n, 2), 2)
        matrix = parts.reshape(*parts.shape[: n + 2], -1)
        totals = matrix.astype(jnp.int32).sum(range(1, n + 2), dtype=jnp.int32)
    if points is not None:
        points = jnp.tile(points, (1, matrix.shape[-1] // out))
        totals = totals - points * math.prod(matrix.shape[1:-1])
    return Kernel(matrix, points, totals)


# ---- sums ----------------------------------------------------------------------------------------------------------


def taken(x: Any, places: Sequence[int], counts: Sequence[int], space: Sequence[Along]) -> Any:
    """What one element of all windows meets: (N, ..., C), so many steps in each dimension from a place on."""
    limits = [p + (c - 1) * a.stride + 1 for p, c, a in zip(places, counts, space, strict=True)]
    steps = [1, *[a.stride for a in space], 1]
    return lax.slice(x, [0, *places, 0], [x.shape[0], *limits, x.shape[-1]], steps)


def columns(x: Any, counts: Sequence[int], space: Sequence[Along]) -> Any:
    """What windows of (N, ..., C) meet, (N, ..., taps * C): dimension by dimension, which is fewer parts than there are taps."""
    n, packs = len(space), x.shape[-1] % 4 == 0
    if packs:  # words are moved, not bytes
        x = lax.bitcast_convert_type(x.reshape(*x.shape[:-1], x.shape[-1] // 4, 4), jnp.int32)
    for i in reversed(range(n)):
        one, last = space[i], (counts[i] - 1) * space[i].stride + 1
        parts = [lax.slice_in_dim(x, tap, tap + last, one.stride, 1 + i) for tap in one.taps]
        if len(parts) == 1:
            x = parts[0]
        else:
            x = lax.concatenate(parts, x.ndim - 1) if packs else jnp.stack(parts, n + 1)
    if packs:
        x = lax.bitcast_convert_type(x, jnp.int8)
    return x.reshape(*x.shape[: n + 1], math.prod(x.shape[n + 1 :]))


def is_shifted(kernel: Kernel) -> bool:
    """Whether every channel has kernels of its own, of few elements: their sums are one loop, in which nothing is kept."""
    groups, *taps, channels, _ = kernel.matrix.shape
    return groups > 1 == channels and math.prod(taps) <= SHIFTED_TAPS


def shifted(x: Any, kernel: Kernel, counts: Sequence[int], space: Sequence[Along]) -> Any:
    """Sums of products of channels with kernels of their own, (N, ..., C, results)."""
    matrix, total = kernel.matrix.astype(jnp.int32), None
    if kernel.points is not None:
        matrix = matrix - kernel.points.reshape(-1, *[1] * (len(space) + 1), matrix.shape[-1])
    for tap in itertools.product(*[range(len(a.taps)) for a in space]):
        met = taken(x, [a.taps[i] for a, i in zip(space, tap, strict=True)], counts, space)
        term = met.astype(jnp.int32)[..., None] * matrix[(slice(None), *tap, 0)]
        total = term if total is None else total + term
    return total


def multiplied(met: Any, kernel: Kernel) -> Any:
    """Sums of products of columns, (N, ..., groups, results)."""
    matrix = kernel.matrix
    if kernel.points is not None:
        # One more result is the sum of what a window meets.
        matrix = jnp.concatenate([matrix, jnp.ones_like(matrix[..., :1])], -1)
    groups, channels, results = matrix.shape[0], matrix.shape[-2], matrix.shape[-1]
    places = math.prod(met.shape[:-1])
    if groups == 1:
        rows = met.reshape(places, met.shape[-1])
        sums = lax.dot(rows, matrix.reshape(-1, results), preferred_element_type=jnp.int32)
    else:
        dims = (((1, 3), (1, 2)), ((2,), (0,)))
        parts = met.reshape(places, met.shape[-1] // (groups * channels), groups, channels)
        matrix = matrix.reshape(groups, -1, channels, results)
        sums = lax.dot_general(parts, matrix, dims, preferred_element_type=jnp.int32).swapaxes(0, 1)
    sums = sums.reshape(*met.shape[:-1], groups, results)
    return sums if kernel.points is None else sums[..., :-1] - kernel.points * sums[..., -1:]


def among(values: Any, pitch: Sequence[int], sizes: Sequence[int], space: Sequence[Along]) -> Any:
    """Results (N, steps, ..., pitch, ..., out) as they lie among each other: (N, ..., out), so many."""
    n, batch, out = len(pitch), values.shape[0], values.shape[-1]
    counts = values.shape[1 : n + 1]
    values = values.transpose(0, *[axis for i in range(1, n + 1) for axis in (i, n + i)], 2 * n + 1)
    values = values.reshape(batch, *[c * p for c, p in zip(counts, pitch, strict=True)], out)
    ends = [a.skip + size for a, size in zip(space, sizes, strict=True)]
    return lax.slice(values, [0, *[a.skip for a in space], 0], [batch, *ends, out])


def window_sums(
    x: Any, x_point: Any, w: Any, w_point: Any, at: Window, dtype: Any, finish: Callable[[Any], Any]
) -> Any:
    """What `finish` makes, of a dtype, of sums of products of what integers (N, ..., C) and a weight stand for, (N, ..., out).

    Sums are in units of both scales. w_point: a number or one per channel; None where they are all 0.
    """
    n, groups = len(at.stride), at.groups
    if w.ndim != n + 2:
        raise RuntimeError(f"Weights are expected to have {n + 2} dimensions")
    channels, sizes = w.shape[0] if at.transposed else w.shape[1] * groups, w.shape[2:]
    out = w.shape[1] * groups if at.transposed else w.shape[0]
    if x.shape[-1] != channels:
        # PyTorch takes rows as images.
        row = (1,) * (n == 1)
        wanted = ", ".join(map(str, (out, *row, *sizes, channels)))
        given = ", ".join(map(str, (x.shape[0], x.shape[-1], *row, *x.shape[1:-1])))
        raise RuntimeError(
            f"[QConv{max(n, 2)}D] Given groups={groups}, weight of size {wanted}, expected input (NC{'DHW'[-max(n, 2) :]}) "
            f"{given} to have {channels} channels, but got {x.shape[-1]} channels instead"
        )
    space = [along(at, i, x.shape[1 + i], sizes[i]) for i in range(n)]
    kernel = kernel_of(w, w_point, at)
    whole, less = centred(x)
    point = jnp.asarray(x_point).astype(jnp.int32) - less
    sides = [
        (a.low, max(0, a.reach(a.out) - a.low - size), 0) for a, size in zip(space, x.shape[1:], strict=False)
    ]
    if any(low or high for low, high, _ in sides):
        # What is padded is the number zero, which is the zero point.
        x = lax.pad(whole, point.astype(jnp.int8), [(0, 0, 0), *sides, (0, 0, 0)])
    alone, pitch = is_shifted(kernel), [a.pitch for a in space]

    def block(x: Any, results: Sequence[int]) -> Any:
        x, _ = centred(x)  # what was padded is
        counts = [a.steps(size) for a, size in zip(space, results, strict=True)]
        sums = shifted(x, kernel, counts, space) if alone else multiplied(columns(x, counts, space), kernel)
        sums = (sums - point * kernel.totals).reshape(x.shape[0], *counts, groups, *pitch, out // groups)
        values = finish(jnp.moveaxis(sums, n + 1, -2).reshape(x.shape[0], *counts, *pitch, out))
        return among(values, pitch, results, space)

    if alone:
        return block(x, [a.out for a in space])
    step = math.prod(kernel.matrix.shape[1 : n + 1]) * channels
    step += out * math.prod(pitch) * (8 + np.dtype(dtype).itemsize)

    def run(limit: int) -> Callable[[Any], Any]:
        return lambda x: blockwise(x, space, spans(x.shape[0], space, limit // step), block, (out, dtype))

    return lax.platform_dependent(x, cpu=run(CPU_BLOCK), default=run(BLOCK))


def blockwise(
    x: Any,
    space: Sequence[Along],
    parted: Sequence[Span],
    block: Callable[[Any, Sequence[int]], Any],
    made: tuple[int, Any],
) -> Any:
    """Results of the padded input, a block after the other."""
    sizes = [s.size for s in parted[1:]]
    total = math.prod([s.number for s in parted])
    if total == 1:
        return block(x, sizes)
    met = (parted[0].size, *[a.reach(size) for a, size in zip(space, sizes, strict=True)], x.shape[-1])
    ends = [x.shape[0], *[a.out for a in space]]

    def step(index: Any, whole: Any) -> Any:
        to = []
        for part, end in zip(reversed(parted), reversed(ends), strict=True):
            to.insert(0, jnp.minimum(index % part.number * part.every, end - part.size))
            index = index // part.number
        start = [to[0], *[place // a.pitch * a.stride for place, a in zip(to[1:], space, strict=True)], 0]
        return lax.dynamic_update_slice(whole, block(lax.dynamic_slice(x, start, met), sizes), [*to, 0])

    return lax.fori_loop(0, total, step, jnp.zeros((*ends, made[0]), made[1]))
