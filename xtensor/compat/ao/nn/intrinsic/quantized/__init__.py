"""`torch.ao.nn.intrinsic.quantized`: quantised layers that compute several in one."""

from . import dynamic
from .modules import *
