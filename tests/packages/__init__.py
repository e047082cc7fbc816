"""Small programs over packages that are written for PyTorch, each run on PyTorch and, unchanged, on xtensor.

A program prints its figures as one line of JSON, the last. `python -m tests.packages` runs them and prints a table.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import subprocess
import time
from collections.abc import Sequence
from importlib.metadata import packages_distributions

FOLDER = pathlib.Path(__file__).resolve().parent / "programs"
ROOT = FOLDER.parents[2]
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "same")
# Under other names in the index than those that are imported.
DISTRIBUTIONS = {
    "ignite": "pytorch-ignite",
    "pyro": "pyro-ppl",
    "x_transformers": "x-transformers",
    "vit_pytorch": "vit-pytorch",
}
FIGURE, TRAINED = 1e-4, 1e-3

Figures = dict[str, list[float]]


class Failed(Exception):
    """A program that ended with an error; the text is its last lines."""


def needs(name: str) -> set[str]:
    """The packages that a program imports, torch and the standard library aside."""
    text = (FOLDER / f"{name}.py").read_text("utf-8")
    found = set(re.findall(r"^(?:from|import) (\w+)", text, re.M))
    return {top for top in found if top not in STANDARD}


STANDARD = {
    "torch",
    "same",
    "numpy",
    "math",
    "json",
    "tempfile",
    "os",
    "warnings",
    "functools",
    "io",
    "logging",
    "sys",
}


def missing(name: str) -> set[str]:
    """Those that are not installed here."""
    return needs(name) - set(packages_distributions())


def run(
    command: Sequence[str], name: str, timeout: float = 900, cache: str | None = None
) -> tuple[Figures, float]:
    """The figures of a program under a command, and its wall time in seconds. cache: the compile cache's folder, not the usual one."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    quiet = {
        "HF_HUB_OFFLINE": "1",
        "MPLBACKEND": "Agg",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": path,
    }
    kept = dict(os.environ)
    if cache is not None:
        kept.pop("JAX_COMPILATION_CACHE_DIR", None)
        quiet["XTENSOR_COMPILE_CACHE"] = cache
    started = time.perf_counter()
    done = subprocess.run(
        [*command, str(FOLDER / f"{name}.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env=kept | quiet,
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise Failed("\n".join(done.stderr.strip().splitlines()[-12:]))
    return json.loads(done.stdout.strip().splitlines()[-1]), seconds


def difference(ours: Figures, theirs: Figures) -> float:
    """The largest difference of a figure relative to its size, in units of what is allowed: at most 1 is right."""
    if ours.keys() != theirs.keys() or not ours:
        return math.inf
    worst = 0.0
    for name, values in theirs.items():
        if len(values) != len(ours[name]):
            return math.inf
        size = max((abs(v) for v in values), default=0.0)
        allowed = TRAINED if name.startswith("train") else FIGURE
        for a, b in zip(ours[name], values):
            if not (math.isfinite(a) and math.isfinite(b)):
                worst = max(worst, 0.0 if a == b or (math.isnan(a) and math.isnan(b)) else math.inf)
            else:
                worst = max(worst, abs(a - b) / (allowed * max(size, 1e-3)))
    return worst
