"""Batch normalisation and ReLU over quantised numbers."""

from __future__ import annotations

from ....quantized.modules.batchnorm import BatchNorm2d, BatchNorm3d
from ...modules import fused

__all__ = ["BNReLU2d", "BNReLU3d"]


class BNReLU2d(BatchNorm2d):
    """Batch normalisation of (N, C, H, W), and ReLU."""

    _relu = True
    _FLOAT_MODULE = fused.BNReLU2d


class BNReLU3d(BatchNorm3d):
    """Batch normalisation of (N, C, D, H, W), and ReLU."""

    _relu = True
    _FLOAT_MODULE = fused.BNReLU3d
