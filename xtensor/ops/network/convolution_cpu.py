"""Convolutions and their gradients in the ways that the CPU is best at: products of matrices, and sums of shifted products.

All take `(N, C, *)` and weights `(O, C / groups, *)`, with stride, padding and dilation resolved to one value per
spatial dimension; each says when it applies. `convolution` chooses, by the table in `platforms`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from ...operators.precision import convolution_precision
from ...xla.symbolic import at_most, is_open

__all__ = [
    "by_columns",
    "by_phases",
    "columns_weight",
    "depthwise_weight",
    "has_few_inputs",
    "has_few_places",
    "has_phases",
    "is_pointwise",
    "is_row",
    "outgrows",
    "pointwise",
    "pointwise_input",
    "pointwise_weight",
    "row_weight",
    "shifted",
    "unfolded_weight",
]

PLACES = 64
"""How many times the places of a sample a weight may be, for a product per sample to pay."""
COLUMN_LIMIT = 32
"""Products that are added up for one element of the result, to which unfolding the input pays."""
TERMS = 8
"""How many products are added up element by element, in one vectorised loop, before XLA's reduction takes over."""

MANY_TAPS = 16
"""Elements of a kernel beyond which an input is unfolded dimension by dimension."""
FEW_PLACES = 1 << 9
"""Places of all samples up to which it is."""
FEW = 1 << 15
"""Elements up to which a sum for each of a kernel's elements is as fast, and compiles four times as fast."""
FEW_CHANNELS = 4
"""Channels up to which a strided convolution is computed without a stride."""
FILLED = 1.4
"""By how much its kernel may grow in elements, to whole strides."""


def is_pointwise(sizes: Sequence[int], weight: Sequence[int], stride: Any, padding: Any, groups: int) -> bool:
    """Whether a convolution is a product with a matrix at every place, and has places enough for a product per sample."""
    plain = all(k == 1 for k in weight[2:]) and all(s == 1 for s in stride)
    unpadded = all(low == high == 0 for low, high in padding)
    return groups == 1 and plain and unpadded and at_most(math.prod(weight), PLACES * math.prod(sizes))


def has_few_inputs(channels: int, kernel: Sequence[int], groups: int) -> bool:
    """Whether an input has so few channels that unfolding it pays: images, and the first layers that see them."""
    return groups == 1 and math.prod(kernel) > 1 and channels * math.prod(kernel) <= COLUMN_LIMIT


def flat(x: Any) -> Any:
    """`(N, C, *)` as `(N, C, L)`."""
    return x.reshape((*x.shape[:2], math.prod(x.shape[2:])))


def pointwise(x: Any, weight: Any) -> Any:
    """A convolution with kernels of one element, without stride or padding."""
    return per_sample(weight.reshape(weight.shape[:2]), x)


def pointwise_input(grad: Any, weight: Any) -> Any:
    """The gradient of the input of `pointwise`."""
    return per_sample(weight.reshape(weight.shape[:2]).T, grad)


def per_sample(matrix: Any, x: Any) -> Any:
    """The matrix times the channels at every place of `(N, C, *)`: a product per sample, so that nothing is transposed."""
    each = jnp.broadcast_to(matrix, (x.shape[0], *matrix.shape))
    made = jnp.einsum("noc,ncl->nol", each, flat(x), precision=convolution_precision())
    return made.reshape((x.shape[0], matrix.shape[0], *x.shape[2:]))


def pointwise_weight(grad: Any, x: Any, shape: Sequence[int]) -> Any:
    """The gradient of the weight of `pointwise`."""
    products = jnp.einsum("nol,ncl->noc", flat(grad), flat(x), precision=convolution_precision())
    return products.sum(0).reshape(shape)


def shifted(x: Any, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any) -> Iterator[Any]:
    """The part of the padded input that each element of a kernel meets, in the order of the elements."""
    batch, channels, *sizes = x.shape
    x = lax.pad(x, jnp.zeros((), x.dtype), ((0, 0, 0), (0, 0, 0), *((low, high, 0) for low, high in padding)))
    out = [
        (size + low + high - d * (k - 1) - 1) // s + 1
        for size, (low, high), k, s, d in zip(sizes, padding, kernel, stride, dilation, strict=True)
    ]
    for index in itertools.product(*map(range, kernel)):
        start = [i * d for i, d in zip(index, dilation, strict=True)]
        limit = [a + (o - 1) * s + 1 for a, o, s in zip(start, out, stride, strict=True)]
        yield lax.slice(x, (0, 0, *start), (batch, channels, *limit), (1, 1, *stride))


