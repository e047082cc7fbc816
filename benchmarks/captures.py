"""What `xtensor.compile` costs besides running: guards at every call, and the first call, against the same step by hand under `jax.jit`.

    python benchmarks/captures.py                    some cases of `steps.py`
    python benchmarks/captures.py mlp-32x64 cnn      these
    python benchmarks/captures.py --json captures.json

`guards`: microseconds of an unchanged world, and the bound of 2 plus 0.05 for each parameter. `compare`: what a comparison of one attribute
costs here; a parameter takes as many as it has tensors that may be replaced without a word (itself, its gradient, its optimizer's states).
`capture`: seconds of the call that captures, less lowering and compiling; `trace`: what JAX takes to trace the step by hand; `eager`: Python's part of
an eager step, over data of one row so that kernels take next to nothing. `cold`: lowering and compiling, with no cache, over that of the step by hand.
`with gradients`: the step by hand when it gives its gradients back too, as one whose `.grad` stay visible has to, over the one that does not.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import handwritten
import jax
from steps import CASES, Case, compiled_program, data_of, eager
from turns import measure, ratio

import xtensor
from xtensor.plans.plans import executor

CHOSEN = ("mlp-32x64-sgd", "mlp-32x64-adam", "cnn", "lstm-loop", "gpt-small")


def best(function: Callable[[], Any], times: int = 5) -> float:
    """Seconds of a call: the median of some."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        function()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def guards_of(step: Any) -> float:
    """Microseconds of the guards of a captured step."""
    (entry,) = step._xt_compiled.entries
    hold = entry.guards.hold

    def many() -> None:
        for _ in range(1000):
            hold()

    return best(many, 9) * 1e3


def comparison() -> float:
    """Microseconds of `a.x is b` in a written-out chain of a hundred."""
    names: dict[str, Any] = {"a": type("A", (), {"__slots__": ("x",)})()}
    names["a"].x = names
    names["b"] = names
    scope: dict[str, Any] = {}
    exec(f"def make(a, b):\n return lambda: {' and '.join(['a.x is b'] * 100)}", scope)
    chain = scope["make"](names["a"], names["b"])

    def many() -> None:
        for _ in range(1000):
            chain()

    return best(many, 9) * 1e3 / 100


def one_row(case: Case) -> Case:
    """The case over a batch of one."""
    shape = list(case.shape)
    shape[case.batch_dim] = 1
    return dataclasses.replace(case, shape=tuple(shape))


def python_of_eager(case: Case, weights: dict[str, Any]) -> float:
    """Seconds of an eager step whose kernels have next to nothing to do."""
    step, _ = eager(xtensor, one_row(case), weights)
    for _ in range(8):
        step()
    executor.wait()
    return best(step, 30)


def capturing(case: Case, weights: dict[str, Any]) -> tuple[Any, float]:
    """A captured step, and the seconds that capturing took before anything was lowered."""
    step = xtensor.compile(eager(xtensor, case, weights)[0], fullgraph=True)
    step()
    step()
    return step, step._xt_compiled.entries[0].seconds[0]


def cold(lower: Callable[[], Any]) -> float:
    """Seconds of lowering and compiling with no cache."""

    def once() -> None:
        jax.clear_caches()
        lower().compile()

    jax.config.update("jax_enable_compilation_cache", False)
    try:
        return best(once, 3)
    finally:
        jax.config.update("jax_enable_compilation_cache", True)


def figures_of(case: Case, turns: int) -> dict[str, float]:
    """All figures of a case."""
    xtensor.manual_seed(0)
    _, model = eager(xtensor, case, None)
    weights = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    parameters = len(list(model.parameters()))
    step, seconds = capturing(case, weights)
    makers = [
        handwritten.step_of(case.by_hand, weights, data_of(case), case.optimizer, case.clip, g)
        for g in (False, True)
    ]
    found = {
        "parameters": parameters,
        "guards": guards_of(step),
        "guards bound": 2 + 0.05 * parameters,
        "compare": comparison(),
        "capture": seconds,
        "trace": best(makers[0].traced, 3),  # type: ignore[attr-defined]
        "eager": python_of_eager(case, weights),
    }
    runs = {
        name: (lambda made=made: made().item)
        for name, made in zip(("hand", "gradients"), makers, strict=True)
    }
    turned = measure(runs, turns, 0.2)
    found["with gradients"] = ratio(turned, "gradients", "hand")
    found["cold"] = cold(lambda: compiled_program(step)) / cold(makers[0].lowered)  # type: ignore[attr-defined]
    found["capture to trace"] = found["capture"] / found["trace"]
    found["capture to eager"] = found["capture"] / found["eager"]
    found["trace to eager"] = found["trace"] / found["eager"]
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=CHOSEN, help="parts of case names")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args(argv)
    figures: dict[str, dict[str, float]] = {}
    for name, case in CASES.items():
        if not any(part in name for part in options.cases):
            continue
        found = figures[name] = figures_of(case, options.turns)
        print(
            f"{name:<16} guards {found['guards']:.2f} us ({found['guards bound']:.2f} for {found['parameters']:.0f} parameters, "
            f"{found['compare'] * 1e3:.0f} ns a comparison); capture {found['capture']:.3f} s, {found['capture to trace']:.2f} of the trace by hand, "
            f"{found['capture to eager']:.0f} eager steps (by hand {found['trace to eager']:.0f}); "
            f"cold {found['cold']:.2f}; with gradients {found['with gradients']:.2f}",
            flush=True,
        )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
