"""`torch.ao.quantization`: models quantised in eager mode, after training, in training, or as they run."""

from .fake_quantize import *
from .observer import *
from .qconfig import *
from .quantize import *
from .stubs import *
