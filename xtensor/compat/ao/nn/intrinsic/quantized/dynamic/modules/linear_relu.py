"""A linear layer and ReLU over real numbers that are quantised as they come."""

from __future__ import annotations

from ........ import dtypes
from .....quantized.dynamic.modules.linear import Linear
from ....modules import fused

__all__ = ["LinearReLU"]


class LinearReLU(Linear):
    """A linear layer and ReLU, of an integer weight."""

    _relu = True
    _FLOAT_MODULE = fused.LinearReLU

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: dtypes.dtype = dtypes.qint8
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"
