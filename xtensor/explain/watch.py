"""The compiled programs that a call runs, watched as they run: StableHLO, and the HLO that XLA made of it."""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import CodeType
from typing import Any

from ..engine import modes
from ..operators import dispatch
from ..operators.operator import Operator
from ..xla.x64 import call

__all__ = ["Program", "watch_programs"]


class Program:
    """One jitted program of an operator, and the example arrays that it ran on (kept as shapes and dtypes).

    operator: its name. key: the static arguments that it was made for. arguments: shapes and dtypes.
    stack: the code of the functions that led to it, the outermost first.
    """

    def __init__(self, op: Operator, program: Any, arrays: list[Any]) -> None:
        self.operator = op.name
        self.declaration = op
        self.program = program
        self.key = key_of(op, program)
        self.arguments = tuple(describe(a) for a in arrays)
        self.stack = callers()
        self._lowered = call(program.lower, *arrays)

    @property
    def title(self) -> str:
        key = ", ".join(f"{k}={v!r}" for k, v in self.key.items())
        return f"{self.operator}({', '.join(self.arguments)}{', ' if key else ''}{key})"

    @functools.cached_property
    def stablehlo(self) -> str:
        """The StableHLO that JAX lowered the kernel to."""
        return self._lowered.as_text()

    @functools.cached_property
    def hlo(self) -> str:
        """The HLO after XLA's optimisation for the device the arguments are on, without source locations."""
        return without_locations(call(self._lowered.compile).as_text())

    @property
    def operations(self) -> dict[str, int]:
        """The StableHLO operations and how often each occurs."""
        found = re.findall(r"\b((?:stablehlo|chlo)\.\w+)", self.stablehlo)
        return dict(Counter(name for name in found if name not in ("stablehlo.mesh", "stablehlo.return")))

    @property
    def optimised_operations(self) -> dict[str, int]:
        """The operations of the optimised HLO, inside fusions too, and how often each occurs."""
        found = re.findall(r"^\s*(?:ROOT )?%?[\w.-]+ = [^=]*?\s([a-z][\w-]*)\(", self.hlo, re.MULTILINE)
        return dict(Counter(name for name in found if name != "parameter"))

    @property
    def custom_calls(self) -> list[str]:
        """What XLA handed to a library: cuDNN, cuBLAS, oneDNN, Eigen, ..."""
        return list(dict.fromkeys(re.findall(r'custom_call_target="([^"]+)"', self.hlo)))

    def operations_text(self, which: str) -> str:
        counts = self.operations if which == "stablehlo" else self.optimised_operations
        names = [f"{name}{f' x{n}' if n > 1 else ''}" for name, n in counts.items()]
        return ", ".join(names) or "nothing: the arguments are the results"

    def __repr__(self) -> str:
        return f"<program {self.title}>"


def without_locations(text: str) -> str:
    """HLO text without the tables of source files and what refers to them."""
    text = re.sub(r"^FileNames\n.*?\n\n\n", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r', (?:metadata|frontend_attributes|sharding)=\{(?:[^{}"]|"[^"]*"|\{[^{}]*\})*\}', "", text)


def callers() -> tuple[CodeType, ...]:
    """The code of the functions that are running, down to the one that ran the program."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        found.append(frame.f_code)
        frame = frame.f_back
    return tuple(reversed(found))


def key_of(op: Operator, program: Any) -> dict[str, Any]:
    """The static arguments for which an operator made this program."""
    names = [p.name for p in op.static]
    for key, found in op.programs.items():
        if found is program:
            return dict(zip(names, key, strict=True))
    for key, found in op.variants.items():
        if found is program:
            return dict(zip(names, key[1], strict=True)) | {key[0]: key[2]}
    return {}


def describe(array: Any) -> str:
    if isinstance(array, tuple):
        return f"[{', '.join(describe(a) for a in array)}]"
    if hasattr(array, "dtype"):
        return f"{array.dtype}[{','.join(map(str, array.shape))}]"
    return repr(array)


@contextmanager
def watch_programs() -> Iterator[list[Program]]:
    """Collect the programs of declared operators that run inside, each once for its shapes, in order."""
    found: list[Program] = []
    seen: set[Any] = set()

    def watch(op: Operator, program: Any, arrays: list[Any]) -> None:
        mark = (program, tuple(describe(a) for a in arrays))
        if mark not in seen:
            seen.add(mark)
            # What cannot be traced is an error of the call itself, which says so better.
            with suppress(Exception):
                found.append(Program(op, program, arrays))

    dispatch.watchers.append(watch)
    try:
        # Any flag but NO_GRAD leads calls off the inline path; this one, without hooks, changes nothing else.
        with modes.flag(modes.SAVED_HOOKS):
            yield found
    finally:
        dispatch.watchers.remove(watch)
