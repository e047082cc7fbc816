"""Sums, products and joins as modules, so that their results can be seen, and quantised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....nn import functional as F
from ....nn.modules.linear import Identity
from ....nn.modules.module import Module
from ....ops.linalg.matmul import matmul
from ....ops.shape.joining import cat
from ....tensor import Tensor

__all__ = ["INTENDED", "FXFloatFunctional", "FloatFunctional"]

INTENDED = " is not intended to use the 'forward'. Please use the underlying operation"


class FloatFunctional(Module):
    """Operations of real numbers, whose results an observer sees.

    >>> add = xtensor.ao.nn.quantized.FloatFunctional().add
    >>> add(xtensor.tensor(3.0), xtensor.tensor(4.0))
    tensor(7.)
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Any = Identity()

    def seen(self, result: Tensor) -> Tensor:
        """A result, after the observer's look."""
        return self.activation_post_process(result)

    def forward(self, x: Any) -> Any:
        """RuntimeError: it is no layer."""
        raise RuntimeError(f"FloatFunctional{INTENDED}")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`x + y`."""
        return self.seen(x + y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x + y` of a number, which is not seen."""
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x * y`."""
        return self.seen(x * y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x * y` of a number, which is not seen."""
        return x * y

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """The tensors one after the other."""
        return self.seen(cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """ReLU of `x + y`."""
        return self.seen(F.relu(x + y))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x @ y`."""
        return self.seen(matmul(x, y))


class FXFloatFunctional(FloatFunctional):
    """The same without an observer of its own."""

    def __init__(self) -> None:
        Module.__init__(self)

    def seen(self, result: Tensor) -> Tensor:
        """A result."""
        return result

    def forward(self, x: Any) -> Any:
        """RuntimeError: it is no layer."""
        raise RuntimeError(f"FloatFunctional{INTENDED}")
