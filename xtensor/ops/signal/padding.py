"""Padding: constants, reflections, the border's values, or the other side's, around the last dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...operators.declare import general
from ...operators.functions.overloads import of_tensors
from ...operators.schema import Array, Number
from ...tensor import Tensor

__all__ = ["constant_pad_nd", "pad"]

COMBINATIONS = """Supported combinations for non-constant padding:
  - 2D or 3D input: padding size = 2 (pads last dimension)
  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)
  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"""


def pairs(padding: Sequence[int]) -> list[tuple[int, int]]:
    """The padding before and after each dimension, the last dimension first."""
    return [(padding[i], padding[i + 1]) for i in range(0, len(padding), 2)]


# ---- constants -----------------------------------------------------------------------------------------------------


def _config(ndim: int, padding: Sequence[int], sign: int = 1) -> list[tuple[int, int, int]]:
    config = [(0, 0, 0)] * ndim
    for i, (low, high) in enumerate(pairs(padding)):
        config[ndim - 1 - i] = (sign * low, sign * high, 0)
    return config


@general(
    formats=True,
    views="loop",
    derivatives=dict(
        input=lambda grad, pad: lax.pad(grad, jnp.zeros((), grad.dtype), _config(grad.ndim, pad, -1))
    ),
)
def constant_pad_nd(input: Array, pad: Sequence[int], value: Number = 0) -> Array:
    """The tensor with `value` around its last dimensions (in pairs, the last dimension first); negative pads crop."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)} while the input has {input.ndim} dimensions."
        )
    for i, (low, high) in enumerate(pairs(pad)):
        axis = input.ndim - 1 - i
        size = input.shape[axis]
        # Cropping one side below nothing is an error that a surplus on the other side does not undo.
        if size + min(low, 0) + min(high, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        if size + low + high < 0:
            raise RuntimeError(
                f"The input size {size}, plus negative padding {low} and {high} resulted in a negative output size, which "
                f"is invalid. Check dimension {axis} of your input."
            )
    return lax.pad(input, jnp.asarray(value).astype(input.dtype), _config(input.ndim, pad))


# ---- other modes ---------------------------------------------------------------------------------------------------


def part(x: Any, axis: int, start: int, stop: int) -> Any:
    return lax.slice_in_dim(x, start, stop, axis=axis)


def edge(x: Any, axis: int, at: int, count: int) -> Any:
    """The slice at `at` repeated `count` times."""
    shape = list(x.shape)
    shape[axis] = count
    return jnp.broadcast_to(part(x, axis, at, at + 1), shape)


def padded(x: Any, axis: int, low: int, high: int, mode: str) -> Any:
    """One dimension padded (or cropped, where negative)."""
    n = x.shape[axis]
    before, after = [], []
    if mode == "reflect":
        if low > 0:
            before = [lax.rev(part(x, axis, 1, low + 1), (axis,))]
        if high > 0:
            after = [lax.rev(part(x, axis, n - 1 - high, n - 1), (axis,))]
    elif mode == "replicate":
        if low > 0:
            before = [edge(x, axis, 0, low)]
        if high > 0:
            after = [edge(x, axis, n - 1, high)]
    else:
        # The values that wrap are those of what remains when the negative side is cropped.
        if low > 0:
            before = [part(x, axis, n - low + min(high, 0), n + min(high, 0))]
        if high > 0:
            after = [part(x, axis, max(-low, 0), max(-low, 0) + high)]
    middle = part(x, axis, max(-low, 0), n - max(-high, 0))
    pieces = [*before, middle, *after]
    return lax.concatenate(pieces, axis) if len(pieces) > 1 else middle


def sources(size: int, low: int, high: int, mode: str) -> np.ndarray[Any, Any]:
    """Which element each element of the padded (or cropped) dimension is a copy of."""
    at = np.arange(size + low + high) - low
    if mode == "reflect":
        at = np.abs(at)
        return np.where(at >= size, 2 * (size - 1) - at, at)
    return np.clip(at, 0, max(size - 1, 0))


def pad_all(x: Any, padding: Sequence[int], mode: str) -> Any:
    shape = padded_shape(x.shape, padding)
    for i, (low, high) in enumerate(pairs(padding)):
        axis = x.ndim - 1 - i
        if 0 not in shape and left(x.shape[axis], low, high) >= 0:
            x = padded(x, axis, low, high, mode)
        else:
            # Nothing remains of the dimension but what it is padded with, or of the tensor.
            x = jnp.take(x, sources(x.shape[axis], low, high, mode), axis=axis, mode="clip")
    return x


def left(size: int, low: int, high: int) -> int:
    """What remains of a dimension that negative paddings crop."""
    return size + min(low, 0) + min(high, 0)


def padded_shape(shape: Sequence[int], padding: Sequence[int]) -> list[int]:
    made = list(shape)
    for i, (low, high) in enumerate(pairs(padding)):
        made[-1 - i] += low + high
    return made


def check_circular(shape: Sequence[int], padding: Sequence[int]) -> None:
    """PyTorch's errors, and one for values that wrap though they are cropped: PyTorch takes memory that nobody wrote."""
    made = padded_shape(shape, padding)
    for i, (low, high) in reversed(list(enumerate(pairs(padding)))):
        size = shape[-1 - i]
        if low > size or high > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + low + high < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    for i, (low, high) in enumerate(pairs(padding)):
        size = shape[-1 - i]
        if 0 not in made and left(size, low, high) < max(low, high):
            raise RuntimeError(
                f"Padding value causes wrapping around more than once: of {size} elements at dimension "
                f"{len(shape) - 1 - i}, the negative padding of ({low}, {high}) leaves {max(left(size, low, high), 0)}."
            )


def check_border(shape: Sequence[int], padding: Sequence[int], mode: str) -> None:
    """PyTorch's errors for paddings that the input is too small for."""
    if mode == "circular":
        check_circular(shape, padding)
        return
    ndim, count = len(shape), len(padding) // 2
    if 0 in shape[ndim - count - 1 :]:
        raise RuntimeError(
            f"Expected {count + 1}D or {count + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    for i, (low, high) in enumerate(pairs(padding)):
        axis = ndim - 1 - i
        if mode == "reflect" and (low >= shape[axis] or high >= shape[axis]):
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({low}, {high}) at dimension {axis} of input {list(shape)}"
            )
    made = padded_shape(shape, padding)
    # One padded dimension that something is left of is enough: then the result may be empty.
    if max(made[-count:]) < 1:
        have = [f"{letter}: {size}" for letter, size in zip("DHW"[-count:], shape[-count:], strict=True)]
        want = " ".join(
            [f"{letter}: {size}" for letter, size in zip("DHW"[-count:], made[-count:], strict=True)]
        )
        given = " ".join([have[0], ", ".join(have[1:])]) if count == 3 else ", ".join(have)
        space = " " if count == 2 and mode == "replicate" else ""
        raise RuntimeError(f"input ({given}{space}) is too small. Calculated output {want}")
    if min(made) < 0:
        if count == 2 and mode == "reflect":
            raise RuntimeError("numel: integer multiplication overflow")
        first = next(size for size in made if size < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {first}: {made}")


def _border_grad(grad: Array, input_shape: Any, pad: Any, border: str) -> Array:
    like = jax.ShapeDtypeStruct(tuple(input_shape), grad.dtype)
    return jax.linear_transpose(lambda x: pad_all(x, pad, border), like)(grad)[0]


def padding_node(node: Any) -> str:
    """The name of the node, by what the borders are and the dimensions that have some."""
    border = BORDERS.get(node.argument("border"))
    return (
        f"{border}Pad{len(node.argument('pad')) // 2}DBackward0" if border else "torch::autograd::CopySlices"
    )


BORDERS = {"reflect": "Reflection", "replicate": "Replication"}


@general(
    autocast=dict(cpu="float32"),
    formats=True,
    name="border_pad",
    node=padding_node,
    derivatives=dict(input=_border_grad),
)
def border_pad(input: Array, pad: Sequence[int], border: str) -> Array:
    """The tensor padded by `reflect`, `replicate` or `circular` values of its own."""
    check_border(input.shape, pad, border)
    return pad_all(input, pad, border)


@of_tensors()
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """The tensor padded around its last dimensions: pairs of sizes, the last dimension first; negative ones crop.

    Differs from PyTorch: circular padding by values that a negative size crops away is an error, not memory never written.

    Shape: `input` `(*)`; result with `before + after` added to each size that `pad` names.

    Raises: TypeError for arguments of other kinds; RuntimeError where `pad` has an odd length or more pairs than
    there are dimensions.

    >>> F.pad(xtensor.tensor([[1, 2]]), (1, 2), value=9)
    tensor([[9, 1, 2, 9, 9]])
    """
    pad = tuple(pad)
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if (len(pad), input.dim()) not in ((2, 2), (2, 3), (4, 3), (4, 4), (6, 4), (6, 5)):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.dim()}D input tensor.\n{COMBINATIONS}"
        )
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return border_pad(input.contiguous() if mode == "circular" else input, pad, mode)
