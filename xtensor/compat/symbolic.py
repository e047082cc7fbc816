"""Sizes and numbers that PyTorch's compilers trace: here they are Python's own, run as they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "sym_float",
    "sym_fresh_size",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


class SymInt:
    """A size that is not known yet: none is ever made, since sizes are numbers."""

    def __init__(self, node: Any) -> None:
        raise TypeError(f"{type(self).__name__} cannot be made: nothing is traced, and sizes are numbers")


class SymFloat(SymInt):
    """A number that is not known yet: none is ever made."""


class SymBool(SymInt):
    """A condition that is not known yet: none is ever made."""


def sym_int(a: Any) -> int:
    """`int(a)`, towards zero."""
    return math.trunc(a)


def sym_float(a: Any) -> float:
    """`float(a)`."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger number, a float if either is one."""
    found = max(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, a float if either is one."""
    found = min(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_not(a: Any) -> bool:
    """`not a`."""
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t if b else f`, of one type."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError("expected a bool, and two values of the same type")
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_sum(args: Sequence[Any]) -> Any:
    """The sum."""
    return sum(args)


def sym_fresh_size(expr: Any) -> Any:
    """Refused: sizes are numbers."""
    raise NotImplementedError("torch.sym_fresh_size: nothing is traced, and sizes are numbers")
