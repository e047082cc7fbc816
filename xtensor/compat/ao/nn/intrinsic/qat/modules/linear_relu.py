"""A linear layer and ReLU with a rounded weight."""

from __future__ import annotations

from typing import Any

from .......nn import functional as F
from .......nn.modules.activation import ReLU
from .......tensor import Tensor
from ....qat.modules.linear import Linear
from ...modules import fused

__all__ = ["LinearReLU"]


class LinearReLU(Linear, fused._FusedModule):
    """A linear layer with a rounded weight, and ReLU."""

    _FLOAT_MODULE = fused.LinearReLU

    def __init__(self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None) -> None:
        Linear.__init__(self, in_features, out_features, bias, qconfig)

    def forward(self, input: Tensor) -> Tensor:
        """`relu(input @ weight.T + bias)` of the rounded weight."""
        return F.relu(Linear.forward(self, input))

    def to_float(self) -> Any:
        """A float linear layer and ReLU with copies of the parameters."""
        return fused.LinearReLU(Linear.to_float(self), ReLU())
