"""`torch.ao.nn.qat`: layers whose weights are rounded in training as they will be once the model is quantised."""

from __future__ import annotations

from typing import Any

from .....nn import functional as F
from .....nn.modules.conv import Conv2d as FloatConv2d
from .....nn.modules.linear import Linear as FloatLinear
from .....tensor import Tensor
from ..intrinsic import ConvReLU2d as FloatConvReLU2d
from ..intrinsic import LinearReLU as FloatLinearReLU

__all__ = ["Conv2d", "ConvReLU2d", "Linear", "LinearReLU"]


def rounding(kind: Any, layer: Any, qconfig: Any) -> Any:
    """A layer of a class with the parameters of another one, and what rounds its weight."""
    made = kind.__new__(kind)
    made.__dict__.update(layer.__dict__)
    made.__dict__["_modules"] = dict(layer._modules)
    made.qconfig = qconfig
    made.weight_fake_quant = qconfig.weight()
    return made


class Linear(FloatLinear):
    """A linear layer with a rounded weight."""

    relu = False

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """Of a floating layer with a qconfig, whose parameters it shares."""
        return rounding(cls, mod[0] if isinstance(mod, FloatLinearReLU) else mod, mod.qconfig)

    def forward(self, input: Tensor) -> Tensor:
        made = F.linear(input, self.weight_fake_quant(self.weight), self.bias)
        return F.relu(made) if self.relu else made


class LinearReLU(Linear):
    """A linear layer with a rounded weight, and ReLU."""

    relu = True


class Conv2d(FloatConv2d):
    """A convolution with a rounded weight."""

    relu = False

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """Of a floating layer with a qconfig, whose parameters it shares."""
        return rounding(cls, mod[0] if isinstance(mod, FloatConvReLU2d) else mod, mod.qconfig)

    def forward(self, input: Tensor) -> Tensor:
        made = self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)
        return F.relu(made) if self.relu else made


class ConvReLU2d(Conv2d):
    """A convolution with a rounded weight, and ReLU."""

    relu = True
