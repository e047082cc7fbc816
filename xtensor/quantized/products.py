"""Products of 8-bit integers, summed in 32 bits: what quantised layers compute."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import dtypes
from ..tensor import Tensor, array_of, wrap
from ..xla.cache import bounded
from ..xla.x64 import call, jit
from .kernels import saturated
from .layout import QuantizedTensor, integers, operands, per_tensor, seen_as

__all__ = ["convolved", "multiplied"]


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
        centre, less = centred(x)
        point_x = jnp.asarray(x_point).astype(jnp.int32) - less
        dims = (((x.ndim - 1,), (1,)), ((), ()))
        sums = lax.dot_general(centre, w, dims, preferred_element_type=jnp.int32)
        w_sums = w.astype(jnp.int32).sum(1)
        w_point = jnp.asarray(w_point).astype(jnp.int32)
        x_sums = centre.astype(jnp.int32).sum(-1, keepdims=True)
        sums = sums - point_x * w_sums - w_point * x_sums + point_x * w_point * x.shape[-1]
        factor = jnp.asarray(x_scale, jnp.float32) * jnp.asarray(w_scale).astype(jnp.float32)
        out = None if dtype is None else (scale, point, np.dtype(dtype))
        return finished(sums, factor, bias if has_bias else None, out, relu, (-1,))

    return jit(multiply)


@bounded(64)
def convolving(
    dtype: str,
    relu: bool,
    has_bias: bool,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    centred_weight: bool,
) -> Any:
    """A program of a convolution: integers (N, C, ...) and (out, C / groups, ...) to integers of a dtype.

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
        centre, less = centred(x)
        point_x = jnp.asarray(x_point).astype(jnp.int32) - less
        sides = [(0, 0, 0), (0, 0, 0), *[(p, p, 0) for p in padding]]
        # Padding is the number zero, which is the zero point.
        centre = lax.pad(centre, point_x.astype(jnp.int8), sides)

        def product(kernel: Any) -> Any:
            return lax.conv_general_dilated(
                centre,
                kernel,
                stride,
                [(0, 0)] * len(padding),
                rhs_dilation=dilation,
                feature_group_count=groups,
                preferred_element_type=jnp.int32,
            )

        channels = (1, -1, *[1] * len(padding))
        w_sums = w.astype(jnp.int32).reshape(w.shape[0], -1).sum(1).reshape(channels)
        sums = product(w) - point_x * w_sums
        if not centred_weight:
            points = jnp.broadcast_to(jnp.asarray(w_point).astype(jnp.int32), (w.shape[0],)).reshape(channels)
            count = int(np.prod(w.shape[1:]))
            sums = sums - points * product(jnp.ones_like(w)) + point_x * points * count
        factor = jnp.asarray(x_scale, jnp.float32) * jnp.asarray(w_scale).astype(jnp.float32)
        factor = jnp.broadcast_to(factor, (w.shape[0],)).reshape(channels)
        return finished(
            sums, factor, bias if has_bias else None, (scale, point, np.dtype(dtype)), relu, channels
        )

    return jit(convolve)


def bias_of(bias: Tensor | None) -> Any:
    return np.float32(0) if bias is None else array_of(bias.detach())


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
    given = (array_of(integers(x)), *operands(x._quantizer), array_of(integers(weight)))
    out = (np.float32(1.0 if scale is None else scale), np.float32(zero_point))
    made = wrap(call(program, *given, *operands(weight._quantizer), bias_of(bias), *out))
    return made if scale is None else seen_as(made, per_tensor(scale, zero_point))


def convolved(
    x: QuantizedTensor,
    weight: QuantizedTensor,
    bias: Tensor | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    scale: float,
    zero_point: int,
    relu: bool = False,
) -> Tensor:
    """A convolution of quantised numbers (N, C, ...) and (out, C / groups, ...), padded with the number zero."""
    dtype = dtypes.QUANTISED[x.dtype].name
    # Per tensor the zero point is a number, per channel a small array.
    centred_weight = not np.any(np.asarray(operands(weight._quantizer)[1]))
    program = convolving(dtype, relu, bias is not None, stride, padding, dilation, groups, centred_weight)
    given = (array_of(integers(x)), *operands(x._quantizer), array_of(integers(weight)))
    out = (np.float32(scale), np.float32(zero_point))
    made = wrap(call(program, *given, *operands(weight._quantizer), bias_of(bias), *out))
    return seen_as(made, per_tensor(scale, zero_point))
