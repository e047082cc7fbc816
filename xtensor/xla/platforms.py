"""Kernels that know their platform: what runs where, and the figure that chose it.

A kernel that has a better way on the CPU calls `on_cpu(name, better, general, *args)`; both ways are in its family's
file, and the choice and its reason are a row of `CHOICES`. Only the way of the platform that a program is compiled for
enters it. Ways that are taken everywhere, but had others beside them, are rows of `EVERYWHERE`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax import lax

__all__ = ["CHOICES", "EVERYWHERE", "on_cpu"]

CHOICES: dict[str, str] = {
    "pointwise convolution": (
        "a product per sample, where a sample has places enough; [64, 16, 32, 32] to 32 channels: 1.77 ms to 0.68 ms, its input's "
        "gradient 2.67 ms to 0.76 ms, its weight's 11.1 ms to 0.98 ms"
    ),
    "convolution of few channels": (
        "products with the unfolded input, where at most 32 numbers are added up; 3x3 of [64, 3, 32, 32] to 64 channels: 4.4 ms to "
        "2.9 ms, its weight's gradient 18.0 ms to 2.7 ms; 3x3 of [32, 1, 28, 28] to 16: 0.56 ms to 0.30 ms"
    ),
    "convolution of a row": (
        "the weight's gradient as products with the unfolded input, where one dimension alone has places; kernels of 3 over "
        "[32, 64, 128] to 64 channels: 28 ms to 0.5 ms, of 5 over [16, 16, 1000] to 32: 23 ms to 0.7 ms, of 3 over [8, 256, 50] to 256: "
        "36 ms to 0.6 ms"
    ),
    "convolution of few places": (
        "products with the unfolded input, where the kernel is larger than it, which Eigen does not convolve, or channels are more than "
        "places; 3x3 of [64, 512, 2, 2] to 512 channels: 380 ms to 3.5 ms, its input's gradient 383 ms to 4.6 ms, its weight's 6.5 ms to "
        "3.9 ms; of [2, 512, 7, 7] to 512: 5.9 ms to 1.9 ms, its weight's 5.3 ms to 1.5 ms"
    ),
    "grouped convolution": (
        "a convolution per group, of up to 64; 3x3 of [16, 64, 16, 16] in 4 groups: 1.8 ms to 0.7 ms, its weight's gradient 89 ms "
        "to 0.8 ms; of [8, 128, 16, 16] in 32: 5.5 ms to 2.1 ms, its weight's gradient 668 ms to 1.0 ms"
    ),
    "convolution of volumes": (
        "for every plane of the kernel a convolution of planes; 3x3x3 of [2, 32, 8, 28, 28] to 64 channels: 22 ms to 7.3 ms, its "
        "input's gradient 38 ms to 6.5 ms, its weight's 40 ms to 7.6 ms; of [4, 4, 16, 32, 32] to 8: 41 ms to 7.3 ms"
    ),
    "depthwise convolution": (
        "the weight's gradient as products added up by eights before they are reduced; 3x3 of [16, 64, 16, 16]: 0.79 ms to 0.33 ms"
    ),
    "cumsum": "products of blocks of 16 with triangles of ones; float32 [1024, 256] on one core: 0.51 ms to 0.13 ms",
    "extrema": (
        "NaN is looked for beside the fold, which XLA's library for CPUs drops from some 2,048 elements on; of [1000, 1000] 52 us to "
        "115 us, without the library 758 us"
    ),
    "layer norm": (
        "weighted sums of rows as products with the weight, backward of [1024, 256] on one core: 183 us to 117 us; those of columns as products "
        "with ones: 246 us to 210 us, on two cores 401 us to 321 us"
    ),
    "scan": (
        "running extrema and logarithms of sums one element after the other, blocks beside each other; 256 of [256, 256]: `logcumsumexp` "
        "13.7 ms to 0.65 ms, `cummax` 1.0 ms to 0.7 ms"
    ),
    "selection": (
        "medians, single quantiles and `kthvalue` of rows of 16,384 and more by halving what is left of the range until one key remains; float32 "
        "[100000] 4.8 ms to 1.2 ms"
    ),
    "softmax": (
        "the derivative's sums of rows of 64 and more as products with ones, before which XLA computes what is summed up once; of "
        "[1024, 256] on one core 129 us to 88 us, of [4096, 64] 138 us to 87 us"
    ),
    "max_pool_grad": (
        "added where the indices of the maxima say, one after the other; 3x3 with a stride of 2, backward of [4, 16, 64, 64] 8.3 ms to 0.3 ms, "
        "of [8, 64, 56, 56] 50 ms to 1.5 ms; 2x2 of [4, 16, 64, 64] 1.1 ms to 0.2 ms"
    ),
    "sort": (
        "one 64-bit key of value and index instead of a comparison of pairs; float32 [256, 256]: 7.6 ms to 1.3 ms, "
        "[256, 1024]: 36 ms to 7.2 ms; rows in 12 sorts that run beside each other: [256, 256] 1.4 ms to 0.8 ms, [64, 1000] 1.6 ms "
        "to 1.0 ms"
    ),
    "transposition": (
        "a loop over strips of a cache line where the strides are multiples of 2 KiB, which a cache keeps in few places; "
        "[1024, 1024]: 2.0 ms to 0.36 ms, [2048, 2048]: 13.3 ms to 2.0 ms; short floats as bits, bfloat16 [2048, 4096]: 35 ms to 14 ms"
    ),
    "strided convolution": (
        "of at most 4 channels with a stride of 2, as one without stride, of the phases of the input as channels; forward, on one core: "
        "7x7 of [8, 3, 64, 64] to 32 channels 2.3 ms to 1.6 ms, of [16, 1, 28, 28] 0.70 ms to 0.27 ms, of [4, 3, 224, 224] to 64 20.8 ms "
        "to 20.0 ms; 4x4 of [16, 3, 64, 64] to 64 3.3 ms to 2.5 ms"
    ),
    "transposed convolution by phases": (
        "a convolution for each place among the zeros instead of one of an image with zeros in between, of 2^28 products and more; 4x4 with a "
        "stride of 2, [4, 16, 64, 64] to 32 channels 36.7 ms to 6.9 ms, [1, 64, 64, 64] to 32 8.4 ms to 4.7 ms, [4, 64, 32, 32] to 32 7.1 ms to "
        "5.0 ms"
    ),
    "topk": (
        "XLA's partial sort of float32 where k is at most an eighth; 8 of [256, 1024]: 36 ms to 0.7 ms; of 262,144 elements and more that of "
        "the blocks with the largest ones only where k is at most a 32nd: on one core 0.66 ms to 0.49 ms, 40 of [8, 50257] 0.62 ms to 0.19 ms"
    ),
}
"""By kernel: what the CPU does otherwise than the general way, and what it gained (2 x86 cores where no other number is given)."""

EVERYWHERE: dict[str, str] = {
    "attention": (
        "blocks of queries where there are more than 2 million scores, and of causal attention four parts with the keys that each "
        "sees, computed again for the derivatives; forward and backward of [1, 8, 2048, 64]: 1160 ms to 511 ms, causal 999 ms to "
        "337 ms; of [4, 4, 512, 32] 36 ms to 28 ms, causal 54 ms to 16 ms; memory for a block of scores instead of all"
    ),
    "transposed convolution": (
        "the weight's gradient as that of the convolution which it is the transpose of; 4x4 with a stride of 2, [16, 64, 16, 16] to 32 "
        "channels: 66 ms to 1.3 ms, [16, 32, 32, 32] to 16: 74 ms to 2.4 ms"
    ),
    "max pooling": (
        "strided slices, whose maximum (and on accelerators gradient) is one loop, instead of windows and select-and-scatter; 2x2 of "
        "[16, 32, 28, 28], forward and backward: 2.5 ms to 0.8 ms"
    ),
    "embedding and index_add": (
        "gradients and sums by scattered addition: 4096 rows of 64 into 1000 in 0.08 ms, with the indices sorted first 0.8 ms, as a "
        "product with ones 3.3 ms"
    ),
    "gelu": "by erf; [1024, 256] forward 0.14 ms and backward 0.25 ms, by erfc 0.19 ms and 0.27 ms",
    "cross entropy": (
        "exponentials and the sums of rows are kept for the derivative, as much memory as PyTorch's logarithms; [1024, 256], both passes: 0.65 ms "
        "to 0.50 ms, [256, 4096] 1.66 ms to 1.01 ms, [16384, 16] 0.96 ms to 0.87 ms; forward alone of [1024, 256] 0.40 ms to 0.44 ms"
    ),
    "batch and group norm": (
        "means and reciprocal deviations are kept for the derivative; batch norm of [32, 32, 16, 16] on one core, both passes: 0.69 ms "
        "to 0.37 ms"
    ),
}
"""By kernel: a way that is taken on every platform, and the figures on the CPU that chose it (2 x86 cores where no other number is given)."""


def on_cpu(name: str, better: Callable[..., Any], general: Callable[..., Any], *args: Any) -> Any:
    """`better(*args)` in a program for the CPU, `general(*args)` in one for another platform."""
    if name not in CHOICES:
        raise KeyError(f"{name} is not in CHOICES")
    return lax.platform_dependent(*args, cpu=better, default=general)
