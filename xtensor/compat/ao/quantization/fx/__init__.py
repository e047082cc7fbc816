"""`torch.ao.quantization.fx`: models quantised as graphs; `quantize_fx` has the functions."""

from .custom_config import (
    ConvertCustomConfig,
    FuseCustomConfig,
    PrepareCustomConfig,
    StandaloneModuleConfigEntry,
)
from .tracer import QuantizationTracer
