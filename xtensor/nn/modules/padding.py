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
    """Sequences continued from their other end."""

    parse = staticmethod(_pair)


class CircularPad2d(_CircularPadNd):
    """Images continued from their other side."""

    parse = staticmethod(_quadruple)


class CircularPad3d(_CircularPadNd):
    """Volumes continued from their other side."""

    parse = staticmethod(_sextuple)


class _ReflectionPadNd(_PadNd):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Sequences mirrored at their ends."""

    parse = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    """Images mirrored at their borders."""

    parse = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    """Volumes mirrored at their borders."""

    parse = staticmethod(_sextuple)


class _ReplicationPadNd(_PadNd):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Sequences continued with their end values."""

    parse = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    """Images continued with their border values."""

    parse = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    """Volumes continued with their border values."""

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
    """Sequences continued with one value."""

    parse = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Images continued with one value."""

    parse = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Volumes continued with one value."""

    parse = staticmethod(_sextuple)


class ZeroPad1d(ConstantPad1d):
    """Sequences continued with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Images continued with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Volumes continued with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
