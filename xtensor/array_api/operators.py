"""Array's operators: the standard's functions, as Python spells them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from . import elementwise, matrices
from .array import Array, plain

__all__: list[str] = []

BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}
OPERANDS = (Tensor, bool, int, float, complex)


def forward(function: Callable[..., Array]) -> Any:
    def method(self: Array, other: Any, /) -> Any:
        return function(self, other) if isinstance(other, OPERANDS) else NotImplemented

    return method


def reflected(function: Callable[..., Array]) -> Any:
    def method(self: Array, other: Any, /) -> Any:
        return function(other, self) if isinstance(other, OPERANDS) else NotImplemented

    return method


def inplace(function: Callable[..., Array]) -> Any:
    def method(self: Array, other: Any, /) -> Any:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        result = function(self, other)
        if result.dtype is not self.dtype:
            raise TypeError(f"an array of {self.dtype} cannot become one of {result.dtype} in place")
        if result.shape != self.shape:
            raise ValueError(
                f"an array of shape {tuple(self.shape)} cannot become one of {tuple(result.shape)} in place"
            )
        Tensor.copy_(self, plain(result))
        return self

    return method


def single(function: Callable[..., Array]) -> Any:
    def method(self: Array, /) -> Array:
        return function(self)

    return method


def matmul(self: Array, other: Any, /) -> Any:
    return matrices.matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def rmatmul(self: Array, other: Any, /) -> Any:
    return matrices.matmul(other, self) if isinstance(other, Tensor) else NotImplemented


def attach(name: str, method: Any) -> None:
    method.__name__, method.__qualname__ = name, f"Array.{name}"
    setattr(Array, name, method)


for dunder, name in {**BINARY, **COMPARISONS}.items():
    attach(f"__{dunder}__", forward(getattr(elementwise, name)))
for dunder, name in BINARY.items():
    attach(f"__r{dunder}__", reflected(getattr(elementwise, name)))
    attach(f"__i{dunder}__", inplace(getattr(elementwise, name)))
for dunder, name in UNARY.items():
    attach(f"__{dunder}__", single(getattr(elementwise, name)))
attach("__matmul__", matmul)
attach("__rmatmul__", rmatmul)
attach("__imatmul__", inplace(matrices.matmul))
