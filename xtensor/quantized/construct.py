"""What makes quantised tensors, and what they are asked for: integers, scales and zero points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import checks, dtypes
from ..ops.create.creation import zeros
from ..sparse.layout import host
from ..tensor import Tensor
from .layout import (
    QuantizedTensor,
    Quantizer,
    check_channels,
    copied,
    dequantized,
    handles,
    per_channel,
    per_tensor,
    quantised,
    seen_as,
)

__all__ = [
    "_choose_qparams_per_tensor",
    "_empty_affine_quantized",
    "_empty_per_channel_affine_quantized",
    "_make_per_channel_quantized_tensor",
    "_make_per_tensor_quantized_tensor",
    "int_repr",
    "q_per_channel_axis",
    "q_per_channel_scales",
    "q_per_channel_zero_points",
    "q_scale",
    "q_zero_point",
    "quantize_per_channel",
    "quantize_per_tensor",
    "quantize_per_tensor_dynamic",
]


def check_source(name: str, input: Tensor, quantizer: Quantizer, dtype: Any) -> None:
    """Refuse what cannot be quantised so."""
    if dtype not in dtypes.QUANTISED:
        raise RuntimeError(f"ScalarType {dtype.scalar_name} is not supported in new_qtensor.")
    if input.dtype is not dtypes.float32:
        what = "Quantize only works on" if quantizer.axis is None else f"{name} expects a"
        raise RuntimeError(f"{what} Float Tensor, got {input.dtype.scalar_name}")
    if quantizer.axis is not None:
        check_channels(tuple(input.shape), quantizer)
        if quantizer.scheme is dtypes.per_channel_affine_float_qparams:
            return
    limits = np.iinfo(dtype.numpy)
    points = [quantizer.zero_point] if quantizer.axis is None else host(quantizer.zero_point).tolist()
    for point in points:
        for wrong, bound in ((point > limits.max, "above upper"), (point < limits.min, "below lower")):
            checks.check(not wrong, "{} zero_point {} is {} bound.", name, point, bound)


def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: dtypes.dtype) -> Any:
    """A tensor, or each of a list, with real numbers as integers of a quantised dtype: `x / scale + zero_point`, rounded half to even.

    >>> xtensor.quantize_per_tensor(xtensor.tensor([-1.0, 0.5, 2.0]), 0.1, 10, xtensor.quint8)
    tensor([-1.0000,  0.5000,  2.0000], size=(3,), dtype=xtensor.quint8,
           quantization_scheme=xtensor.per_tensor_affine, scale=0.1, zero_point=10)
    """
    if isinstance(input, (list, tuple)):
        scales, points = scale.tolist(), zero_point.tolist()
        return tuple(
            [quantize_per_tensor(x, s, z, dtype) for x, s, z in zip(input, scales, points, strict=True)]
        )
    quantizer = per_tensor(float(scale), int(zero_point))
    check_source("quantize_tensor_per_tensor_affine", input, quantizer, dtype)
    return quantised(input, quantizer, dtype)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: dtypes.dtype
) -> Tensor:
    """A tensor with real numbers as integers, by a scale and a zero point for each index of an axis.

    >>> x = xtensor.tensor([[-1.0, 0.5], [2.0, 4.0]])
    >>> scales, zero_points = xtensor.tensor([0.1, 0.5]), xtensor.tensor([10, 0])
    >>> xtensor.quantize_per_channel(x, scales, zero_points, 0, xtensor.quint8).int_repr()
    tensor([[ 0, 15],
            [ 4,  8]], dtype=xtensor.uint8)
    """
    quantizer = per_channel(scales, zero_points, axis)
    check_source("quantize_tensor_per_channel_affine", input, quantizer, dtype)
    return quantised(input, quantizer, dtype)


def parameters(low: float, high: float, least: int, most: int) -> tuple[float, int]:
    """The scale and the zero point for numbers between two: 0 is met exactly."""
    low, high = min(float(np.float32(low)), 0.0), max(float(np.float32(high)), 0.0)
    scale = (high - low) / (most - least)
    if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
        scale = 0.1
    from_low, from_high = least - low / scale, most - high / scale
    error_low, error_high = abs(least) - abs(low / scale), abs(most) - abs(high / scale)
    point = from_low if error_low < error_high else from_high
    return scale, int(min(max(np.rint(point), least), most))


def quantize_per_tensor_dynamic(input: Tensor, dtype: dtypes.dtype, reduce_range: bool) -> Tensor:
    """A tensor quantised by its own smallest and largest number; of 7 bits where the range is reduced."""
    least, most = (-128, 127) if dtype is dtypes.qint8 else (0, 255)
    checks.check(
        dtype in (dtypes.qint8, dtypes.quint8), "dtype {} not supported", getattr(dtype, "scalar_name", dtype)
    )
    if reduce_range:
        least, most = least // 2, most // 2
    values = host(input)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    return quantize_per_tensor(input, *parameters(low, high, least, most), dtype)


def _choose_qparams_per_tensor(input: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    """The scale and the zero point by which a tensor would be quantised dynamically."""
    values = host(input)
    return parameters(float(values.min()), float(values.max()), 0, 127 if reduce_range else 255)


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """A quantised tensor of a copy of integers."""
    return seen_as(input.clone(), per_tensor(scale, zero_point))


def _make_per_channel_quantized_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """A quantised tensor of a copy of integers, with a scale and a zero point for each index of an axis."""
    return seen_as(input.clone(), per_channel(scale, zero_point, axis))


def blank(size: Any, dtype: Any, device: Any) -> Tensor:
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else tuple(size)
    if dtype not in dtypes.QUANTISED:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    return zeros(shape, dtype=dtypes.QUANTISED[dtype], device=device)


def _empty_affine_quantized(
    *size: Any, scale: float = 1.0, zero_point: int = 0, dtype: Any = None, device: Any = None, **options: Any
) -> Tensor:
    """A quantised tensor of these sizes, whose integers are 0."""
    return seen_as(blank(size, dtype, device), per_tensor(scale, zero_point))


def _empty_per_channel_affine_quantized(
    *size: Any,
    scales: Tensor,
    zero_points: Tensor,
    axis: int,
    dtype: Any = None,
    device: Any = None,
    **options: Any,
) -> Tensor:
    """A quantised tensor of these sizes with a scale and a zero point for each index of an axis; the integers are 0."""
    return seen_as(blank(size, dtype, device), per_channel(scales, zero_points, axis))


# ---- what a quantised tensor is asked for --------------------------------------------------------------------------


def quantizer_of(input: Any, name: str, channels: bool | None = None) -> Quantizer:
    """How a tensor is quantised; refused for one that is not, or not in this way."""
    if not isinstance(input, QuantizedTensor):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend. This could be because the operator doesn't "
            "exist for this backend, or was omitted during the selective/custom build process (if using custom build)."
        )
    found = input._quantizer
    if channels is not None and channels != (found.axis is not None):
        wanted = "kPerTensorAffine"
        if channels:
            wanted = "kPerChannelAffine || quantizer->qscheme() == kPerChannelAffineFloatQParams"
        raise RuntimeError(
            f"Expected quantizer->qscheme() == {wanted} to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    return found


@handles("int_repr")
def int_repr(input: Tensor) -> Tensor:
    """A copy of the integers of a quantised tensor.

    Shape: that of the tensor itself.

    Raises: NotImplementedError for tensors that are not quantised.
    """
    quantizer_of(input, "int_repr")
    return copied(input)  # pyright: ignore[reportArgumentType]


@handles("q_scale")
def q_scale(input: Tensor) -> float:
    """The scale of a tensor that has one.

    Raises: NotImplementedError for a tensor that is not quantized.
    """
    return quantizer_of(input, "q_scale", False).scale


@handles("q_zero_point")
def q_zero_point(input: Tensor) -> int:
    """The zero point of a tensor that has one.

    Raises: NotImplementedError for tensors that are not quantised.
    """
    return quantizer_of(input, "q_zero_point", False).zero_point


@handles("q_per_channel_scales")
def q_per_channel_scales(input: Tensor) -> Tensor:
    """The scales of the channels, float64.

    Shape: result `(C)`, C the number of channels.

    Raises: NotImplementedError for tensors that are not quantised.
    """
    return quantizer_of(input, "q_per_channel_scales", True).scale


@handles("q_per_channel_zero_points")
def q_per_channel_zero_points(input: Tensor) -> Tensor:
    """The zero points of the channels, int64.

    Shape: result `(C)`, C the number of channels.

    Raises: NotImplementedError for tensors that are not quantised.
    """
    return quantizer_of(input, "q_per_channel_zero_points", True).zero_point


@handles("q_per_channel_axis")
def q_per_channel_axis(input: Tensor) -> int:
    """The dimension whose indices are the channels.

    Raises: NotImplementedError for tensors that are not quantised.
    """
    axis = quantizer_of(input, "q_per_channel_axis", True).axis
    assert axis is not None
    return axis


@handles("qscheme")
def qscheme(self: Tensor) -> dtypes.qscheme:
    """How the tensor is quantised: `per_tensor_affine`, ...

    Raises: NotImplementedError for tensors that are not quantised.
    """
    return quantizer_of(self, "qscheme").scheme


@handles("dequantize")
def dequantize(input: Any) -> Any:
    """The real numbers, float32, of a tensor, or of each of a list."""
    if isinstance(input, (list, tuple)):
        return [t.dequantize() for t in input]
    return dequantized(input)
