"""`torch.onnx.symbolic_helper`: the decorator of functions that would export an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["parse_args"]

F = TypeVar("F", bound=Callable[..., object])


def parse_args(*arg_descriptors: str) -> Callable[[F], F]:
    """The function itself: its arguments would be parsed while a model is exported, and none is."""
    return lambda fn: fn
