"""`torch.ao`: what models hold for quantisation; there is no quantised arithmetic."""

from __future__ import annotations

from . import quantization

__all__ = ["quantization"]
