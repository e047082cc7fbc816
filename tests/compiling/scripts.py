"""The programs of `tests/scripts`, as they are and with their training steps or their modules compiled."""

from __future__ import annotations

import importlib
import linecache
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import xtensor
from tests.compiling.hoist import hoisted
from tests.scripts import FOLDER, NAMES, beside_its_helpers, difference

__all__ = ["NAMES", "Outcome", "compared"]


class Outcome(NamedTuple):
    """Of one program: the largest relative difference from eager code, calls that ran as programs, all calls, why others did not."""

    name: str
    difference: float
    fast: int
    calls: int
    programs: int
    reasons: list[str]
    missed: list[dict[str, int]]


def run(name: str, taken_out: Callable[[Any], Any], filled: Callable[[Any], Any]) -> list[float]:
    """What a program returns whose training steps go by `taken_out`, and its modules by `filled`."""
    text, _ = hoisted((FOLDER / f"{name}.py").read_text())
    file = f"<steps of {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    with xtensor.interop.installed(), beside_its_helpers():
        module: Any = types.ModuleType("script_of_steps")
        module._taken_out = taken_out
        sys.modules[module.__name__] = module
        same: Any = importlib.import_module("same")
        fill = same.fill
        same.fill = lambda *args, **options: filled(fill(*args, **options))
        try:
            exec(compile(text, file, "exec"), module.__dict__)
            return module.main()
        finally:
            del sys.modules[module.__name__]


def compared(name: str, modules: bool = False) -> Outcome:
    """A program against itself, with its steps compiled; or its modules, whose calls nobody counts."""
    made: list[Any] = []
    count = [0]

    def taken_out(step: Any) -> Any:
        if modules:
            return step
        compiled = xtensor.compile(step)
        made.append(compiled._xt_compiled)

        def counted(*args: Any) -> Any:
            count[0] += 1
            return compiled(*args)

        return counted

    def filled(module: Any) -> Any:
        if modules:
            module.compile()
            made.append(module._compiled_call_impl._xt_compiled)
        return module

    xtensor.manual_seed(0)
    eager = run(name, lambda step: step, lambda module: module)
    xtensor.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "xtensor.compile")
        found = run(name, taken_out, filled)
    for each in made:
        if each.head is not None:
            made.append(each.head)
    programs = [entry.program for each in made for entry in each.entries]
    reasons = [each.cut for each in made if each.cut]
    reasons += [f"{reason} ({line})" for each in made for reason, line in each.reasons.items()]
    fast = sum(program.calls for program in programs)
    missed = [each.missed for each in made if each.missed]
    return Outcome(name, difference(found, eager), fast, count[0], len(programs), reasons, missed)
