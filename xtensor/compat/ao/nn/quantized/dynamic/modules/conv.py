"""Convolutions of integer weights over real numbers."""

from __future__ import annotations

from typing import Any

from .......quantized.products import dynamically_convolved
from .......tensor import Tensor
from ...modules import conv as static

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Dynamic(static._ConvNd):
    """What they have in common: inputs are quantised as they come."""

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def forward(self, input: Any, reduce_range: bool = True) -> Tensor:
        """The convolution, real."""
        given = (self._checked(input), self._weight, self._bias, self._window())
        return dynamically_convolved(*given, self._relu, reduce_range)


class Conv1d(_Dynamic, static.Conv1d):
    """A convolution of (N, C, L)."""


class Conv2d(_Dynamic, static.Conv2d):
    """A convolution of (N, C, H, W)."""


class Conv3d(_Dynamic, static.Conv3d):
    """A convolution of (N, C, D, H, W)."""


class ConvTranspose1d(_Dynamic, static.ConvTranspose1d):
    """A transposed convolution of (N, C, L)."""


class ConvTranspose2d(_Dynamic, static.ConvTranspose2d):
    """A transposed convolution of (N, C, H, W)."""


class ConvTranspose3d(_Dynamic, static.ConvTranspose3d):
    """A transposed convolution of (N, C, D, H, W)."""
