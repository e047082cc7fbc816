"""The schema of an operator: its kernel's Python signature, read once at import.

The annotation of a parameter says what it is at run time:

    Array           a Tensor                              Arrays     a sequence of Tensors
    Operand         a Tensor or a Python number           Number     a Python number, passed as a runtime operand
    anything else   static: part of the key of the compiled program (dims, flags, dtypes, strings)

`| None` makes any of them optional. Inside a kernel an Array is a `jax.Array`, and a number is weakly typed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

__all__ = ["Array", "Arrays", "Number", "Operand", "Parameter", "Schema", "read_schema"]

Array = jax.Array
Number = Any  # int | float | complex | bool; a weakly typed array while tracing
Operand = Any  # Array | Number
Arrays = Sequence[jax.Array]

ARRAY, OPERAND, NUMBER, ARRAYS, STATIC = "Array", "Operand", "Number", "Arrays", "static"
EMPTY = inspect.Parameter.empty
MISSING: Any = type("Missing", (), {"__slots__": (), "__repr__": lambda self: "<missing>"})()
"""What a generated function holds for a required argument that was not given, where it is for us to say so."""


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, what it is at run time, its default, and whether it is keyword-only."""

    name: str
    kind: str
    annotation: str
    optional: bool
    default: Any
    keyword_only: bool

    @property
    def required(self) -> bool:
        return self.default is EMPTY

    @property
    def runtime(self) -> bool:
        return self.kind != STATIC

    @property
    def integral(self) -> bool:
        """Whether it is an int, or a sequence of ints, that chooses the program."""
        return not self.runtime and self.annotation.startswith(("int", "Sequence[int", "tuple[int"))

    @property
    def boolean(self) -> bool:
        """Whether it is a bool that chooses the program."""
        return not self.runtime and self.annotation in ("bool", "bool | None")


@dataclass(frozen=True)
class Schema:
    """The parameters of an operator in order, and how many results it has (None: a list whose length varies)."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str

    @property
    def runtime(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.runtime)

    @property
    def static(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if not p.runtime)

    @property
    def single(self) -> bool:
        return self.returns == "Array"

    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    def position(self, name: str) -> int:
        return self.names().index(name) + 1


def read_schema(function: Callable[..., Any], name: str) -> Schema:
    """The schema that a kernel's signature declares; its annotations must be strings (PEP 563)."""
    parameters = []
    for p in inspect.signature(function).parameters.values():
        annotation = (
            p.annotation if isinstance(p.annotation, str) else getattr(p.annotation, "__name__", "Any")
        )
        parts = [part.strip() for part in annotation.split("|")]
        kind = parts[0] if parts[0] in (ARRAY, OPERAND, NUMBER, ARRAYS) else STATIC
        parameters.append(
            Parameter(
                p.name,
                kind,
                annotation,
                "None" in parts or p.default is None,
                p.default,
                p.kind is inspect.Parameter.KEYWORD_ONLY,
            )
        )
    returns = function.__annotations__.get("return", "Array")
    return Schema(name, tuple(parameters), returns if isinstance(returns, str) else "Array")
