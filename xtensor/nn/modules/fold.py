"""Sliding blocks of an image as columns, and their sum back to an image."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Columns (N, C * kernel size, blocks) summed to an image (N, C, *output_size), where they overlap too.

    Shape: input `(N, C * kernel size, blocks)`, output `(N, C, *output_size)`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.Fold(output_size=(4, 5), kernel_size=2)(xtensor.zeros(1, 3 * 4, 12)).shape
    xtensor.Size([1, 3, 4, 5])
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """The sliding blocks of an image (N, C, H, W) as columns (N, C * kernel size, blocks).

    Shape: input `(N, C, *)`, output `(N, C * kernel size, blocks)`.

    Raises: IndexError for an input of other dimensions.

    >>> nn.Unfold(kernel_size=2)(xtensor.zeros(1, 3, 4, 5)).shape
    xtensor.Size([1, 12, 12])
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )
