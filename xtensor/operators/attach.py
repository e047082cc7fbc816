"""Attach operators to Tensor as they are declared: the method, its in-place form and aliases, and the arithmetic dunders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..tensor import Tensor
from .functions.codegen import inplace, operator_method

__all__ = [
    "DUNDERS",
    "INPLACE_DUNDERS",
    "REFLECTED_DUNDERS",
    "attach",
    "attach_as",
    "attach_methods",
    "named",
]

Made = TypeVar("Made", bound=Callable[..., Any])

# Python's operator -> the operator that it calls.
DUNDERS = {
    "__add__": "add",
    "__radd__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__rmul__": "mul",
    "__truediv__": "div",
    "__div__": "div",
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
    "__pow__": "pow",
    "__matmul__": "matmul",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__rand__": "bitwise_and",
    "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__eq__": "eq",
    "__ne__": "ne",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
}
REFLECTED_DUNDERS = {
    "__rsub__": "sub",
    "__rtruediv__": "div",
    "__rdiv__": "div",
    "__rfloordiv__": "floor_divide",
    "__rmod__": "remainder",
    "__rpow__": "pow",
    "__rmatmul__": "matmul",
    "__rlshift__": "bitwise_left_shift",
    "__rrshift__": "bitwise_right_shift",
}
ASKED_AS = {
    "__eq__": "__eq__",
    "__rsub__": "__rsub__",
    "__rtruediv__": "__rdiv__",
    "__rdiv__": "__rdiv__",
    "__floordiv__": "__floordiv__",
    "__rfloordiv__": "__rfloordiv__",
    "__rmod__": "__rmod__",
    "__rmatmul__": "__rmatmul__",
    "__and__": "__and__",
    "__or__": "__or__",
    "__xor__": "__xor__",
    "__lshift__": "__lshift__",
    "__rlshift__": "__rlshift__",
    "__rshift__": "__rshift__",
    "__rrshift__": "__rrshift__",
}
"""The methods of these that `__torch_function__` is asked about; about others the function. In-place ones: see `inplace_dunder`."""
UNARY_DUNDERS = {"__neg__": "neg", "__abs__": "abs", "__invert__": "bitwise_not", "__pos__": "positive"}
INPLACE_DUNDERS = {
    "__iadd__": "add",
    "__isub__": "sub",
    "__imul__": "mul",
    "__itruediv__": "div",
    "__ifloordiv__": "floor_divide",
    "__imod__": "remainder",
    "__ipow__": "pow",
    "__iand__": "bitwise_and",
    "__ior__": "bitwise_or",
    "__ixor__": "bitwise_xor",
    "__ilshift__": "bitwise_left_shift",
    "__irshift__": "bitwise_right_shift",
}
ASKED_APART = ("__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__")


def attach(op: Any) -> None:
    """Set the methods of Tensor that a declared operator or view gives."""
    if op.is_method:
        for name in (op.name, *op.aliases):
            setattr(Tensor, name, op.method or op.function)
            if op.inplace is not None:
                setattr(Tensor, name + "_", op.inplace)
    for dunder, name in DUNDERS.items():
        if name == op.name:
            setattr(Tensor, dunder, operator_method(op, dunder, asked=ASKED_AS.get(dunder)))
    for dunder, name in REFLECTED_DUNDERS.items():
        if name == op.name:
            asked = ASKED_AS.get(dunder)
            setattr(Tensor, dunder, operator_method(op, dunder, reflected=True, asked=asked))
    for dunder, name in UNARY_DUNDERS.items():
        if name == op.name:
            setattr(Tensor, dunder, op.method or op.function)
    for dunder, name in INPLACE_DUNDERS.items():
        if name == op.name and op.inplace is not None:
            setattr(Tensor, dunder, inplace_dunder(op, dunder))


def inplace_dunder(op: Any, dunder: str) -> Any:
    """An in-place dunder; some are asked about by their own names, as functions written in Python are."""
    made = inplace(op, True)
    if dunder not in ASKED_APART:
        return made

    def write(self: Tensor, other: Any) -> Any:
        return made(self, other)

    return named(write, dunder, f"In-place version of `{op.name}`.")


def attach_methods(*methods: Any, **named: Any) -> None:
    """Set methods of Tensor that are written by hand, by their own names or those given."""
    for name, method in [*((m.__name__, m) for m in methods), *named.items()]:
        setattr(Tensor, name, method)


def attach_as(**named: Any) -> None:
    """Set methods of Tensor, which take the names given."""
    for name, method in named.items():
        method.__name__ = method.__qualname__ = name
    attach_methods(**named)


def named(function: Made, name: str, doc: str) -> Made:
    """A function that another one has made, with a name and a docstring of its own."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
