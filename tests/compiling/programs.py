"""Compiled programs against eager ones, at breadth: the programs of `tests/scripts`, kinds of training, random programs, random worlds.

    python -m tests.compiling.programs                        all of it, some ten minutes
    python -m tests.compiling.programs scripts gpt gan        some of the scripts
    python -m tests.compiling.programs training random --count 1000

Each part prints a line for what it ran: the largest relative difference from eager code, how many calls ran as programs and why others did
not. Ends with 1 where one differs by more than rounding.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable

from tests.compiling import random_programs, scripts, training, worlds

__all__ = ["main"]

ROUNDING = 1e-3
"""Twenty steps of training make more of a rounding difference than one."""


def of_scripts(names: Iterable[str], count: int) -> int:
    """The programs' steps, and then their modules."""
    failed = 0
    for modules in (False, True):
        for name in names or scripts.NAMES:
            began = time.perf_counter()
            found = scripts.compared(name, modules)
            failed += not found.difference <= ROUNDING
            calls = f"{found.fast}/{found.calls}" if found.calls else f"{found.fast}"
            print(
                f"{'modules' if modules else 'steps':8} {name:18} {found.difference:9.1e} {calls:>8} calls, {found.programs} programs, "
                f"{time.perf_counter() - began:5.1f} s  {'; '.join(found.reasons)}",
                flush=True,
            )
    return failed


def of_training(names: Iterable[str], count: int) -> int:
    """The kinds of training."""
    failed = 0
    for name in training.KINDS:
        if names and not any(part in name for part in names):
            continue
        began = time.perf_counter()
        found = training.compared(name)
        bound = 1e-2 if "mixed" in name else ROUNDING
        wrong = not found.difference <= bound or bool(found.counts)
        failed += wrong
        print(
            f"{name:38} {found.difference:9.1e} {found.calls:>4} calls, {found.programs} programs, "
            f"{time.perf_counter() - began:5.1f} s  {'; '.join(found.reasons)}"
            + (f"  DIFFERS {', '.join(found.counts)}" if wrong else ""),
            flush=True,
        )
    return failed


def of_random(names: Iterable[str], count: int) -> int:
    """Random programs, from a seed on."""
    start = next((int(name) for name in names if name.isdigit()), 0)
    failed = captured = raised = 0
    reasons: Counter[str] = Counter()
    for seed in range(start, start + count):
        found = random_programs.compared(seed)
        captured += found.calls > 0
        raised += found.raised
        reasons.update(found.reasons)
        if found.different:
            failed += 1
            print(f"seed {seed}: {found.different}\n{random_programs.text_of(seed)}", flush=True)
    print(f"{count} random programs: {captured} ran as programs, {raised} raise, {failed} differ")
    for why, often in reasons.most_common(8):
        print(f"    eager {often} times: {why}")
    return failed


def of_worlds(names: Iterable[str], count: int) -> int:
    """Worlds that change, a hundred times each."""
    start = next((int(name) for name in names if name.isdigit()), 0)
    failed = changes = 0
    for seed in range(start, start + max(count // 100, 1)):
        found = worlds.compared(seed, min(count, 100))
        changes += min(count, 100)
        failed += bool(found.different)
        print(
            f"world {seed}: {found.steps} steps, {found.calls} as programs, forgotten {found.forgotten} times  "
            + (found.different or ""),
            flush=True,
        )
    print(f"{changes} changes, {failed} worlds differ")
    return failed


PARTS: dict[str, Callable[[list[str], int], int]] = {
    "scripts": of_scripts,
    "training": of_training,
    "random": of_random,
    "worlds": of_worlds,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.compiling.programs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PARTS)}, and of what is in them")
    parser.add_argument(
        "--count", type=int, default=1000, help="how many random programs, and changes of the world"
    )
    options = parser.parse_args(arguments)
    parts = [name for name in PARTS if name in options.names] or list(PARTS)
    chosen = [name for name in options.names if name not in PARTS]
    failed = sum(PARTS[part](chosen, options.count) for part in parts)
    print("all agree" if not failed else f"{failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
