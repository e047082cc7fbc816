"""Normalisations that do not look across the batch."""

from __future__ import annotations

import numbers
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import register_empty
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _ResponseNorm(Module):
    """What both names of this normalisation share."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ResponseNorm):
    """Values divided by a power of the energy of neighbouring channels (Krizhevsky et al., 2012).

    Shape: input `(N, C, *)`, output as the input.

    Raises: ValueError for an input of other dimensions.

    Source: Krizhevsky, Sutskever and Hinton 2012, Advances in Neural Information Processing Systems 25.

    >>> nn.LocalResponseNorm(2)(xtensor.ones(1, 4, 3, 3)).shape
    xtensor.Size([1, 4, 3, 3])
    """

    __constants__ = ["size", "alpha", "beta", "k"]


class CrossMapLRN2d(_ResponseNorm):
    """LocalResponseNorm under the name it had in Torch 7.

    Shape: input `(N, C, H, W)`, output as the input.

    Raises: ValueError for an input of other dimensions.

    Source: Krizhevsky, Sutskever and Hinton 2012, Advances in Neural Information Processing Systems 25.

    >>> nn.CrossMapLRN2d(2)(xtensor.ones(1, 4, 3, 3)).shape
    xtensor.Size([1, 4, 3, 3])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)


class _Scaled(Module):
    """A normalisation with a scale and a shift, where they are wanted."""

    weight: Tensor | None
    bias: Tensor | None

    def _scale(self, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        scale, shift = shape if weight else None, shape if weight and bias else None
        register_empty(self, device, dtype, weight=scale, bias=shift)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def as_shape(sizes: Any) -> tuple[Any, ...]:
    """The sizes of the dimensions that are normalised over; a number is that of one."""
    return (sizes,) if isinstance(sizes, numbers.Integral) else tuple(sizes)


class LayerNorm(_Scaled):
    """Normalisation over the last dimensions, those of `normalized_shape` (Ba et al., 2016).

    Shape: input `(*, *normalized_shape)`, output as the input.

    Raises: RuntimeError where the last sizes are others.

    Source: Ba, Kiros and Hinton 2016, arXiv:1607.06450.

    >>> nn.LayerNorm(2, elementwise_affine=False)(xtensor.tensor([[1.0, 3.0], [10.0, 30.0]]))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._scale(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(_Scaled):
    """Normalisation over groups of channels of every sample (Wu and He, 2018).

    Shape: input `(N, C, *)`, output as the input; C is `num_channels`, a multiple of `num_groups`.

    Raises: ValueError where `num_groups` does not divide the channels.

    Source: Wu and He 2018, arXiv:1803.08494.

    >>> nn.GroupNorm(2, 6)(xtensor.ones(3, 6, 4, 4)).shape
    xtensor.Size([3, 6, 4, 4])
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._scale(num_channels, affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Values divided by their root mean square over the last dimensions (Zhang and Sennrich, 2019).

    Shape: input `(*, *normalized_shape)`, output as the input.

    Raises: RuntimeError where the last sizes are others.

    Source: Zhang and Sennrich 2019, arXiv:1910.07467.

    >>> nn.RMSNorm(2, elementwise_affine=False)(xtensor.tensor([[1.0, 7.0]]))
    tensor([[0.2000, 1.4000]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]
    weight: Tensor | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape if elementwise_affine else None
        register_empty(self, device, dtype, weight=shape)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
