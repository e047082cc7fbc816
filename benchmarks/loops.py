"""Python loops over tensors, as tutorials write them: xtensor against PyTorch, in microseconds of one turn of the loop.

    python benchmarks/loops.py                     every case
    python benchmarks/loops.py item stack          some
    python benchmarks/loops.py --json loops.json   and write the figures

The contenders take turns within one run; a figure is the median over turns, a ratio the median of the turns' ratios. Results
are compared before anything is timed. A loop's turn is what it says per element: a comparison, an addition and a view.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from turns import measure, ratio

import xtensor

try:
    import torch
except ImportError:
    torch: Any = None

BOUND = 2.5
LENGTH = 64
"""Turns of a loop in one call."""

Loop = Callable[[], Any]


def cases(lib: Any) -> dict[str, Loop]:
    """Every loop of a library, on tensors made once. What a loop returns is compared."""
    data = lib.tensor(np.arange(1031))
    rows = lib.tensor(np.random.default_rng(0).normal(size=(LENGTH, 32)).astype(np.float32))
    at = lib.tensor(np.random.default_rng(1).integers(0, 1000, LENGTH))
    weight = lib.tensor(np.random.default_rng(2).normal(size=(32,)).astype(np.float32), requires_grad=True)
    counts = lib.zeros((27, 27), dtype=lib.int32)
    letters = [int(i) % 27 for i in np.random.default_rng(3).integers(0, 27, LENGTH + 1)]

    def count() -> Any:
        for a, b in pairwise(letters):
            counts[a, b] += 1
        return counts > 0

    def pairs() -> Any:
        xs, ys = [], []
        for a, b in pairwise(letters):
            xs.append(a)
            ys.append(b)
        return [(lib.tensor(x), lib.tensor(y)) for x, y in zip(xs, ys, strict=True)]

    def losses() -> Any:
        total = 0.0
        for _ in range(LENGTH):
            total += (rows[0] * weight).sum().item()
        return total

    def running() -> Any:
        best = rows[0, 0]
        for row in rows:
            if row[0] > best:
                best = row[0]
        return best

    def written() -> Any:
        made = lib.empty(LENGTH)
        for i in range(LENGTH):
            made[i] = rows[i].sum()
        return made

    return {
        "for i in ix: data[i:i + 8]": lambda: [data[i : i + 8] for i in at],
        "stack([data[i:i + 8] for i in ix])": lambda: lib.stack([data[i : i + 8] for i in at]),
        "stack([data[i] for i in ix])": lambda: lib.stack([data[i] for i in at]),
        "for i in ix: i + 8": lambda: [i + 8 for i in at],
        "x[i].item()": lambda: [data[i].item() for i in range(LENGTH)],
        "x[i, 0].item()": lambda: [rows[i, 0].item() for i in range(LENGTH)],
        "(row * w).sum().item()": losses,
        "if row[0] > best": running,
        "a < b of 0-d integers": lambda: [bool(a < b) for a, b in zip(at, at, strict=True)],
        "int(t)": lambda: [int(i) for i in at],
        "float(row.sum())": lambda: [float(row.sum()) for row in rows],
        "len(x)": lambda: [len(rows) for _ in range(LENGTH)],
        "x.unbind()": lambda: list(rows.unbind()),
        "for i, row in enumerate(x)": lambda: [row for _, row in enumerate(rows)],
        "tensor([i, i + 1])": lambda: [lib.tensor([i, i + 1]) for i in range(LENGTH)],
        "tensor(2.5)": lambda: [lib.tensor(2.5) for _ in range(LENGTH)],
        "tensor of pairs": pairs,
        "arange(8)": lambda: [lib.arange(8) for _ in range(LENGTH)],
        "zeros(4)": lambda: [lib.zeros(4) for _ in range(LENGTH)],
        "randint(0, 100, (4,))": lambda: [lib.randint(0, 100, (4,)) for _ in range(LENGTH)],
        "counts[a, b] += 1": count,
        "made[i] = row.sum()": written,
        "x.tolist()": lambda: [row.tolist() for row in rows],
        "x.shape, x.size(0)": lambda: [(row.shape, row.size(0)) for row in rows],
    }


def plain(found: Any) -> Any:
    """Values, without the library's types."""
    if hasattr(found, "tolist"):
        return found.tolist()
    return [plain(item) for item in found] if isinstance(found, list | tuple) else found


def agree(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list | tuple):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    return bool(np.isclose(ours, theirs, rtol=1e-4, atol=1e-5))


def wait(result: Any) -> Callable[[], Any]:
    """What waits for the last tensor of a loop's results."""
    last = result
    while isinstance(last, list | tuple) and last:
        last = last[-1]
    detach: Any = getattr(last, "detach", None)
    return (lambda: result) if detach is None else detach().tolist


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="parts of case names; every case without any")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.05, help="how long a turn of one contender is")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(argv)
    libraries = {"xtensor": xtensor} | ({} if torch is None else {"torch": torch})
    if torch is not None:
        torch.set_num_threads(2)
    made = {title: cases(lib) for title, lib in libraries.items()}
    figures: dict[str, dict[str, Any]] = {}
    print(f"{'loop':<38}{'us':>8}{'torch':>8}{'ratio':>7}   at most {BOUND}")
    for name in made["xtensor"]:
        if options.cases and not any(part in name for part in options.cases):
            continue
        loops = {title: found[name] for title, found in made.items()}
        if torch is not None and "randint" not in name:
            values = [plain(loop()) for loop in loops.values()]
            if not agree(*values):
                raise AssertionError(f"{name} disagrees")
        runs = {title: (lambda loop=loop: wait(loop())) for title, loop in loops.items()}
        times = measure(runs, options.turns, options.seconds)
        found: dict[str, Any] = {title: statistics.median(t) / LENGTH for title, t in times.items()}
        found["turns"] = times
        if "torch" in times:
            found["ratio"] = ratio(times, "xtensor", "torch")
        figures[name] = found
        theirs = f"{found['torch']:>8.2f}{found['ratio']:>7.2f}" if "torch" in found else ""
        print(f"{name:<38}{found['xtensor']:>8.2f}{theirs}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)
    return int(any(f.get("ratio", 0) > BOUND for f in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
