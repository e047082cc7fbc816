"""Fake quantisation: numbers rounded as quantising would, still real, with gradients that go straight through."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import checks, dtypes
from ..autograd import Function
from ..sparse.layout import host
from ..tensor import Tensor, array_of, wrap
from ..xla.cache import bounded
from ..xla.x64 import call, jit
from .kernels import along

__all__ = ["fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine"]


@bounded(16)
def faking(axis: int | None) -> Any:
    """A program from numbers to rounded ones, and where they are within the range."""

    def fake(values: Any, scale: Any, zero_point: Any, least: Any, most: Any) -> Any:
        scale, point = along(scale, axis, values.ndim), along(zero_point, axis, values.ndim)
        whole = jnp.rint(values.astype(jnp.float32) * (np.float32(1) / scale)) + point
        inside = (whole >= least) & (whole <= most)
        return ((jnp.clip(whole, least, most) - point) * scale).astype(values.dtype), inside

    return jit(fake)


class FakeQuantizePerTensorAffineCachemask(Function):
    """Rounded numbers; the gradient of those within the range is the result's, of others zero."""

    _node_name = "FakeQuantizePerTensorAffineCachemaskBackward0"

    @staticmethod
    def forward(ctx: Any, input: Tensor, axis: Any, scale: Any, point: Any, least: int, most: int) -> Tensor:
        made, inside = call(faking(axis), array_of(input), scale, point, np.float32(least), np.float32(most))
        ctx.save_for_backward(wrap(inside))
        return wrap(made)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return grad_outputs[0] * ctx.saved_tensors[0], None, None, None, None, None


class FakeQuantizePerChannelAffineCachemask(FakeQuantizePerTensorAffineCachemask):
    """The same with a scale and a zero point for each channel."""

    _node_name = "FakeQuantizePerChannelAffineCachemaskBackward0"


def check_range(quant_min: int, quant_max: int, points: Any) -> None:
    checks.check(quant_min <= quant_max, "`quant_min` should be less than or         equal to `quant_max`.")
    inside = np.all((np.asarray(points) >= quant_min) & (np.asarray(points) <= quant_max))
    checks.check(bool(inside), "`zero_point` must be between `quant_min` and `quant_max`.")


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """Numbers rounded to what `quant_min` to `quant_max` stand for; the gradient goes straight through within that range.

    >>> x = xtensor.tensor([-1.0, 0.26, 9.0])
    >>> xtensor.fake_quantize_per_tensor_affine(x, 0.1, 10, 0, 63)
    tensor([-1.0000,  0.3000,  5.3000])
    """
    scale, point = float(scale), int(zero_point)
    check_range(quant_min, quant_max, point)
    values = (np.float32(scale), np.float32(point))
    return FakeQuantizePerTensorAffineCachemask.apply(input, None, *values, quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each index of an axis."""
    if zero_point.dtype not in (dtypes.int32, dtypes.float32, dtypes.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point.dtype.scalar_name}")
    if not 0 <= axis < input.dim():
        bounds = f"[{-input.dim()}, {input.dim() - 1}]"
        raise IndexError(f"Dimension out of range (expected to be in range of {bounds}, but got {axis})")
    fits = scale.numel() == zero_point.numel() == input.shape[axis]
    checks.check(fits, "dimensions of scale and zero-point are not consistent with input tensor")
    check_range(quant_min, quant_max, host(zero_point))
    values = (array_of(scale.detach()), array_of(zero_point))
    return FakeQuantizePerChannelAffineCachemask.apply(input, axis, *values, quant_min, quant_max)
