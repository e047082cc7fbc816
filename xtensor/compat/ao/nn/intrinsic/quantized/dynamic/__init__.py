"""`torch.ao.nn.intrinsic.quantized.dynamic`: the same over real numbers, quantised as they come."""

from .modules import *
