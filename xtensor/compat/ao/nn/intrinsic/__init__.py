"""`torch.ao.nn.intrinsic`: layers that are one where a model is quantised, in the order in which they run."""

from __future__ import annotations

from .....nn.modules.container import Sequential

__all__ = ["ConvReLU2d", "LinearReLU"]


class ConvReLU2d(Sequential):
    """A convolution and ReLU."""


class LinearReLU(Sequential):
    """A linear layer and ReLU."""
