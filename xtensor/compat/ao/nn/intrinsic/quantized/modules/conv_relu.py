"""Convolutions and ReLU over quantised numbers."""

from __future__ import annotations

from ....quantized.modules.conv import Conv1d, Conv2d, Conv3d
from ...modules import fused

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]


class ConvReLU1d(Conv1d):
    """A convolution of (N, C, L), and ReLU."""

    _relu = True
    _FLOAT_MODULE = fused.ConvReLU1d


class ConvReLU2d(Conv2d):
    """A convolution of (N, C, H, W), and ReLU."""

    _relu = True
    _FLOAT_MODULE = fused.ConvReLU2d


class ConvReLU3d(Conv3d):
    """A convolution of (N, C, D, H, W), and ReLU."""

    _relu = True
    _FLOAT_MODULE = fused.ConvReLU3d
