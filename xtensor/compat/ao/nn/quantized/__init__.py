"""`torch.ao.nn.quantized`: layers over quantised tensors, whose products are of 8-bit integers."""

from . import dynamic, functional
from .modules import *
