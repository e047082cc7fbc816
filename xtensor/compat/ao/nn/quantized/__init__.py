"""`torch.ao.nn.quantized`: layers over quantised tensors, whose products are of 8-bit integers."""

from __future__ import annotations

from typing import Any

from ..... import dtypes
from .....nn.modules.module import Module
from .....quantized.construct import quantize_per_channel, quantize_per_tensor
from .....quantized.products import convolved, multiplied
from .....sparse.layout import host
from .....tensor import Tensor
from ..intrinsic import ConvReLU2d, LinearReLU
from . import dynamic

__all__ = ["Conv2d", "DeQuantize", "Linear", "Quantize", "dynamic", "weight_of"]


def weight_of(layer: Any, qconfig: Any) -> Tensor:
    """A layer's weight, quantised: by what was seen of it in training, or by what it is."""
    observer = getattr(layer, "weight_fake_quant", None)
    if observer is None:
        observer = qconfig.weight()
        observer(layer.weight)
    scale, point = observer.calculate_qparams()
    weight = layer.weight.detach()
    if scale.numel() > 1:
        return quantize_per_channel(weight, scale, point.long(), 0, dtypes.qint8)
    return quantize_per_tensor(weight, scale.item(), point.item(), dtypes.qint8)


class Quantize(Module):
    """Quantises its input."""

    def __init__(self, scale: Tensor, zero_point: Tensor, dtype: dtypes.dtype) -> None:
        super().__init__()
        self.register_buffer("scale", scale)
        self.register_buffer("zero_point", zero_point)
        self.dtype = dtype

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """Of a stub that has seen numbers."""
        seen = mod.activation_post_process
        scale, point = seen.calculate_qparams()
        return cls(scale, point, seen.dtype)

    def forward(self, X: Tensor) -> Tensor:
        """The input, quantised."""
        return quantize_per_tensor(X, self.scale.item(), self.zero_point.item(), self.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(Module):
    """Gives the real numbers of its input."""

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """Of a stub."""
        return cls()

    def forward(self, Xq: Tensor) -> Tensor:
        """The real numbers."""
        return Xq.dequantize()


class Quantized(Module):
    """A layer with an integer weight, a real bias, and the scale and zero point of its results."""

    def __init__(self, layer: Any, mod: Any, relu: bool) -> None:
        super().__init__()
        self.register_buffer("weight", weight_of(layer, mod.qconfig))
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach())
        scale, point = mod.activation_post_process.calculate_qparams()
        self.scale, self.zero_point = float(host(scale)[0]), int(host(point)[0])
        self.relu = relu


class Linear(Quantized):
    """A linear layer over quantised numbers, with ReLU where that was fused."""

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """Of a layer whose results were seen."""
        fused = isinstance(mod, LinearReLU)
        return cls(mod[0] if fused else mod, mod, fused or getattr(mod, "relu", False))

    def forward(self, x: Any) -> Tensor:
        """`x @ weight.T + bias`, quantised."""
        weight: Any = self.weight
        return multiplied(x, weight, self.bias, self.scale, self.zero_point, self.relu)


class Conv2d(Quantized):
    """A convolution over quantised numbers, with ReLU where that was fused."""

    def __init__(self, layer: Any, mod: Any, relu: bool) -> None:
        if isinstance(layer.padding, str) or layer.padding_mode != "zeros":
            raise NotImplementedError("a quantized convolution pads with zeros, by numbers")
        super().__init__(layer, mod, relu)
        self.stride, self.padding = tuple(layer.stride), tuple(layer.padding)
        self.dilation, self.groups = tuple(layer.dilation), layer.groups

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """Of a layer whose results were seen."""
        fused = isinstance(mod, ConvReLU2d)
        return cls(mod[0] if fused else mod, mod, fused or getattr(mod, "relu", False))

    def forward(self, input: Any) -> Tensor:
        """The convolution, quantised."""
        weight: Any = self.weight
        how = (self.stride, self.padding, self.dilation, self.groups)
        return convolved(input, weight, self.bias, *how, self.scale, self.zero_point, self.relu)
