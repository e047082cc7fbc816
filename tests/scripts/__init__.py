"""Complete small PyTorch programs, each run on PyTorch and, unchanged, on xtensor.

A program imports `torch` as any does and returns numbers from `main()`: losses after each step, and what it computed
at the end. `python -m tests.scripts` runs all of them on both and prints a table.
"""

from __future__ import annotations

import pathlib
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import xtensor

FOLDER = pathlib.Path(__file__).resolve().parent
HELPERS = {"same", "__init__", "__main__"}
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in HELPERS)
WITH_STEPS = [name for name in NAMES if name != "forward_mode" and not name.startswith("func_")]
"""Those that train in a loop; the others compute derivatives of functions."""


@contextmanager
def beside_its_helpers() -> Iterator[None]:
    """The folder on the import path, and no helper left over from the other library's run."""
    sys.path.insert(0, str(FOLDER))
    sys.modules.pop("same", None)
    try:
        yield
    finally:
        sys.path.remove(str(FOLDER))
        sys.modules.pop("same", None)


def run_on_torch(name: str) -> list[float]:
    """What a program returns on PyTorch."""
    with beside_its_helpers():
        return runpy.run_path(str(FOLDER / f"{name}.py"))["main"]()


def run_on_xtensor(name: str, device: str | None = None) -> list[float]:
    """What the same text returns on xtensor."""
    with xtensor.interop.installed(device), beside_its_helpers():
        return runpy.run_path(str(FOLDER / f"{name}.py"))["main"]()


def difference(ours: list[float], theirs: list[float]) -> float:
    """The largest relative difference; infinite where the numbers of numbers differ."""
    if len(ours) != len(theirs) or not ours:
        return float("inf")
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if not np.isfinite(b).all() or not np.isfinite(a).all():
        return float("inf")
    return float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-3)))
