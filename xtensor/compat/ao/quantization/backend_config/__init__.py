"""`torch.ao.quantization.backend_config`: what a backend can quantise."""

from .backend_config import *
from .native import *
