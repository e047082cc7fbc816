"""Pooling over windows of drawn sizes (Graham, 2014)."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = ["FractionalMaxPool2d", "FractionalMaxPool3d"]


class _FractionalMaxPool(Module):
    """The largest values of windows at random places, for an output of a size, or of a ratio of the input's."""

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    ndim = 2

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        each = _ntuple(self.ndim)
        name = type(self).__name__
        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else each(output_size)
        self.output_ratio = None if output_ratio is None else each(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _pool(self, function: Any, input: Tensor) -> Any:
        return function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Fractional max pooling of images (N, C, H, W) (Graham, 2014).

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, *output_size)` or `(C, *output_size)`.

    Raises: IndexError for an input of other dimensions.

    Source: Graham 2014, arXiv:1412.6071.

    >>> nn.FractionalMaxPool2d(2, output_ratio=0.7)(xtensor.zeros(1, 3, 10, 10)).shape
    xtensor.Size([1, 3, 7, 7])
    """

    def forward(self, input: Tensor) -> Any:
        return self._pool(F.fractional_max_pool2d, input)


class FractionalMaxPool3d(_FractionalMaxPool):
    """Fractional max pooling of volumes (N, C, T, H, W) (Graham, 2014).

    Shape: input `(N, C, T, H, W)` or `(C, T, H, W)`, output `(N, C, *output_size)` or `(C, *output_size)`.

    Raises: IndexError for an input of other dimensions.

    Source: Graham 2014, arXiv:1412.6071.

    >>> nn.FractionalMaxPool3d(2, output_size=3)(xtensor.zeros(1, 2, 6, 6, 6)).shape
    xtensor.Size([1, 2, 3, 3, 3])
    """

    ndim = 3

    def forward(self, input: Tensor) -> Any:
        return self._pool(F.fractional_max_pool3d, input)
