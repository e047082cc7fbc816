"""Layers that compute in real numbers by quantised weights: what other backends lower."""

from __future__ import annotations

from typing import Any

from ...... import dtypes
from ......nn import functional as F
from ......nn.modules.conv import Conv1d as FloatConv1d
from ......nn.modules.conv import Conv2d as FloatConv2d
from ......nn.modules.conv import Conv3d as FloatConv3d
from ......nn.modules.linear import Linear as FloatLinear
from ......tensor import Tensor
from ..modules.utils import _quantize_weight

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]


class _Rounded:
    """A layer whose weight is rounded as a quantised one's at every call. weight_observer: has seen the weight, and says how."""

    weight: Any
    bias: Any
    weight_observer: Any

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    def get_quantized_weight(self) -> Tensor:
        """The weight, quantised."""
        return _quantize_weight(self.weight.detach().float(), self.weight_observer)

    def get_weight(self) -> Tensor:
        """The quantised weight in real numbers."""
        if self.weight_observer.dtype is dtypes.float16:
            return self.weight.half().to(self.weight.dtype)
        if self.weight_observer.dtype not in dtypes.QUANTISED:
            return self.weight
        return self.get_quantized_weight().dequantize()

    @classmethod
    def from_float(cls, float_module: Any, weight_observer: Any) -> Any:
        """Of a layer, and of what has seen its weight."""
        made: Any = cls.__new__(cls)
        made.__dict__.update(
            {n: v for n, v in float_module.__dict__.items() if n not in ("_modules", "qconfig")}
        )
        made._modules = {}
        made.__dict__["weight_observer"] = weight_observer
        return made


class Linear(_Rounded, FloatLinear):
    """A linear layer by a rounded weight."""

    def forward(self, input: Tensor) -> Tensor:
        """`input @ weight.T + bias`."""
        return F.linear(input, self.get_weight(), self.bias)


class Conv1d(_Rounded, FloatConv1d):
    """A convolution by a rounded weight."""

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of the input."""
        return self._conv_forward(input, self.get_weight(), self.bias)


class Conv2d(_Rounded, FloatConv2d):
    """A convolution by a rounded weight."""

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of the input."""
        return self._conv_forward(input, self.get_weight(), self.bias)


class Conv3d(_Rounded, FloatConv3d):
    """A convolution by a rounded weight."""

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of the input."""
        return self._conv_forward(input, self.get_weight(), self.bias)


REFERENCES: dict[Any, Any] = {
    FloatLinear: Linear,
    FloatConv1d: Conv1d,
    FloatConv2d: Conv2d,
    FloatConv3d: Conv3d,
}
