"""`torch.ao.nn.quantized.dynamic`: layers over real numbers that quantise their inputs as they come."""

from .modules import *
