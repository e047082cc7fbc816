"""Alternating turns: how the benchmarks of whole programs and kernels compare contenders in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

__all__ = ["measure", "ratio"]

SETTLE = 0.25
"""Seconds of rest before a turn: threads of the contender before it may spin for work that long (OpenMP's do)."""


def measure(runs: dict[str, Callable[[], Any]], turns: int, seconds: float) -> dict[str, list[float]]:
    """Microseconds of a call of each in every turn of about `seconds`; a call returns what waits for its result."""
    counts = {}
    for name, run in runs.items():
        run()()
        began = time.perf_counter()
        run()()
        counts[name] = max(1, min(2000, int(seconds / max(time.perf_counter() - began, 1e-6))))
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            time.sleep(SETTLE)
            run()()
            began = time.perf_counter()
            wait = run()
            for _ in range(counts[name] - 1):
                wait = run()
            wait()
            found[name].append((time.perf_counter() - began) / counts[name] * 1e6)
    return found


def ratio(found: dict[str, list[float]], name: str, other: str) -> float:
    """The median over turns of one contender's time over another's."""
    return statistics.median(a / b for a, b in zip(found[name], found[other], strict=True))