def unfolded(x: Any, at: int, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any) -> Any:
    """What each element of a kernel meets, as one more dimension `at` which the elements lie along; places come last, as the input has them.

    A kernel whose blocks lie side by side meets each element once: nothing is taken twice. Few places are unfolded dimension by dimension,
    which is fewer parts to compile; many in one pass.
    """
    count = x.shape[2 - at] * math.prod(x.shape[2:])
    blocks = all(k == s and (k == 1 or d == 1) for k, s, d in zip(kernel, stride, dilation, strict=True))
    if not blocks and math.prod(kernel) <= MANY_TAPS and not at_most(count, FEW_PLACES):
        return jnp.stack(list(shifted(x, kernel, stride, padding, dilation)), at)
    x = lax.pad(x, jnp.zeros((), x.dtype), ((0, 0, 0), (0, 0, 0), *((low, high, 0) for low, high in padding)))
    n = len(kernel)
    for i, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        axis = x.ndim - n + i
        out = (x.shape[axis] - d * (k - 1) - 1) // s + 1
        if blocks:
            x = lax.slice_in_dim(x, 0, out * s, 1, axis)
            x = jnp.moveaxis(x.reshape((*x.shape[:axis], out, s, *x.shape[axis + 1 :])), axis + 1, at + i)
        else:
            parts = [lax.slice_in_dim(x, j * d, j * d + (out - 1) * s + 1, s, axis) for j in range(k)]
            x = jnp.stack(parts, at + i)
    return x.reshape((*x.shape[:at], math.prod(kernel), *x.shape[at + n :]))


def has_few_places(
    batch: int, sizes: Sequence[int], out: Sequence[int], weight: Sequence[int], groups: int
) -> bool:
    """Whether unfolding an input of so many places pays: kernels that are larger than it, or more channels than places.

    Eigen convolves no kernel that is larger than what it meets, padding aside; XLA then takes a hundred times as long.
    """
    if groups != 1 or any(map(is_open, (batch, *sizes, *out))):
        return False
    return outgrows(weight[2:], sizes) or batch * math.prod(out) <= weight[0]


