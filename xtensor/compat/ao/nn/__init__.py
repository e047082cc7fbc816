"""`torch.ao.nn`: the layers that quantisation puts in place of a model's."""

from . import intrinsic, qat, quantized

__all__ = ["intrinsic", "qat", "quantized"]
