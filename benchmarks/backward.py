"""What a backward pass costs on the host: xtensor against eager `jax.grad` and PyTorch.

    python benchmarks/backward.py                      every case; exit 1 if the bound on `mul_sum` is missed
    python benchmarks/backward.py --json figures.json  and write the figures

The contenders of a case take turns within one run, so that what else the machine does falls on all of them. A figure is
the median over turns of a forward and backward's mean time, on 4x4 float32 tensors. The bound: `(x * y).sum()`, forward
and backward, at most a sixth of eager `jax.grad` of the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xtensor

try:
    import torch
except ImportError:
    torch: Any = None

BOUND = 1 / 6
Call = Callable[[], Any]


def mul_sum(x: Any, y: Any) -> Any:
    """A product and its sum."""
    return (x * y).sum()


def perceptron(x: Any, y: Any) -> Any:
    """Two products of matrices with a nonlinearity between."""
    return ((x @ y) * (x @ y) @ y + y).sum()


def chain(x: Any, y: Any) -> Any:
    """Views and pointwise operators in a row."""
    return ((x.T * y)[1:] + 1.0).sum()


CASES: dict[str, Callable[[Any, Any], Any]] = {"mul_sum": mul_sum, "perceptron": perceptron, "chain": chain}


def pass_of(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Call:
    """A forward and backward of a library with `.grad`."""

    def call() -> None:
        x.grad = y.grad = None
        function(x, y).backward()

    return call


def contenders(function: Callable[[Any, Any], Any]) -> dict[str, Call]:
    """A call per library."""
    values = np.full((4, 4), 0.5, np.float32)
    found: dict[str, Call] = {}
    leaves = [xtensor.tensor(values, requires_grad=True) for _ in range(2)]
    found["xtensor"] = pass_of(function, *leaves)
    arrays = [jnp.asarray(values) for _ in range(2)]
    differentiated = jax.grad(function, (0, 1))
    found["jax.grad"] = lambda: differentiated(*arrays)
    if torch is not None:
        others = [torch.tensor(values, requires_grad=True) for _ in range(2)]
        found["torch"] = pass_of(function, *others)
    return found


def measure(calls: dict[str, Call], turns: int) -> dict[str, Any]:
    """Microseconds of each, in turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(20):
            call()
    for _ in range(turns):
        for name, call in calls.items():
            count = 30 if name == "jax.grad" else 300
            began = time.perf_counter()
            for _ in range(count):
                call()
            times[name].append((time.perf_counter() - began) / count * 1e6)
    return {**{name: statistics.median(found) for name, found in times.items()}, "turns": times}


def main() -> int:
    """Measure, print, and check the bound."""
    parser = argparse.ArgumentParser(description="host time of a forward and backward")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--json")
    options = parser.parse_args()
    figures = {name: measure(contenders(function), options.turns) for name, function in CASES.items()}
    for name, found in figures.items():
        ratio = found["xtensor"] / found["jax.grad"]
        cells = "  ".join(f"{who} {us:8.1f} us" for who, us in found.items() if who != "turns")
        print(f"{name:12} {cells}  xtensor/jax.grad {ratio:.3f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=2)
    share = figures["mul_sum"]["xtensor"] / figures["mul_sum"]["jax.grad"]
    return 0 if share <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
