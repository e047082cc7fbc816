"""`torch.ao.nn.quantized.dynamic`: layers over real numbers that quantise their inputs as they come."""

from __future__ import annotations

from typing import Any

from ..... import dtypes
from .....nn.modules.module import Module
from .....quantized.construct import quantize_per_tensor, quantize_per_tensor_dynamic
from .....quantized.products import multiplied
from .....tensor import Tensor

__all__ = ["Linear"]


class Linear(Module):
    """A linear layer with an integer weight, whose input is quantised by its own smallest and largest number."""

    def __init__(self, layer: Any, observer: Any) -> None:
        super().__init__()
        observer(layer.weight)
        scale, point = observer.calculate_qparams()
        made = quantize_per_tensor(layer.weight.detach(), scale.item(), point.item(), dtypes.qint8)
        self.register_buffer("weight", made)
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach())

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """Of a layer with a qconfig."""
        return cls(mod, mod.qconfig.weight())

    def forward(self, x: Tensor) -> Tensor:
        """`x @ weight.T + bias`, real."""
        weight: Any = self.weight
        made: Any = quantize_per_tensor_dynamic(x.detach(), dtypes.quint8, True)
        return multiplied(made, weight, self.bias)
