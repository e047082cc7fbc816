"""Alternating turns: how the benchmarks of whole programs and kernels compare contenders in one run."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

__all__ = ["interval", "measure", "ratio"]

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
    for turn in range(turns):
        # Back and forth, so that none always comes after the same other.
        for name, run in runs.items() if turn % 2 == 0 else reversed(runs.items()):
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
