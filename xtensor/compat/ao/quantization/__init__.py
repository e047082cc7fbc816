"""`torch.ao.quantization`: models quantised in eager mode, after training, in training, or as they run."""

from .fake_quantize import *
from .fuse_modules import *
from .fuser_method_mappings import *
from .observer import *
from .qconfig import *
from .qconfig_mapping import *
from .quant_type import *
from .quantization_mappings import *
from .quantize import *
from .stubs import *

from . import backend_config, fx, quantize_fx  # isort: skip  # after the names that they use
