"""Linear maps."""

from __future__ import annotations

import math
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import register_empty
from .module import Module

__all__ = ["Bilinear", "Identity", "Linear", "NonDynamicallyQuantizableLinear"]


class Identity(Module):
    """Returns its input, whatever arguments it was made with.

    Shape: input `(*)`, output `(*)`.

    Raises: nothing of its own.

    >>> nn.Identity(54, unused=True)(xtensor.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """`input @ weight.T + bias`: weight (out_features, in_features), over the last dimension.

    Shape: input `(*, in_features)`, output `(*, out_features)`.

    Raises: RuntimeError where the last size is not `in_features`.

    >>> layer = nn.Linear(3, 2)
    >>> layer(xtensor.zeros(4, 5, 3)).shape
    xtensor.Size([4, 5, 2])
    >>> layer.weight.shape, layer.bias.shape
    (xtensor.Size([2, 3]), xtensor.Size([2]))
    """

    __constants__ = ["in_features", "out_features"]
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        shape = (out_features, in_features)
        register_empty(self, device, dtype, weight=shape, bias=out_features if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly within 1/sqrt(in_features)."""
        init.draw_by_inputs(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        parameters: Any = self._parameters
        try:
            weight, bias = parameters["weight"], parameters["bias"]
        except KeyError:  # one of them is computed: parametrized, pruned or normed
            weight, bias = self.weight, self.bias
        return F.linear(input, weight, bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear: the name under which attention layers hold theirs."""


class Bilinear(Module):
    """`input1 @ weight[k] @ input2 + bias[k]` for every output k.

    Shape: inputs `(*, in1_features)` and `(*, in2_features)`, output `(*, out_features)`.

    Raises: RuntimeError where sizes do not fit.

    >>> nn.Bilinear(3, 4, 5)(xtensor.zeros(2, 3), xtensor.zeros(2, 4)).shape
    xtensor.Size([2, 5])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        register_empty(self, device, dtype, weight=shape, bias=out_features if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly within 1/sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
