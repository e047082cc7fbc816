"""Quantised tensors, `xtensor.quantize_per_tensor`: integers of 8 or 32 bits that stand for real numbers."""

from __future__ import annotations

from . import display, operators
from .layout import QuantizedTensor

__all__ = ["QuantizedTensor"]
