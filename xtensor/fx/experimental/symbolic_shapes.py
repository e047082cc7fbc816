"""`torch.fx.experimental.symbolic_shapes`: what programs ask about sizes that may be left open, and what is known of those."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...export.dims import Range

__all__ = [
    "GuardOnDataDependentSymNode",
    "ShapeEnv",
    "ShapeGuard",
    "definitely_false",
    "definitely_true",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "statically_known_false",
    "statically_known_true",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """A condition on a value that is not known while a function is traced."""


class ShapeGuard(NamedTuple):
    """A condition on sizes that a traced graph rests on; constraint: the same with `<=` or `>=`, nothing for a size that is
    what it was.
    """

    expr: str
    constraint: str


class ShapeEnv:
    """What is known of the sizes left open in a traced graph.

    guards: the conditions that it rests on. var_to_val: the sizes when it was traced. var_to_range: those that it is for.
    Differs from PyTorch: expressions are texts.
    """

    def __init__(self) -> None:
        self.guards: list[ShapeGuard] = []
        self.var_to_val: dict[str, int] = {}
        self.var_to_range: dict[str, Range] = {}


def guard_or_false(a: Any) -> bool:
    """Whether the condition holds."""
    return bool(a)


guard_or_true = guard_size_oblivious = statically_known_true = definitely_true = guard_or_false


def statically_known_false(x: Any) -> bool:
    """Whether the condition does not hold."""
    return not x


definitely_false = statically_known_false


def free_symbols(val: Any) -> set[Any]:
    """The sizes left open in a value: none."""
    return set()


free_unbacked_symbols = free_symbols


def is_concrete_int(a: Any) -> bool:
    """Whether a value is an int."""
    return isinstance(a, int)


def is_concrete_float(a: Any) -> bool:
    """Whether a value is a float."""
    return isinstance(a, float)


def is_concrete_bool(a: Any) -> bool:
    """Whether a value is a bool."""
    return isinstance(a, bool)
