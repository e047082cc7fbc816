"""Utilities over parameters and modules."""

from . import init, memory_format, parametrizations, parametrize, prune, rnn, stateless
from .clip_grad import *
from .convert_parameters import *
from .fusion import *
from .init import skip_init
from .memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

__all__ = ["fusion", "init", "memory_format", "parametrizations", "parametrize", "prune", "rnn", "stateless"]
__all__ += ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format", "skip_init"]
__all__ += ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]
__all__ += clip_grad.__all__
__all__ += convert_parameters.__all__
__all__ += fusion.__all__
