"""Products of 8-bit integers, summed in 32 bits: what quantised layers compute.

The functions of arrays here are parts of programs: of those below, and of the recurrent ones.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import dtypes
from ..geometry import contiguous_strides
from ..tensor import Tensor, array_of, sizes_of, strides_of, wrap
from ..xla.cache import bounded
from ..xla.x64 import call, jit
from .choosing import chosen
from .kernels import saturated
from .layout import (
    QuantizedTensor,
    channels_first,
    channels_last,
    integers,
    operands,
    per_tensor,
    seen_as,
)
from .windows import Window, centred, window_sums

__all__ = ["Window", "convolved", "dynamically_convolved", "dynamically_multiplied", "multiplied"]

Product = Any


# ---- parts of programs ---------------------------------------------------------------------------------------------


def finished(sums: Any, scale: Any, bias: Any, out: Any, relu: bool, channels: Any) -> Any:
    """Integer sums as what a quantised layer gives: real where there is no scale to give, else integers."""
    if out is None:
        values = sums.astype(jnp.float32) * scale
        values = values if bias is None else values + bias.reshape(channels)
        return jnp.maximum(values, 0) if relu else values
    out_scale, out_point, dtype = out
    if bias is not None:
        # The bias has the scale of the sums, as fbgemm adds it.
        sums = sums.astype(jnp.float32) + bias.reshape(channels) / scale
    values = jnp.rint(sums.astype(jnp.float32) * (scale / out_scale)) + out_point
    return saturated(jnp.maximum(values, out_point) if relu else values, dtype)


def linear_sums(x: Any, x_point: Any, w: Any, w_point: Any) -> Any:
    """Sums of products of what integers (..., in) and (out, in) stand for, in units of both scales."""
    centre, less = centred(x)
    point_x = jnp.asarray(x_point).astype(jnp.int32) - less
    dims = (((x.ndim - 1,), (1,)), ((), ()))
    sums = lax.dot_general(centre, w, dims, preferred_element_type=jnp.int32)
    w_sums = w.astype(jnp.int32).sum(1)
    w_point = jnp.asarray(w_point).astype(jnp.int32)
    x_sums = centre.astype(jnp.int32).sum(-1, keepdims=True)
    return sums - point_x * w_sums - w_point * x_sums + point_x * w_point * x.shape[-1]


def as_they_come(values: Any, reduce_range: bool) -> tuple[Any, Any, Any]:
    """Real numbers as uint8, quantised by their own limits: integers, scale and zero point; of 7 bits where reduced."""
    limits = (values.min(), values.max()) if values.size else (jnp.zeros(()), jnp.zeros(()))
    scale, point = chosen(*limits, 0, 127 if reduce_range else 255)
    scale = scale.astype(jnp.float32)
    whole = jnp.rint(values.astype(jnp.float32) * (np.float32(1) / scale) + point.astype(jnp.float32))
    return saturated(jnp.minimum(whole, 127 if reduce_range else 255), np.dtype("uint8")), scale, point


def dynamic_linear(x: Any, w: Any, w_scale: Any, w_point: Any, bias: Any, reduce_range: bool) -> Any:
    """A linear layer of real numbers (..., in) and integers (out, in), as real numbers."""
    whole, scale, point = as_they_come(x, reduce_range)
    factor = scale * jnp.asarray(w_scale).astype(jnp.float32)
    return finished(linear_sums(whole, point, w, w_point), factor, bias, None, False, (-1,))


# ---- programs ------------------------------------------------------------------------------------------------------


@bounded(64)
def multiplying(dtype: str | None, relu: bool, has_bias: bool) -> Any:
    """A program of a linear layer: integers (..., in) and (out, in) to integers of a dtype, or to real numbers."""

    def multiply(
        x: Any,
        x_scale: Any,
        x_point: Any,
        w: Any,
        w_scale: Any,
        w_point: Any,
        bias: Any,
        scale: Any,
        point: Any,
    ) -> Any:
        sums = linear_sums(x, x_point, w, w_point)
        factor = jnp.asarray(x_scale, jnp.float32) * jnp.asarray(w_scale).astype(jnp.float32)
        out = None if dtype is None else (scale, point, np.dtype(dtype))
        return finished(sums, factor, bias if has_bias else None, out, relu, (-1,))

    return jit(multiply)


@bounded(64)
def multiplying_dynamically(relu: bool, has_bias: bool, reduce_range: bool) -> Any:
    """A program of a linear layer of real numbers, quantised as they come."""

    def multiply(x: Any, w: Any, w_scale: Any, w_point: Any, bias: Any) -> Any:
        made = dynamic_linear(x, w, w_scale, w_point, bias if has_bias else None, reduce_range)
        return jnp.maximum(made, 0) if relu else made

    return jit(multiply)


@bounded(64)
def convolving(
    dtype: str | None, relu: bool, has_bias: bool, at: Window, centred_weight: bool, last: bool
) -> Any:
    """A program of a convolution: integers (N, C, ...) and (out, C / groups, ...) to integers of a dtype, or real numbers.

    centred_weight: whether the zero points of the weight are 0, as those of PyTorch's observers are. Channels of results lie
    last: (N, ..., out); those of the input where `last` says so.
    """

    def convolve(
        x: Any,
        x_scale: Any,
        x_point: Any,
        w: Any,
        w_scale: Any,
        w_point: Any,
        bias: Any,
        scale: Any,
        point: Any,
    ) -> Any:
        factor = jnp.asarray(x_scale, jnp.float32) * jnp.asarray(w_scale).astype(jnp.float32)
        out = None if dtype is None else (scale, point, np.dtype(dtype))

        def finish(sums: Any) -> Any:
            return finished(sums, factor, bias if has_bias else None, out, relu, (-1,))

        w_point = None if centred_weight else w_point
        return window_sums(
            x if last else jnp.moveaxis(x, 1, -1), x_point, w, w_point, at, dtype or "float32", finish
        )

    return jit(convolve)


@bounded(64)
def convolving_dynamically(
    relu: bool, has_bias: bool, at: Window, centred_weight: bool, reduce_range: bool, last: bool
) -> Any:
    """A program of a convolution of real numbers, quantised as they come; in memory as those of `convolving`."""

    def convolve(x: Any, w: Any, w_scale: Any, w_point: Any, bias: Any) -> Any:
        whole, scale, point = as_they_come(x, reduce_range)
        factor = scale * jnp.asarray(w_scale).astype(jnp.float32)

        def finish(sums: Any) -> Any:
            return finished(sums, factor, bias if has_bias else None, None, relu, (-1,))

        w_point = None if centred_weight else w_point
        return window_sums(
            whole if last else jnp.moveaxis(whole, 1, -1), point, w, w_point, at, "float32", finish
        )

    return jit(convolve)


# ---- layers --------------------------------------------------------------------------------------------------------


def bias_of(bias: Tensor | None) -> Any:
    return np.float32(0) if bias is None else array_of(bias.detach())


def held_by(weight: QuantizedTensor) -> tuple[Any, Any, Any]:
    """Integers, scale and zero point of a weight."""
    return (array_of(integers(weight)), *operands(weight._quantizer))


def is_centred(weight: QuantizedTensor) -> bool:
    """Whether the zero points are 0: per tensor a number, per channel a small array."""
    return not np.any(np.asarray(operands(weight._quantizer)[1]))


def lying(x: Tensor) -> tuple[Any, bool]:
    """The values of (N, C, ...) as an array, and whether its channels come last: where they lie so."""
    sizes, strides = sizes_of(x), strides_of(x)
    first, *steps, step = contiguous_strides((sizes[0], *sizes[2:], sizes[1]))
    if sizes[1] == 1 or strides != (first, step, *steps):
        return array_of(x), False
    return array_of(channels_last(x)), True


def in_image(x: Tensor, w: Tensor, at: Window) -> tuple[Tensor, Tensor, Window]:
    """Rows (N, C, L) as images of one row where a kernel or a stride is given for images, as PyTorch takes all rows.

    Arguments of other convolutions stay as they are.
    """
    geometry = (at.stride, at.padding, at.dilation, at.output_padding)
    if x.dim() != 3 or max(w.dim() - 2, *map(len, geometry)) == 1:
        return x, w, at
    # Of all but the kernel, what is given for rows alone counts.
    last = zip((1, 0, 1, 0), geometry, strict=True)
    stride, padding, dilation, more = [(usual, (usual, *given)[-1]) for usual, given in last]
    w = w if w.dim() > 3 else w.unsqueeze(2)
    return x.unsqueeze(2), w, Window(stride, padding, dilation, at.groups, at.transposed, more)


def multiplied(
    x: QuantizedTensor,
    weight: QuantizedTensor,
    bias: Tensor | None,
    scale: float | None = None,
    zero_point: int = 0,
    relu: bool = False,
) -> Tensor:
    """A linear layer of quantised numbers (..., in) and (out, in): quantised by a scale, or real numbers where it is None."""
    dtype = None if scale is None else dtypes.QUANTISED[x.dtype].name
    program = multiplying(dtype, relu, bias is not None)
    out = (np.float32(1.0 if scale is None else scale), np.float32(zero_point))
    made = wrap(call(program, *held_by(x), *held_by(weight), bias_of(bias), *out))
    return made if scale is None else seen_as(made, per_tensor(scale, zero_point))


def dynamically_multiplied(
    x: Tensor, weight: QuantizedTensor, bias: Tensor | None, relu: bool = False, reduce_range: bool = True
) -> Tensor:
    """A linear layer of real numbers (..., in), quantised as they come, and quantised ones (out, in): real numbers."""
    program = multiplying_dynamically(relu, bias is not None, reduce_range)
    return wrap(call(program, array_of(x.detach()), *held_by(weight), bias_of(bias)))


def convolved(
    x: QuantizedTensor,
    weight: QuantizedTensor,
    bias: Tensor | None,
    at: Window,
    scale: float | None = None,
    zero_point: int = 0,
    relu: bool = False,
) -> Tensor:
    """A convolution of quantised numbers (N, C, ...) and (out, C / groups, ...): quantised by a scale, or real numbers.

    Channels of the result lie last in memory, as in PyTorch.
    """
    dtype = None if scale is None else dtypes.QUANTISED[x.dtype].name
    source, kernel, at = in_image(integers(x), integers(weight), at)
    held, last = lying(source)
    program = convolving(dtype, relu, bias is not None, at, is_centred(weight), last)
    parameters = (*operands(x._quantizer), array_of(kernel), *operands(weight._quantizer), bias_of(bias))
    out = (np.float32(1.0 if scale is None else scale), np.float32(zero_point))
    made = channels_first(call(program, held, *parameters, *out))
    if source.dim() > x.dim():
        made = made.squeeze(2)
    return made if scale is None else seen_as(made, per_tensor(scale, zero_point))


def dynamically_convolved(
    x: Tensor,
    weight: QuantizedTensor,
    bias: Tensor | None,
    at: Window,
    relu: bool = False,
    reduce_range: bool = True,
) -> Tensor:
    """A convolution of real numbers (N, C, ...), quantised as they come: real numbers, whose channels lie last in memory."""
    source, kernel, at = in_image(x.detach(), integers(weight), at)
    held, last = lying(source)
    program = convolving_dynamically(relu, bias is not None, at, is_centred(weight), reduce_range, last)
    made = channels_first(call(program, held, array_of(kernel), *operands(weight._quantizer), bias_of(bias)))
    return made.squeeze(2) if source.dim() > x.dim() else made
