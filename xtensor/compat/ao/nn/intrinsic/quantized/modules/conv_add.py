"""Convolutions over quantised numbers, to which others are added."""

from __future__ import annotations

from typing import Any

from .......quantized.layout import dequantized, per_tensor, quantised
from .......quantized.products import convolved
from .......tensor import Tensor
from ....quantized.modules.conv import Conv2d
from ...modules import fused

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class ConvAdd2d(Conv2d):
    """A convolution of (N, C, H, W), and what is added to it."""

    _FLOAT_MODULE = fused.ConvAdd2d

    def forward(self, input: Any, extra_input: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The convolution of the first, and the second, added, quantised once."""
        made = convolved(self._checked(input), self._weight, self._bias, self._window())
        made = made + dequantized(extra_input)
        return quantised(
            made.relu() if self._relu else made, per_tensor(self.scale, self.zero_point), input.dtype
        )


class ConvAddReLU2d(ConvAdd2d):
    """A convolution of (N, C, H, W), what is added to it, and ReLU."""

    _relu = True
    _FLOAT_MODULE = fused.ConvAddReLU2d
