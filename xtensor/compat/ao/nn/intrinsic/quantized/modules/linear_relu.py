"""Linear layers and activations over quantised numbers."""

from __future__ import annotations

from typing import Any

from ....... import dtypes
from .......quantized.functions import linear_leaky_relu, linear_tanh
from .......tensor import Tensor
from ....quantized.modules.linear import Linear
from ...modules import fused

__all__ = ["LinearLeakyReLU", "LinearReLU", "LinearTanh"]


class LinearReLU(Linear):
    """A linear layer and ReLU."""

    _relu = True
    _FLOAT_MODULE = fused.LinearReLU

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: dtypes.dtype = dtypes.qint8
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"


class LinearLeakyReLU(Linear):
    """A linear layer and leaky ReLU."""

    _FLOAT_MODULE = fused.LinearLeakyReLU

    def __init__(
        self,
        in_features: int,
        out_features: int,
        negative_slope: float,
        bias: bool = True,
        dtype: dtypes.dtype = dtypes.qint8,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Tensor:
        """`leaky_relu(x @ weight.T + bias)`, quantised."""
        packed = self._packed_params._packed_params
        return linear_leaky_relu(x, packed, self.scale, self.zero_point, self.negative_slope)

    def _get_name(self) -> str:
        return "QuantizedLinearLeakyReLU"

    @classmethod
    def like(cls, mod: Any) -> Any:
        """A layer of as many features."""
        return cls(mod.in_features, mod.out_features, 0.01)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a linear layer and leaky ReLU whose results were seen."""
        made = super().from_float(mod, use_precomputed_fake_quant)
        made.negative_slope = mod[1].negative_slope
        return made


class LinearTanh(Linear):
    """A linear layer and tanh."""

    _FLOAT_MODULE = fused.LinearTanh

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: dtypes.dtype = dtypes.qint8
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x: Any) -> Tensor:
        """`tanh(x @ weight.T + bias)`, quantised."""
        return linear_tanh(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearTanh"
