"""`torch.ao.nn.quantized.functional`: functions of quantised tensors; ValueError for others."""

from __future__ import annotations

from typing import Any

from ..... import dtypes
from .....nn import functional as F
from .....quantized import functions
from .....quantized.layout import integers, seen_as
from .....quantized.products import Window, convolved, multiplied
from .....tensor import Tensor
from .modules.conv import each

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool2d",
    "avg_pool3d",
    "celu",
    "clamp",
    "conv1d",
    "conv2d",
    "conv3d",
    "elu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "interpolate",
    "leaky_relu",
    "linear",
    "max_pool1d",
    "max_pool2d",
    "threshold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def check(name: str, input: Any) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Means over windows of (N, C, H, W)."""
    check("avg_pool2d", input)
    return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Means over windows of (N, C, D, H, W)."""
    check("avg_pool3d", input)
    return F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Means over as many windows as there are to be results."""
    check("functional.adaptive_avg_pool2d", input)
    return F.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Means over as many windows as there are to be results."""
    check("functional.adaptive_avg_pool3d", input)
    return F.adaptive_avg_pool3d(input, output_size)


def convolution(
    space: int,
    input: Any,
    weight: Any,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    padding_mode: str,
    scale: float,
    zero_point: int,
    dtype: dtypes.dtype,
) -> Tensor:
    if padding_mode != "zeros":
        raise NotImplementedError("Only zero-padding is supported!")
    if input.dtype is not dtypes.quint8:
        raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
    if weight.dtype is not dtypes.qint8:
        raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
    if input.dim() != space + 2:
        letters = {1: "N, C, L", 2: "N, C, H, W", 3: "N, C, D, H, W"}[space]
        raise ValueError(f"Input shape must be `({letters})`!")
    at = Window(each(stride, space), each(padding, space), each(dilation, space), groups)
    return convolved(input, weight, bias, at, scale, zero_point)


def conv1d(
    input: Any,
    weight: Any,
    bias: Tensor | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: dtypes.dtype = dtypes.quint8,
) -> Tensor:
    """A convolution of (N, C, L), quantised by a scale."""
    how = (stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype)
    return convolution(1, input, weight, bias, *how)


def conv2d(
    input: Any,
    weight: Any,
    bias: Tensor | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: dtypes.dtype = dtypes.quint8,
) -> Tensor:
    """A convolution of (N, C, H, W), quantised by a scale.

    >>> x = xtensor.quantize_per_tensor(xtensor.ones(1, 1, 3, 3), 0.1, 0, xtensor.quint8)
    >>> w = xtensor.quantize_per_tensor(xtensor.ones(1, 1, 3, 3), 0.1, 0, xtensor.qint8)
    >>> xtensor.ao.nn.quantized.functional.conv2d(x, w, None, scale=0.5).item()
    9.0
    """
    how = (stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype)
    return convolution(2, input, weight, bias, *how)


def conv3d(
    input: Any,
    weight: Any,
    bias: Tensor | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: dtypes.dtype = dtypes.quint8,
) -> Tensor:
    """A convolution of (N, C, D, H, W), quantised by a scale."""
    how = (stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype)
    return convolution(3, input, weight, bias, *how)


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Images of another size."""
    check("interpolate", input)
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def linear(
    input: Any,
    weight: Any,
    bias: Tensor | None = None,
    scale: Any = None,
    zero_point: Any = None,
) -> Tensor:
    """`input @ weight.T + bias`, quantised as the input is, or by a scale."""
    functions.linear_prepack(weight, bias)
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    return multiplied(input, weight, bias, float(scale), int(zero_point))


def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The largest of windows of (N, C, L); NotImplementedError where their places are asked for."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The largest of windows of (N, C, H, W); NotImplementedError where their places are asked for."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def celu(input: Any, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """`celu`, quantised by a scale."""
    check("celu", input)
    return functions.celu(input, scale, zero_point, alpha)


def leaky_relu(
    input: Any,
    negative_slope: float = 0.01,
    inplace: bool = False,
    scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:
    """`leaky_relu`, quantised by a scale, or as its argument."""
    if scale is not None and zero_point is not None:
        if inplace:
            raise AssertionError("Cannot rescale with `inplace`")
        return functions.leaky_relu(input, negative_slope, inplace, scale, zero_point)
    made = F.leaky_relu(input, negative_slope)
    return input.copy_(made) if inplace else made


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Numbers kept within two."""
    check("hardtanh", input)
    return input.clamp_(min_val, max_val) if inplace else input.clamp(min_val, max_val)


def hardswish(input: Any, scale: float, zero_point: int) -> Tensor:
    """`hardswish`, quantised by a scale."""
    check("hardswish", input)
    return functions.hardswish(input, scale, zero_point)


def threshold(input: Any, threshold: float, value: float) -> Tensor:
    """Numbers above a threshold, and a value for others."""
    check("threshold", input)
    if threshold is None:
        raise ValueError("Input to 'threshold' must be specified!")
    if value is None:
        raise ValueError("Input to 'value' must be specified!")
    return functions.threshold(input, threshold, value)


def elu(input: Any, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """`elu`, quantised by a scale."""
    check("elu", input)
    return functions.elu(input, scale, zero_point, alpha)


def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """`hardsigmoid`, quantised by the scale for numbers between 0 and 1."""
    check("hardsigmoid", input)
    made = F.hardsigmoid(input)
    if not inplace:
        return made
    integers(input).copy_(integers(made))  # pyright: ignore[reportArgumentType]
    return seen_as(integers(input), made._quantizer)  # pyright: ignore[reportAttributeAccessIssue]


def clamp(input: Any, min_: float, max_: float) -> Tensor:
    """Numbers kept within two."""
    check("clamp", input)
    return input.clamp(min_, max_)


def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` by its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Images of another size, interpolated bilinearly with their corners kept."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Images of another size, of the nearest pixels."""
    return interpolate(input, size, scale_factor, "nearest")