def outgrows(kernel: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether a kernel is larger than what it meets."""
    return not any(map(is_open, sizes)) and any(k > s for k, s in zip(kernel, sizes, strict=True))


def is_row(sizes: Sequence[int]) -> bool:
    """Whether what is convolved lies along one dimension."""
    return not any(map(is_open, sizes)) and sum(s > 1 for s in sizes) <= 1


def by_columns(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """A convolution as one product of the weight with the unfolded input, whose samples lie side by side."""
    parts = unfolded(jnp.swapaxes(x, 0, 1), 1, weight.shape[2:], stride, padding, dilation)
    columns = parts.reshape((parts.shape[0] * parts.shape[1], -1))
    made = jnp.matmul(weight.reshape((weight.shape[0], -1)), columns, precision=convolution_precision())
    return jnp.swapaxes(made.reshape((weight.shape[0], *parts.shape[2:])), 0, 1)


def has_phases(sizes: Sequence[int], weight: Sequence[int], stride: Any, dilation: Any, groups: int) -> bool:
    """Whether a convolution of few channels with a stride of 2 pays as one without: where little of the kernel is filled up."""
    if groups != 1 or weight[1] > FEW_CHANNELS or tuple(stride) != (2, 2) or any(d != 1 for d in dilation):
        return False
    whole = [-(-k // s) * s for k, s in zip(weight[2:], stride, strict=True)]
    return not any(map(is_open, sizes)) and math.prod(whole) <= FILLED * math.prod(weight[2:])


def by_phases(x: Any, weight: Any, stride: Any, padding: Any) -> Any:
    """A strided convolution as one without stride: elements a stride apart, which meet the same weights, are a channel of their own."""
    kernel, sizes = weight.shape[2:], x.shape[2:]
    zero = jnp.zeros((), x.dtype)
    spans, fills, counts = [], [], []
    for size, k, s, (low, high) in zip(sizes, kernel, stride, padding, strict=True):
        steps = -(-k // s)
        count = (size + low + high - k) // s + steps
        spans.append((low, count * s - size - low, 0))
        fills.append((0, steps * s - k, 0))
        counts.append((count, steps))
    x = lax.pad(x, zero, ((0, 0, 0), (0, 0, 0), *spans))
    weight = lax.pad(weight, zero.astype(weight.dtype), ((0, 0, 0), (0, 0, 0), *fills))
    n = len(kernel)
    order = (0, 1, *range(3, 2 * n + 2, 2), *range(2, 2 * n + 2, 2))

    def phases(array: Any, which: int) -> Any:
        lengths = [length for pair, s in zip(counts, stride, strict=True) for length in (pair[which], s)]
        parted = array.reshape((*array.shape[:2], *lengths)).transpose(order)
        return parted.reshape(
            (array.shape[0], array.shape[1] * math.prod(stride), *[c[which] for c in counts])
        )

    return lax.conv_general_dilated(
        phases(x, 0), phases(weight, 1), (1,) * n, [(0, 0)] * n, precision=convolution_precision()
    )


MANY_PRODUCTS = 1 << 28
"""Products of an image spread out among zeros from which its phases are convolved by themselves: each is one more program's part to compile."""


def spreads(
    shape: Sequence[int], weight: Sequence[int], stride: Any, dilation: Any, groups: int, out: Any
) -> bool:
    """Whether a transposed convolution of `(N, C, H, W)` is done phase by phase."""
    if len(shape) != 4 or any(map(is_open, shape)):
        return False
    if groups != 1 or max(stride) == 1 or any(d != 1 for d in dilation):
        return False
    products = shape[0] * math.prod(weight) * math.prod(out)
    return all(k >= s for k, s in zip(weight[2:], stride, strict=True)) and products >= MANY_PRODUCTS


def spread_by_phases(x: Any, weight: Any, stride: Any, padding: Any, out: Sequence[int]) -> Any:
    """The transposed convolution of `(N, C, H, W)` with `(C, O, *)`: for each place among the zeros that it would put between elements,
    a convolution with the part of the kernel that meets elements there.
    """
    weight = lax.rev(jnp.swapaxes(weight, 0, 1), (2, 3))
    geometry = []
    for size, k, s, (low, _), wanted in zip(x.shape[2:], weight.shape[2:], stride, padding, out, strict=True):
        most = -(-wanted // s)
        before = k - 1 - low
        found = []
        for phase in range(s):
            first = (before - phase) % s
            offset = (phase + first - before) // s
            taps = len(range(first, k, s))
            found.append((first, (-offset, most - 1 + offset + taps - 1 - (size - 1))))
        geometry.append(found)
    rows = []
    for top, down in geometry[0]:
        parts = [
            lax.conv_general_dilated(
                x,
                weight[:, :, top :: stride[0], left :: stride[1]],
                (1, 1),
                (down, across),
                precision=convolution_precision(),
            )
            for left, across in geometry[1]
        ]
        rows.append(jnp.stack(parts, axis=-1))
    made = jnp.stack(rows, axis=3)  # (N, O, H', phases, W', phases)
    batch, channels, high, _, wide, _ = made.shape
    made = made.reshape((batch, channels, high * stride[0], wide * stride[1]))
    return lax.slice(made, (0, 0, 0, 0), (batch, channels, *out))


def unfolded_weight(grad: Any, x: Any, shape: Sequence[int], stride: Any, padding: Any, dilation: Any) -> Any:
    """The gradient of the weight of `by_columns`: one product for all samples."""
    parts = unfolded(jnp.swapaxes(x, 0, 1), 1, shape[2:], stride, padding, dilation)
    columns = parts.reshape((parts.shape[0] * parts.shape[1], -1))
    rows = jnp.swapaxes(grad, 0, 1).reshape((grad.shape[1], -1))
    return jnp.matmul(rows, columns.T, precision=convolution_precision()).reshape(shape)


def row_weight(grad: Any, x: Any, shape: Sequence[int], stride: Any, padding: Any, dilation: Any) -> Any:
    """The gradient of the weight of a convolution along one dimension: by samples, where their products are less than the columns."""
    way = columns_weight if shape[0] <= math.prod(grad.shape[2:]) else unfolded_weight
    return way(grad, x, shape, stride, padding, dilation)


def columns_weight(grad: Any, x: Any, shape: Sequence[int], stride: Any, padding: Any, dilation: Any) -> Any:
    """The gradient of the weight of `by_columns`: a product for every sample."""
    parts = unfolded(x, 2, shape[2:], stride, padding, dilation)
    columns = parts.reshape((x.shape[0], parts.shape[1] * parts.shape[2], -1))
    products = jnp.einsum("ncl,nol->nco", columns, flat(grad), precision=convolution_precision())
    return products.sum(0).T.reshape(shape)


def depthwise_weight(
    grad: Any, x: Any, shape: Sequence[int], stride: Any, padding: Any, dilation: Any
) -> Any:
    """The gradient of the weight of a convolution in which every channel has one kernel."""
    batch, spatial = x.shape[0], tuple(range(2, grad.ndim))
    if not any(map(is_open, grad.shape)) and grad.size <= FEW:
        sums = [(part * grad).sum((0, *spatial)) for part in shifted(x, shape[2:], stride, padding, dilation)]
        return jnp.stack(sums).T.reshape(shape)
    terms = next(k for k in range(TERMS, 0, -1) if batch % k == 0)
    size = batch // terms
    rows = [slice(i * size, (i + 1) * size) for i in range(terms)]
    sums = []
    for part in shifted(x, shape[2:], stride, padding, dilation):
        total = part[rows[0]] * grad[rows[0]]
        for row in rows[1:]:
            total = total + part[row] * grad[row]
        sums.append(total)
    return jnp.stack(sums).sum((1, *[axis + 1 for axis in spatial])).T.reshape(shape)
