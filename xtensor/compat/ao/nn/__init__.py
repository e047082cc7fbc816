"""`torch.ao.nn`: the layers that quantisation puts in place of a model's."""

from . import intrinsic, qat, quantizable, quantized
from .intrinsic import qat as intrinsic_qat
from .intrinsic import quantized as intrinsic_quantized

__all__ = ["intrinsic", "qat", "quantizable", "quantized"]
