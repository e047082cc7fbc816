"""`torch.ao`: quantisation of models, in eager mode."""

from . import nn, quantization

__all__ = ["nn", "quantization"]
