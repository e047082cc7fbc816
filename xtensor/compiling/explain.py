"""What a compiled function captured, as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..nn.modules.module import Module
from .function import Compiled, Entry
from .modules import OptimizedModule

__all__ = ["Explanation", "explain"]


class Explanation:
    """What was captured; its `str` is the report. programs: how many there are; breaks: why calls run eagerly."""

    def __init__(self, compiled: Compiled) -> None:
        lines = report(compiled)
        cuts = [compiled.cut] if compiled.cut else []
        while compiled.head is not None:
            compiled = compiled.head
        self.programs = len(compiled.entries)
        self.graph_count = self.programs
        self.breaks = [f"{reason} ({line})" if line else reason for reason, line in compiled.reasons.items()]
        self.breaks += cuts
        self.graph_break_count = len(self.breaks)
        self.break_reasons = self.breaks
        self.text = "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def size_of(array: Any) -> int:
    return array.size * array.dtype.itemsize


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def report(compiled: Compiled) -> list[str]:
    """The lines of a report."""
    if compiled.head is not None:
        return [*report(compiled.head), f"eager {compiled.cut}"]
    lines = [f"{compiled.name}: {counted(len(compiled.entries), 'program')}"]
    for at, entry in enumerate(compiled.entries):
        lines += [f"program {at}:", *["  " + line for line in described(entry)]]
    for reason, line in compiled.reasons.items():
        lines.append(f"eager: {reason}" + (f" ({line})" if line else ""))
    for why, count in compiled.missed.items():
        lines.append(f"captured again: {why}, {counted(count, 'time')}")
    return lines


def described(entry: Entry) -> list[str]:
    """The lines about one program."""
    program = entry.program
    kinds: dict[str, int] = {}
    for source in program.sources:
        kinds[source.kind] = kinds.get(source.kind, 0) + 1
    inputs = ", ".join(counted(count, NAMES[kind]) for kind, count in kinds.items())
    held = [s.what.array for s in program.sources if s.kind == "held"]
    written = [w.storage for w in program.leaves.written]
    guards = entry.guards
    return [
        f"arguments: {', '.join(map(repr, entry.forms)) or 'none'}",
        (
            f"inputs: {inputs or 'none'} ({sum(map(size_of, held))} bytes from outside, "
            f"{sum(map(size_of, program.parts.constants))} of constants)"
        ),
        (
            f"writes: {counted(len(written), 'tensor')}, {counted(len(program.donated), 'buffer')} reused; "
            f"{counted(len(program.leaves.grads), 'gradient')} set"
        ),
        f"backward: {'one program, ' + counted(len(program.leaves.borders), 'gradient') if program.pull else 'none'}",
        (
            f"guards: {counted(len(guards.tensors), 'tensor')}, {counted(len(guards.modules), 'module')}, "
            f"{counted(len(guards.fixed), 'optimizer')}, {counted(len(guards.told), 'value')} read: "
            f"{', '.join(guards.told[:12])}{', ...' if len(guards.told) > 12 else ''}"
        ),
        (
            f"{counted(program.parts.equations, 'equation')}{in_loops(program.parts.loops)}, captured in {entry.seconds[0]:.2f} s, "
            f"called {counted(program.calls, 'time')}"
        ),
    ]


def in_loops(passes: tuple[int, ...]) -> str:
    """What a report says of the loops that a program has."""
    if not passes:
        return ""
    return f", {counted(len(passes), 'loop')} of {', '.join(map(str, passes))} passes"


NAMES = {
    "held": "tensor",
    "given": "argument",
    "values": "argument by value",
    "grad": "gradient",
    "host": "host value",
    "number": "number",
}


def explain(function: Any) -> Callable[..., Explanation]:
    """A function that calls a compiled function until its call is captured, and says what was: inputs, writes, guards, breaks.

    >>> double = xtensor.compile(lambda x: x * 2)
    >>> xtensor.compiler.explain(double)(xtensor.ones(2)).programs
    1
    """
    inner = getattr(function, "_xt_compiled", None)
    if isinstance(function, OptimizedModule):
        inner = getattr(function.compiled(), "_xt_compiled", None)
    elif inner is None and isinstance(function, Module):
        inner = getattr(function._compiled_call_impl, "_xt_compiled", None)
    compiled: Compiled = Compiled(function) if inner is None else inner

    def run(*args: Any, **kwargs: Any) -> Explanation:
        for _ in range(2):
            if compiled.warm and (compiled.entries or compiled.reasons or compiled.head is not None):
                break
            compiled(*args, **kwargs)
        return Explanation(compiled)

    return run
