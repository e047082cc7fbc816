"""Channels as pixels and the reverse, and channels in another order."""

from __future__ import annotations

from ...tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """(*, C * r * r, H, W) as (*, C, H * r, W * r) (Shi et al., 2016).

    Shape: input `(*, C * r * r, H, W)`, output `(*, C, H * r, W * r)`; r is `upscale_factor`.

    Raises: RuntimeError for an input of other dimensions.

    Source: Shi et al. 2016, arXiv:1609.05158.

    >>> nn.PixelShuffle(2)(xtensor.zeros(1, 8, 3, 3)).shape
    xtensor.Size([1, 2, 6, 6])
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(*, C, H * r, W * r) as (*, C * r * r, H, W): the inverse of PixelShuffle.

    Shape: input `(*, C, H * r, W * r)`, output `(*, C * r * r, H, W)`; r is `downscale_factor`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.PixelUnshuffle(2)(xtensor.zeros(1, 2, 6, 6)).shape
    xtensor.Size([1, 8, 3, 3])
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """The channels of (N, C, *) with their groups interleaved (Zhang et al., 2017).

    Shape: input `(N, C, *)`, output as the input; C is a multiple of `groups`.

    Raises: RuntimeError for an input of other dimensions.

    Source: Zhang et al. 2018, arXiv:1707.01083.

    >>> nn.ChannelShuffle(2)(xtensor.arange(4.0).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
