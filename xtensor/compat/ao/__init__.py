"""`torch.ao`: what models hold for quantisation; there is no quantised arithmetic."""

from . import quantization

__all__ = ["quantization"]
