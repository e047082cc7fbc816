"""Alternating turns: how the benchmarks of whole programs and kernels compare contenders in one run.

`measure` has them all in this process, where they share its threads' processors, malloc and caches; `measure_apart` each in a process of its own
(`Process`), which waits on a pipe while another has its turn. Whole programs are compared so, since nobody runs two libraries in one.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import random
import signal
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Process", "interval", "measure", "measure_apart", "ratio"]

Run = Callable[[], Callable[[], Any]]
"""A call, which returns what waits for its result."""

SETTLE = 0.25
"""Seconds of rest before a turn: threads of the contender before it may spin for work that long (OpenMP's do)."""


ENDING = 30.0
"""Seconds that a process may take to end by itself."""


def turns_of(run: Run, seconds: float) -> Callable[[], float]:
    """What measures a turn of about `seconds`: microseconds of a call."""
    run()()
    began = time.perf_counter()
    run()()
    count = max(1, min(2000, int(seconds / max(time.perf_counter() - began, 1e-6))))

    def turn() -> float:
        run()()
        began = time.perf_counter()
        wait = run()
        for _ in range(count - 1):
            wait = run()
        wait()
        return (time.perf_counter() - began) / count * 1e6

    return turn


def alternate(contenders: dict[str, Callable[[], float]], turns: int) -> dict[str, list[float]]:
    """What each measures in every turn."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(turns):
        # Back and forth, so that none always comes after the same other.
        for name, measured in contenders.items() if turn % 2 == 0 else reversed(contenders.items()):
            time.sleep(SETTLE)
            found[name].append(measured())
    return found


def measure(runs: dict[str, Run], turns: int, seconds: float) -> dict[str, list[float]]:
    """Microseconds of a call of each in every turn of about `seconds`; a call returns what waits for its result."""
    return alternate({name: turns_of(run, seconds) for name, run in runs.items()}, turns)


def measure_apart(processes: Sequence[Process], turns: int) -> dict[str, list[float]]:
    """Microseconds of a call of each process's run in every turn."""
    return alternate({process.name: process.turn for process in processes}, turns)


class Process:
    """A contender in a process of its own, which imports what its factory imports and nothing else.

    make: the factory as `module:function`, by name, since the program that measures may import what the contender must not have. It returns a
    run, warmed up, and a report. RuntimeError with the process's traceback where it fails, there or in a turn.
    """

    def __init__(self, name: str, make: str, *arguments: Any, seconds: float) -> None:
        self.name = name
        warnings = [f"-W{option}" for option in sys.warnoptions]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, *warnings, os.path.abspath(__file__)], stdin=pipe, stdout=pipe
        )
        try:
            self.report: dict[str, Any] = self._asked((make, arguments, seconds))
        except BaseException:
            self.close(at_once=True)
            raise

    def turn(self) -> float:
        """Microseconds of a call, in a turn of its own."""
        return self._asked(True)

    def close(self, at_once: bool = False) -> None:
        """End the process: when it has done what it was asked, or at once."""
        if at_once:
            self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self.process.wait(ENDING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(at_once=kind is not None)

    def _asked(self, question: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, which is told below
            pickle.dump(question, self.process.stdin)
            self.process.stdin.flush()
        try:
            well, answer = pickle.load(self.process.stdout)
        except (EOFError, pickle.UnpicklingError):
            raise RuntimeError(f"{self.name}: its process ended with {self.process.wait()}") from None
        if not well:
            raise RuntimeError(f"{self.name}, in its process:\n{answer}")
        return answer


def serve() -> None:
    """What the process of a `Process` does: make the run, then measure a turn whenever it is asked, until nobody can ask any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks is interrupted too, and ends this process
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed does not come between the answers

    def tell(well: bool, answer: Any) -> None:
        with contextlib.suppress(BrokenPipeError):
            pickle.dump((well, answer), answers)
            answers.flush()

    try:
        make, arguments, seconds = pickle.load(asked)
        module, _, function = make.partition(":")
        run, report = getattr(importlib.import_module(module), function)(*arguments)
        turn = turns_of(run, seconds)
        tell(True, report)
        with contextlib.suppress(EOFError):
            while pickle.load(asked):
                tell(True, turn())
    except BaseException:
        tell(False, traceback.format_exc())


def ratio(found: dict[str, list[float]], name: str, other: str) -> float:
    """The median over turns of one contender's time over another's."""
    return statistics.median(a / b for a, b in zip(found[name], found[other], strict=True))


DRAWS = 2000


def interval(
    found: dict[str, list[float]], name: str, other: str, share: float = 0.95
) -> tuple[float, float]:
    """Where the ratio of the medians lies with this probability: bootstrapped over turns, which keep their pairs. The same every time."""
    draw = random.Random(0)
    pairs = list(zip(found[name], found[other], strict=True))
    ratios = []
    for _ in range(DRAWS):
        ours, theirs = zip(*draw.choices(pairs, k=len(pairs)), strict=True)
        ratios.append(statistics.median(ours) / statistics.median(theirs))
    ratios.sort()
    outside = round((1 - share) / 2 * DRAWS)
    return ratios[outside], ratios[-1 - outside]


if __name__ == "__main__":
    serve()
