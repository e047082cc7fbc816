"""Products of 8-bit integers, summed in 32 bits: what quantised layers compute.

The functions of arrays here are parts of programs: of those below, and of the recurrent ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import dtypes
from ..tensor import Tensor, array_of, wrap
from ..xla.cache import bounded
from ..xla.x64 import call, jit
from .choosing import chosen
from .kernels import saturated
from .layout import QuantizedTensor, integers, operands, per_tensor, seen_as

__all__ = ["Window", "convolved", "dynamically_convolved", "dynamically_multiplied", "multiplied"]

Product = Any


class Window(NamedTuple):
    """Where the kernel of a convolution lies: each a number for every dimension of space."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    transposed: bool = False
    output_padding: tuple[int, ...] = ()


# ---- parts of programs ---------------------------------------------------------------------------------------------


def centred(values: Any) -> tuple[Any, int]:
    """Integers as int8, and how much less they are: XLA multiplies 8 bits with a sign."""
    if values.dtype == jnp.uint8:
        return (values.astype(jnp.int32) - 128).astype(jnp.int8), 128
    return values, 0


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


def turned(w: Any, groups: int) -> Any:
    """The kernel (in, out / groups, ...) of a transposed convolution as that of a convolution of spread elements."""
    parts = w.reshape(groups, w.shape[0] // groups, *w.shape[1:]).swapaxes(1, 2)
    return jnp.flip(parts.reshape(groups * w.shape[1], *parts.shape[2:]), tuple(range(2, w.ndim)))


EXACT = 2**24 // (128 * 128)
"""How many products of 8 bits float32 sums without rounding."""


def summed(left: Any, right: Any, count: int) -> tuple[Any, Any, Any]:
    """Integers as XLA convolves them fastest, and what it sums in: float32 while that is exact, else 32 bits."""
    if count > EXACT:
        return left, right, jnp.int32
    return left.astype(jnp.float32), right.astype(jnp.float32), jnp.float32


def convolution_sums(x: Any, x_point: Any, w: Any, w_point: Any, at: Window, centred_weight: bool) -> Any:
    """Sums of products of what integers (N, C, ...) and (out, C / groups, ...) stand for, in units of both scales."""
    centre, less = centred(x)
    point_x = jnp.asarray(x_point).astype(jnp.int32) - less
    stride, sides = at.stride, [(p, p, 0) for p in at.padding]
    if at.transposed:
        reach = [d * (k - 1) for d, k in zip(at.dilation, w.shape[2:], strict=True)]
        spread = zip(reach, at.padding, at.output_padding, at.stride, strict=True)
        sides = [(r - p, r - p + o, s - 1) for r, p, o, s in spread]
        stride, w = (1,) * len(sides), turned(w, at.groups)
    # What is padded, or lies between spread elements, is the number zero, which is the zero point.
    centre = lax.pad(centre, point_x.astype(jnp.int8), [(0, 0, 0), (0, 0, 0), *sides])

    def product(kernel: Any) -> Any:
        left, right, kind = summed(centre, kernel, int(np.prod(kernel.shape[1:])))
        made = lax.conv_general_dilated(
            left,
            right,
            stride,
            [(0, 0)] * len(sides),
            rhs_dilation=at.dilation,
            feature_group_count=at.groups,
            precision=lax.Precision.HIGHEST,
            preferred_element_type=kind,
        )
        return made.astype(jnp.int32)

    channels = (1, -1, *[1] * len(sides))
    w_sums = w.astype(jnp.int32).reshape(w.shape[0], -1).sum(1).reshape(channels)
    sums = product(w) - point_x * w_sums
    if not centred_weight:
        points = jnp.broadcast_to(jnp.asarray(w_point).astype(jnp.int32), (w.shape[0],)).reshape(channels)
        count = int(np.prod(w.shape[1:]))
        sums = sums - points * product(jnp.ones_like(w)) + point_x * points * count
    return sums


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


def channel_factor(x_scale: Any, w_scale: Any, count: int, spatial: int) -> Any:
    factor = jnp.asarray(x_scale, jnp.float32) * jnp.asarray(w_scale).astype(jnp.float32)
    return jnp.broadcast_to(factor, (count,)).reshape(1, -1, *[1] * spatial)


@bounded(64)
def convolving(dtype: str | None, relu: bool, has_bias: bool, at: Window, centred_weight: bool) -> Any:
    """A program of a convolution: integers (N, C, ...) and (out, C / groups, ...) to integers of a dtype, or real numbers.

    centred_weight: whether the zero points of the weight are 0, as those of PyTorch's observers are.
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
        sums = convolution_sums(x, x_point, w, w_point, at, centred_weight)
        factor = channel_factor(x_scale, w_scale, sums.shape[1], sums.ndim - 2)
        out = None if dtype is None else (scale, point, np.dtype(dtype))
        channels = (1, -1, *[1] * (sums.ndim - 2))
        return finished(sums, factor, bias if has_bias else None, out, relu, channels)

    return jit(convolve)


@bounded(64)
def convolving_dynamically(
    relu: bool, has_bias: bool, at: Window, centred_weight: bool, reduce_range: bool
) -> Any:
    """A program of a convolution of real numbers, quantised as they come."""

    def convolve(x: Any, w: Any, w_scale: Any, w_point: Any, bias: Any) -> Any:
        whole, scale, point = as_they_come(x, reduce_range)
        sums = convolution_sums(whole, point, w, w_point, at, centred_weight)
        factor = channel_factor(scale, w_scale, sums.shape[1], sums.ndim - 2)
        channels = (1, -1, *[1] * (sums.ndim - 2))
        return finished(sums, factor, bias if has_bias else None, None, relu, channels)

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
    """A convolution of quantised numbers (N, C, ...) and (out, C / groups, ...): quantised by a scale, or real numbers."""
    dtype = None if scale is None else dtypes.QUANTISED[x.dtype].name
    program = convolving(dtype, relu, bias is not None, at, is_centred(weight))
    out = (np.float32(1.0 if scale is None else scale), np.float32(zero_point))
    made = wrap(call(program, *held_by(x), *held_by(weight), bias_of(bias), *out))
    return made if scale is None else seen_as(made, per_tensor(scale, zero_point))


def dynamically_convolved(
    x: Tensor,
    weight: QuantizedTensor,
    bias: Tensor | None,
    at: Window,
    relu: bool = False,
    reduce_range: bool = True,
) -> Tensor:
    """A convolution of real numbers (N, C, ...), quantised as they come: real numbers."""
    program = convolving_dynamically(relu, bias is not None, at, is_centred(weight), reduce_range)
    return wrap(call(program, array_of(x.detach()), *held_by(weight), bias_of(bias)))
