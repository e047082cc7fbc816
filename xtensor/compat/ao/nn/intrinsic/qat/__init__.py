"""`torch.ao.nn.intrinsic.qat`: layers that are one, with weights rounded in training."""

from .modules import *
