"""Fake quantisation: numbers rounded as quantising would, still real, with gradients that go straight through."""

# Parameters have the names that PyTorch gives them, class by class.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

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
from .choosing import chosen, moved
from .kernels import along

__all__ = [
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
    "fused_moving_avg_obs_fake_quant",
]


def rounded(
    values: Any, scale: Any, zero_point: Any, axis: int | None, least: Any, most: Any
) -> tuple[Any, Any]:
    """Numbers as integers between two stand for them, and where they are within that range."""
    floating = jnp.asarray(zero_point).dtype == jnp.float32
    scale, point = along(scale, axis, values.ndim), along(zero_point, axis, values.ndim)
    # A whole zero point is added to what is rounded, another one before.
    given = values.astype(jnp.float32) * (np.float32(1) / scale)
    whole = jnp.rint(given + point) if floating else jnp.rint(given) + point
    inside = (whole >= least) & (whole <= most)
    return ((jnp.clip(whole, least, most) - point) * scale).astype(values.dtype), inside


@bounded(16)
def faking(axis: int | None) -> Any:
    """A program from numbers to rounded ones, and where they are within the range."""

    def fake(values: Any, scale: Any, zero_point: Any, least: Any, most: Any) -> Any:
        return rounded(values, scale, zero_point, axis, least, most)

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
    values = (np.float32(scale), np.int32(point))
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
    if not zero_point.is_floating_point():
        check_range(quant_min, quant_max, host(zero_point))
    values = (array_of(scale.detach()), array_of(zero_point))
    return FakeQuantizePerChannelAffineCachemask.apply(input, axis, *values, quant_min, quant_max)


@bounded(32)
def watching(axis: int | None, least: int, most: int, symmetric: bool, rounds: bool) -> Any:
    """A program from numbers and the limits seen before to rounded numbers, where they are within, limits and parameters."""

    def watch(values: Any, low: Any, high: Any, constant: Any) -> Any:
        others = None if axis is None else tuple([d for d in range(values.ndim) if d != axis])
        low = moved(low, values.min(others), constant)
        high = moved(high, values.max(others), constant)
        scale, point = chosen(low, high, least, most, symmetric)
        scale = scale.astype(jnp.float32)
        made, inside = values, jnp.ones((), bool)
        if rounds:
            made, inside = rounded(values, scale, point, axis, least, most)
        return made, inside, low, high, scale.reshape(-1), point.reshape(-1)

    return jit(watch)


class FusedMovingAvgObsFqHelper(FakeQuantizePerTensorAffineCachemask):
    """Rounded numbers of a program that has also seen them."""

    _node_name = "FusedMovingAvgObsFqHelperBackward0"

    @staticmethod
    def forward(ctx: Any, input: Tensor, made: Tensor, inside: Tensor) -> Tensor:
        ctx.save_for_backward(inside)
        return made.view_as(made)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return grad_outputs[0] * ctx.saved_tensors[0], None, None


def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """Numbers rounded by moving averages of their limits, which are written: limits, scale and zero point. One program does all.

    >>> one, low, high = xtensor.ones(1), xtensor.tensor(float("inf")), xtensor.tensor(float("-inf"))
    >>> scale, point = xtensor.ones(1), xtensor.zeros(1, dtype=xtensor.int32)
    >>> x = xtensor.tensor([0.0, 0.4, 1.5])
    >>> xtensor.fused_moving_avg_obs_fake_quant(x, one, one, low, high, scale, point, 0.01, 0, 15, 0)
    tensor([0.0000, 0.4000, 1.5000])
    """
    axis = ch_axis % input.dim() if per_row_fake_quant and input.dim() else None
    rounds = bool(fake_quant_on.item())
    if not observer_on.item():
        if not rounds:
            return input.clone()
        if axis is None:
            return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)
        return fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max)
    if axis is not None:
        for held, start in ((running_min, np.inf), (running_max, -np.inf)):
            if held.numel() == 0:
                held.resize_(input.shape[axis]).fill_(start)
        scale.resize_(input.shape[axis])
        zero_point.resize_(input.shape[axis])
    program = watching(axis, quant_min, quant_max, symmetric_quant, rounds)
    limits = (array_of(running_min), array_of(running_max))
    found = call(program, array_of(input.detach()), *limits, np.float32(averaging_const))
    made, inside, *new = map(wrap, found)
    for held, value in zip((running_min, running_max, scale, zero_point), new, strict=True):
        held.copy_(value.reshape(tuple(held.shape)))
    return FusedMovingAvgObsFqHelper.apply(input, made, inside)
