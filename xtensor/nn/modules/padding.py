"""Padding: with a constant, by reflection, by the border, in a circle."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .module import Module
from .utils import _ntuple, _pair, _quadruple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

_sextuple = _ntuple(6, "_sextuple")


class _PadNd(Module):
    """Padding of a mode, (before, after) for each dimension from the last: one number, or two for each."""

    __constants__ = ["padding"]
    mode: str
    parse: Any

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = type(self).parse(padding)

    def _check_input_dim(self, input: Tensor) -> None:
        """Refuse inputs of a wrong number of dimensions, for the modes that do so here."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        most = len(self.padding) // 2 + 2
        if input.dim() not in (most - 1, most):
            raise ValueError(f"expected {most - 1}D or {most}D input (got {input.dim()}D input)")


class CircularPad1d(_CircularPadNd):
    """Sequences continued from their other end.

    Shape: input `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)` with
    `L_out = L + left + right`.

    Raises: ValueError for an input of other dimensions.

    >>> nn.CircularPad1d(2)(xtensor.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 3., 1., 2., 3., 1., 2.]])
    """

    parse = staticmethod(_pair)


class CircularPad2d(_CircularPadNd):
    """Images continued from their other side.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, H_out, W_out)` or `(C, H_out, W_out)` with
    `H_out = H + top + bottom` and `W_out = W + left + right`.

    Raises: ValueError for an input of other dimensions.

    >>> nn.CircularPad2d((1, 1, 0, 0))(xtensor.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[2., 1., 2., 1.],
             [4., 3., 4., 3.]]])
    """

    parse = staticmethod(_quadruple)


class CircularPad3d(_CircularPadNd):
    """Volumes continued from their other side.

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, D_out, H_out, W_out)` or
    `(C, D_out, H_out, W_out)` with `D_out = D + front + back`, `H_out = H + top + bottom` and
    `W_out = W + left + right`.

    Raises: ValueError for an input of other dimensions.

    >>> nn.CircularPad3d(1)(xtensor.zeros(1, 2, 3, 4, 5)).shape
    xtensor.Size([1, 2, 5, 6, 7])
    """

    parse = staticmethod(_sextuple)


class _ReflectionPadNd(_PadNd):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Sequences mirrored at their ends.

    Shape: input `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)` with
    `L_out = L + left + right`.

    Raises: NotImplementedError for an input of other dimensions.

    >>> nn.ReflectionPad1d(2)(xtensor.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    parse = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    """Images mirrored at their borders.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, H_out, W_out)` or `(C, H_out, W_out)` with
    `H_out = H + top + bottom` and `W_out = W + left + right`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.ReflectionPad2d((1, 1, 0, 0))(xtensor.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[2., 1., 2., 1.],
             [4., 3., 4., 3.]]])
    """

    parse = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    """Volumes mirrored at their borders.

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, D_out, H_out, W_out)` or
    `(C, D_out, H_out, W_out)` with `D_out = D + front + back`, `H_out = H + top + bottom` and
    `W_out = W + left + right`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.ReflectionPad3d(1)(xtensor.zeros(1, 2, 3, 4, 5)).shape
    xtensor.Size([1, 2, 5, 6, 7])
    """

    parse = staticmethod(_sextuple)


class _ReplicationPadNd(_PadNd):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Sequences continued with their end values.

    Shape: input `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)` with
    `L_out = L + left + right`.

    Raises: NotImplementedError for an input of other dimensions.

    >>> nn.ReplicationPad1d(2)(xtensor.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 1., 2., 3., 3., 3.]])
    """

    parse = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    """Images continued with their border values.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, H_out, W_out)` or `(C, H_out, W_out)` with
    `H_out = H + top + bottom` and `W_out = W + left + right`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.ReplicationPad2d((1, 1, 0, 0))(xtensor.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[1., 1., 2., 2.],
             [3., 3., 4., 4.]]])
    """

    parse = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    """Volumes continued with their border values.

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, D_out, H_out, W_out)` or
    `(C, D_out, H_out, W_out)` with `D_out = D + front + back`, `H_out = H + top + bottom` and
    `W_out = W + left + right`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.ReplicationPad3d(1)(xtensor.zeros(1, 2, 3, 4, 5)).shape
    xtensor.Size([1, 2, 5, 6, 7])
    """

    parse = staticmethod(_sextuple)


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Sequences continued with one value.

    Shape: input `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)` with
    `L_out = L + left + right`.

    Raises: RuntimeError where nothing is left of a dimension.

    >>> nn.ConstantPad1d(2, 9.0)(xtensor.tensor([[1.0, 2.0, 3.0]]))
    tensor([[9., 9., 1., 2., 3., 9., 9.]])
    """

    parse = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Images continued with one value.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, H_out, W_out)` or `(C, H_out, W_out)` with
    `H_out = H + top + bottom` and `W_out = W + left + right`.

    Raises: RuntimeError where nothing is left of a dimension.

    >>> nn.ConstantPad2d((1, 1, 0, 0), 9.0)(xtensor.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[9., 1., 2., 9.],
             [9., 3., 4., 9.]]])
    """

    parse = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Volumes continued with one value.

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, D_out, H_out, W_out)` or
    `(C, D_out, H_out, W_out)` with `D_out = D + front + back`, `H_out = H + top + bottom` and
    `W_out = W + left + right`.

    Raises: RuntimeError where nothing is left of a dimension.

    >>> nn.ConstantPad3d(1, 9.0)(xtensor.zeros(1, 2, 3, 4, 5)).shape
    xtensor.Size([1, 2, 5, 6, 7])
    """

    parse = staticmethod(_sextuple)


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Sequences continued with zeros.

    Shape: input `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)` with
    `L_out = L + left + right`.

    Raises: RuntimeError where nothing is left of a dimension.

    >>> nn.ZeroPad1d(2)(xtensor.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0., 0., 1., 2., 3., 0., 0.]])
    """


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Images continued with zeros.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, H_out, W_out)` or `(C, H_out, W_out)` with
    `H_out = H + top + bottom` and `W_out = W + left + right`.

    Raises: RuntimeError where nothing is left of a dimension.

    >>> nn.ZeroPad2d((1, 1, 0, 0))(xtensor.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[0., 1., 2., 0.],
             [0., 3., 4., 0.]]])
    """


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Volumes continued with zeros.

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, D_out, H_out, W_out)` or
    `(C, D_out, H_out, W_out)` with `D_out = D + front + back`, `H_out = H + top + bottom` and
    `W_out = W + left + right`.

    Raises: RuntimeError where nothing is left of a dimension.

    >>> nn.ZeroPad3d(1)(xtensor.zeros(1, 2, 3, 4, 5)).shape
    xtensor.Size([1, 2, 5, 6, 7])
    """
