"""Sliding blocks of images as columns, and columns summed back into images."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.schema import Array
from ...tensor import Tensor

__all__ = ["col2im", "fold", "im2col", "unfold_blocks"]


class Blocks:
    """The blocks that slide over an image of sizes `(H, W)`: where they lie and how many there are."""

    def __init__(
        self,
        sizes: Sequence[int],
        kernel: Sequence[int],
        dilation: Sequence[int],
        padding: Sequence[int],
        stride: Sequence[int],
    ) -> None:
        for what, values in (("kernel", kernel), ("stride", stride), ("dilation", dilation)):
            if min(values) <= 0:
                size = " size" if what == "kernel" else ""
                raise RuntimeError(
                    f"{what}{size} should be greater than zero, but got {what}_height: {values[0]} {what}_width: "
                    f"{values[1]}"
                )
        if min(padding) < 0:
            raise RuntimeError(
                f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}"
            )
        self.sizes, self.kernel, self.dilation = tuple(sizes), tuple(kernel), tuple(dilation)
        self.padding, self.stride = tuple(padding), tuple(stride)
        self.count = tuple(
            (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, k, d, p, s in zip(sizes, kernel, dilation, padding, stride, strict=True)
        )

    def places(self) -> Iterator[tuple[int, int]]:
        return itertools.product(range(self.kernel[0]), range(self.kernel[1]))

    def columns(self, x: Any) -> Any:
        """`(N, C, H, W)` to `(N, C * kH * kW, blocks)`."""
        lead = x.shape[:2]
        border = [(0, 0, 0)] * 2 + [(p, p, 0) for p in self.padding]
        x = lax.pad(x, jnp.zeros((), x.dtype), border)
        parts = []
        for place in self.places():
            start = [i * d for i, d in zip(place, self.dilation, strict=True)]
            limit = [a + (c - 1) * s + 1 for a, c, s in zip(start, self.count, self.stride, strict=True)]
            parts.append(lax.slice(x, (0, 0, *start), (*lead, *limit), (1, 1, *self.stride)))
        stacked = jnp.stack(parts, axis=2)
        return stacked.reshape((lead[0], lead[1] * len(parts), self.count[0] * self.count[1]))

    def image(self, columns: Any, channels: int) -> Any:
        """The transpose of `columns`: overlapping blocks are summed."""
        lead = (columns.shape[0], channels)
        parts = columns.reshape((*lead, self.kernel[0] * self.kernel[1], *self.count))
        total = jnp.zeros((*lead, *self.sizes), columns.dtype)
        for number, place in enumerate(self.places()):
            config = [(0, 0, 0)] * 2
            for i in range(2):
                start = place[i] * self.dilation[i] - self.padding[i]
                stop = start + (self.count[i] - 1) * self.stride[i] + 1
                config.append((start, self.sizes[i] - stop, self.stride[i] - 1))
            placed = lax.pad(parts[:, :, number], jnp.zeros((), columns.dtype), config)
            total = total | placed if columns.dtype == jnp.bool_ else total + placed
        return total


def check_pair(name: str, what: str, value: Any) -> tuple[int, int]:
    if len(value) != 2:
        raise RuntimeError(f"It is expected {what} equals to 2, but got size {len(value)}")
    return tuple(value)


def _unfold_grad(
    grad: Array, input_shape: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Array:
    shape = tuple(input_shape)
    blocks = Blocks(shape[-2:], kernel_size, dilation, padding, stride)
    columns = grad if grad.ndim == 3 else grad[None]
    return blocks.image(columns, shape[-3]).reshape(shape)


@general(name="im2col", node="Im2Col", derivatives=dict(input=_unfold_grad))
def im2col(
    input: Array,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Array:
    """`unfold` with two numbers for every option.

    Raises: NotImplementedError for integer tensors.
    """
    for what, value in (
        ("kernel_size", kernel_size), ("dilation", dilation), ("padding", padding), ("stride", stride)
    ):  # fmt: skip
        check_pair("im2col", what, value)
    if input.ndim < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(input.ndim, 1)}, {max(input.ndim, 1) - 1}], but "
            f"got {input.ndim})"
        )
    blocks = Blocks(input.shape[-2:], kernel_size, dilation, padding, stride)
    if input.ndim not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(input.shape)}"
        )
    if min(blocks.count) < 1:
        raise RuntimeError(
            f"Given input with spatial size ({input.shape[-2]}, {input.shape[-1]}), kernel_size=({kernel_size[0]}, "
            f"{kernel_size[1]}), dilation=({dilation[0]}, {dilation[1]}), padding=({padding[0]}, {padding[1]}), "
            f"calculated shape of the array of sliding blocks as ({blocks.count[0]}, {blocks.count[1]}), but its "
            "components must be at least one."
        )
    own = dtype_of(input)
    if not (own.is_floating_point or own.is_complex or own is dtypes.bool):
        raise checks.not_implemented_for("im2col_out_cpu", own)
    if input.ndim == 3:
        return blocks.columns(input[None])[0]
    return blocks.columns(input)


def _fold_grad(grad: Array, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    blocks = Blocks(grad.shape[-2:], kernel_size, dilation, padding, stride)
    return blocks.columns(grad) if grad.ndim == 4 else blocks.columns(grad[None])[0]


@general(name="col2im", node="Col2Im", derivatives=dict(input=_fold_grad))
def col2im(
    input: Array,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Array:
    """`fold` with two numbers for every option.

    Raises: NotImplementedError for integer tensors.
    """
    for what, value in (
        ("output_size", output_size), ("kernel_size", kernel_size), ("dilation", dilation), ("padding", padding),
        ("stride", stride),
    ):  # fmt: skip
        check_pair("col2im", what, value)
    blocks = Blocks(output_size, kernel_size, dilation, padding, stride)
    shape = list(input.shape)
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {shape}"
        )
    taps = kernel_size[0] * kernel_size[1]
    if taps >= 1 << 63:
        raise RuntimeError(
            f"Given kernel_width = {kernel_size[1]} and kernel_height = {kernel_size[0]} the product of kernel_width and "
            "kernel_height overflowed."
        )
    if input.shape[-2] % taps:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
            f"{input.shape[-2]} and kernel_size=({kernel_size[0]}, {kernel_size[1]})."
        )
    told = (
        f"Given output_size=({output_size[0]}, {output_size[1]}), kernel_size=({kernel_size[0]}, {kernel_size[1]}), "
        f"dilation=({dilation[0]}, {dilation[1]}), padding=({padding[0]}, {padding[1]}), stride=({stride[0]}, "
        f"{stride[1]})"
    )
    expected = blocks.count[0] * blocks.count[1]
    if input.shape[-1] != expected:
        raise RuntimeError(
            f"{told}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{blocks.count[0]} * {blocks.count[1]} = {expected}, but got input.size(2)={input.shape[-1]}."
        )
    if min(blocks.count) < 1:
        raise RuntimeError(
            f"{told}, calculated shape of the array of sliding blocks as ({blocks.count[0]}, {blocks.count[1]}), which is "
            "too small (non-positive)"
        )
    if output_size[0] < 1 or output_size[1] < 1:
        raise RuntimeError(
            f"Expected output spatial size to be positive, but got: output_size=({output_size[0]}, {output_size[1]})."
        )
    own = dtype_of(input)
    if not (own.is_floating_point or own.is_complex or own is dtypes.bool):
        raise checks.not_implemented_for("col2im_out_cpu", own)
    wide = dtypes.compute_type(own).numpy
    columns = (input if input.ndim == 3 else input[None]).astype(wide)
    image = blocks.image(columns, input.shape[-2] // taps).astype(input.dtype)
    return image if input.ndim == 3 else image[0]


def pair(value: Any) -> Any:
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def unfold_blocks(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """The blocks that slide over images `(N, C, H, W)` as columns `(N, C * kH * kW, blocks)`; `nn.functional.unfold`.

    Shape: `input` `(N, C, H, W)` or `(C, H, W)`, result `(N, C * kH * kW, blocks)` or `(C * kH * kW,
    blocks)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for integer tensors.

    >>> F.unfold(xtensor.ones(1, 1, 3, 3), 2).shape
    xtensor.Size([1, 4, 4])
    """
    return im2col(input, pair(kernel_size), pair(dilation), pair(padding), pair(stride))


def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Columns `(N, C * kH * kW, blocks)` summed into images of `output_size`: the transpose of `unfold`.

    Shape: `input` `(N, C * kH * kW, blocks)` or without N, result `(N, C, *output_size)` or without N.

    Raises: TypeError for arguments of other kinds; NotImplementedError for integer tensors.
    """
    return col2im(input, pair(output_size), pair(kernel_size), pair(dilation), pair(padding), pair(stride))
