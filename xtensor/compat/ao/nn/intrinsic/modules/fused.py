"""Layers that are one where a model is quantised: sequences until then."""

# Parameters have the names that PyTorch gives them, class by class.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

from typing import Any

from ......nn.modules.activation import LeakyReLU, ReLU, Tanh
from ......nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ......nn.modules.container import Sequential
from ......nn.modules.conv import Conv1d, Conv2d, Conv3d
from ......nn.modules.linear import Linear
from ......tensor import Tensor

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvAdd2d",
    "ConvAddReLU2d",
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearLeakyReLU",
    "LinearReLU",
    "LinearTanh",
]


class _FusedModule(Sequential):
    """Layers that are quantised as one; AssertionError where they are of other kinds."""

    _kinds: tuple[type, ...] = ()

    def __init__(self, *layers: Any) -> None:
        if len(layers) != len(self._kinds) or not all(map(isinstance, layers, self._kinds)):
            given = " and ".join([type(layer).__name__ for layer in layers])
            raise AssertionError(f"Incorrect types for input modules: {given}")
        super().__init__(*layers)


class ConvReLU1d(_FusedModule):
    """A convolution and ReLU."""

    _kinds = (Conv1d, ReLU)


class ConvReLU2d(_FusedModule):
    """A convolution and ReLU."""

    _kinds = (Conv2d, ReLU)


class ConvReLU3d(_FusedModule):
    """A convolution and ReLU."""

    _kinds = (Conv3d, ReLU)


class LinearReLU(_FusedModule):
    """A linear layer and ReLU."""

    _kinds = (Linear, ReLU)


class ConvBn1d(_FusedModule):
    """A convolution and batch normalisation."""

    _kinds = (Conv1d, BatchNorm1d)


class ConvBn2d(_FusedModule):
    """A convolution and batch normalisation."""

    _kinds = (Conv2d, BatchNorm2d)


class ConvBn3d(_FusedModule):
    """A convolution and batch normalisation."""

    _kinds = (Conv3d, BatchNorm3d)


class ConvBnReLU1d(_FusedModule):
    """A convolution, batch normalisation and ReLU."""

    _kinds = (Conv1d, BatchNorm1d, ReLU)


class ConvBnReLU2d(_FusedModule):
    """A convolution, batch normalisation and ReLU."""

    _kinds = (Conv2d, BatchNorm2d, ReLU)


class ConvBnReLU3d(_FusedModule):
    """A convolution, batch normalisation and ReLU."""

    _kinds = (Conv3d, BatchNorm3d, ReLU)


class BNReLU2d(_FusedModule):
    """Batch normalisation and ReLU."""

    _kinds = (BatchNorm2d, ReLU)


class BNReLU3d(_FusedModule):
    """Batch normalisation and ReLU."""

    _kinds = (BatchNorm3d, ReLU)


class LinearBn1d(_FusedModule):
    """A linear layer and batch normalisation."""

    _kinds = (Linear, BatchNorm1d)


class LinearLeakyReLU(_FusedModule):
    """A linear layer and leaky ReLU."""

    _kinds = (Linear, LeakyReLU)


class LinearTanh(_FusedModule):
    """A linear layer and tanh."""

    _kinds = (Linear, Tanh)


class ConvAdd2d(_FusedModule):
    """A convolution, and what is added to it."""

    def __init__(self, conv: Any, add: Any) -> None:
        Sequential.__init__(self, conv)
        self.add = add

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The convolution of the first, and the second, added."""
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """A convolution, what is added to it, and ReLU."""

    def __init__(self, conv: Any, add: Any, relu: Any) -> None:
        Sequential.__init__(self, conv)
        self.add, self.relu = add, relu

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """ReLU of the convolution of the first, and the second, added."""
        return self.relu(self.add(self[0](x1), x2))
