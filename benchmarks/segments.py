"""Calls that wait in segments, against the same calls at once and against PyTorch: small chains, steps, and first runs.

    python benchmarks/segments.py                       every case, some five minutes
    python benchmarks/segments.py chain first           some
    python benchmarks/segments.py --json segments.json  and write the figures

`chain` is twenty different operators on small arrays, read at its end, in microseconds a call; `view`, `write` and `loop` have views, writes in
place, and a value read at every second call. `mlp`, `lstm` and `gpt` are training steps of `benchmarks/steps.py`. Three contenders take turns:
segments on, off, and PyTorch, of the steps each in a process of its own, else in one; that all give the same (the first two the same bits) is
checked before. `first` is a chain's first run in a process of its own, with an empty cache: wall seconds, on and off in turns.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import steps
from turns import Process, Run, measure, measure_apart, ratio

import xtensor
from xtensor.plans.plans import executor
from xtensor.xla import segments
from xtensor.xla.quick import again
from xtensor.xla.segments import structures
from xtensor.xla.segments.running import budget

TORCH = importlib.util.find_spec("torch") is not None

SIZES = ((4, 4), (67, 64))
STEPS = ("mlp-32x64-sgd", "lstm-loop", "gpt-small")
CALLS = 20
HOT = 64
"""Times that a structure comes here before it is a program of its own."""


def chain(lib: Any, rows: int, columns: int) -> Callable[[], float]:
    """Twenty operators, each another one or of another form."""
    F = lib.nn.functional
    draw = np.random.default_rng(0)
    x, w, b = (
        lib.tensor(draw.normal(size=s).astype(np.float32))
        for s in ((rows, columns), (columns, columns), (columns,))
    )

    def run() -> float:
        v = F.gelu(x @ w + b) * b
        v = (v @ w).tanh().softmax(-1) / 2.0
        v = (v.relu() - b).sigmoid().cumsum(0) / rows
        v = v.exp().log_softmax(-1).clamp(-1, 1).sin()
        return (v + v).sum(0).mean().item()

    return run


def view(lib: Any) -> Callable[[], float]:
    """Views, and what reads them."""
    x = lib.arange(1031.0)

    def run() -> float:
        v = x[1:1025].view(32, 32)
        for _ in range(6):
            v = v.t()[1:, :-1] + v[:-1, 1:].t()
        return v.sum().item()

    return run


def write(lib: Any) -> Callable[[], float]:
    """Writes in place, whole and through views."""
    x = lib.ones(16, 16)

    def run() -> float:
        v = x * 0.5
        for _ in range(9):
            v += x
            v[2:].mul_(0.5)
        return v.sum().item()

    return run


def loop(lib: Any) -> Callable[[], float]:
    """A value that is read after every second call: nothing can wait for long."""
    x = lib.ones(16)

    def run() -> float:
        total = 0.0
        for i in range(10):
            total += (x * i).sum().item()
        return total

    return run


def contenders(make: Callable[[Any], Callable[[], Any]]) -> dict[str, Callable[[], Any]]:
    """The same program: calls that wait, calls at once, and PyTorch's."""
    plain = make(xtensor)

    def at_once() -> Any:
        with segments.paused():
            return plain()

    found = {"segments": make(xtensor), "at once": at_once}
    if TORCH:
        import torch

        found["torch"] = make(torch)
    return found


def step(who: str, name: str, weights: dict[str, Any] | None) -> tuple[Run, dict[str, Any]]:
    """A step of `benchmarks/steps.py` with segments or at once, as a contender with a process of its own (`steps.contender` is PyTorch's)."""
    run_for_long()
    with contextlib.nullcontext() if who == "segments" else segments.paused():
        run, report = steps.contender("xtensor", name, weights, read=True)

    def at_once() -> Callable[[], Any]:
        with segments.paused():
            return run()

    chosen = run if who == "segments" else at_once
    settle({who: chosen})
    return chosen, report


def run_for_long() -> None:
    """Have this process as one that has run for long: there was time for compiling, and calls wait."""
    structures.state.hot, budget.START = HOT, 1e9
    segments.enable(True)


def settle(runs: dict[str, Callable[[], Any]]) -> None:
    """Have all that is run compiled for good."""
    for _ in range(2):  # the programs of its structures, and those of its steps
        for _ in range(2 * HOT):
            for run in runs.values():
                run()
        segments.workers.wait()
        executor.wait()
        if "segments" in runs:
            again.settle(runs["segments"])


def checked(name: str, values: dict[str, float]) -> None:
    """All give the same, xtensor's the same bits."""
    if values["segments"] != values["at once"]:
        raise AssertionError(f"{name}: {values}")
    if "torch" in values and not np.isclose(values["torch"], values["segments"], rtol=1e-2):
        raise AssertionError(f"{name}: {values}")


def timed(name: str, make: Callable[[Any], Callable[[], Any]], calls: int, options: Any) -> dict[str, Any]:
    runs = contenders(make)
    checked(name, {title: run() for title, run in runs.items()})
    settle(runs)
    times = measure(
        {t: (lambda run=run: value_of(run())) for t, run in runs.items()}, options.turns, options.seconds
    )
    return figures_of(times, calls)


def timed_step(name: str, options: Any) -> dict[str, Any]:
    """The figures of a training step, each contender in a process of its own."""
    weights: dict[str, Any] | None = None
    processes: list[Process] = []
    with contextlib.ExitStack() as all_of_them:
        for who in ("segments", "at once", "torch") if TORCH else ("segments", "at once"):
            arguments = who, name, weights
            make = "segments:step"
            if who == "torch":
                make, arguments = "steps:contender", (*arguments, False, True)
            process = Process(who, make, *arguments, seconds=options.seconds)
            processes.append(all_of_them.enter_context(process))
            weights = weights or process.report["weights"]
        checked(name, {process.name: process.report["loss"] for process in processes})
        return figures_of(measure_apart(processes, options.turns), 1)


def figures_of(times: dict[str, list[float]], calls: int) -> dict[str, Any]:
    found: dict[str, Any] = {title: statistics.median(t) / calls for title, t in times.items()}
    found["turns"] = times
    found["ratio to at once"] = ratio(times, "segments", "at once")
    if "torch" in times:
        found["ratio"] = ratio(times, "segments", "torch")
    return found


def value_of(value: Any) -> Callable[[], Any]:
    return lambda: value


FIRST = """
import sys, time
sys.path.insert(0, {folder!r})
import xtensor
from segments import chain
run = chain(xtensor, {rows}, {columns})
began = time.perf_counter()
run()
print(time.perf_counter() - began)
"""


def first(rows: int, columns: int, turns: int) -> dict[str, Any]:
    """Wall seconds of a chain's first run, from an empty cache."""
    times: dict[str, list[float]] = {"segments": [], "at once": []}
    for turn in range(turns):
        order = list(times) if turn % 2 == 0 else list(reversed(times))
        for how in order:
            with tempfile.TemporaryDirectory() as cache:
                kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")}
                code = FIRST.format(
                    folder=os.path.dirname(os.path.abspath(__file__)), rows=rows, columns=columns
                )
                done = subprocess.run(
                    [sys.executable, "-c", code],
                    env=kept
                    | {"XTENSOR_COMPILE_CACHE": cache, "XTENSOR_SEGMENTS": str(int(how == "segments"))},
                    capture_output=True,
                    text=True,
                    check=True,
                )
                times[how].append(float(done.stdout))
    found: dict[str, Any] = {title: statistics.median(t) for title, t in times.items()}
    return {**found, "turns": times, "ratio to at once": ratio(times, "segments", "at once")}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="parts of case names; every case without any")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3, help="of a turn")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(argv)
    wanted = lambda name: not options.cases or any(part in name for part in options.cases)
    figures: dict[str, Any] = {}
    run_for_long()
    print(f"{'case':<24}{'segments':>10}{'at once':>10}{'/ it':>7}{'torch':>10}{'/ it':>7}   us")
    made = [(f"chain {r}x{c}", partial(chain, rows=r, columns=c), CALLS) for r, c in SIZES]
    made += [("view", view, 19), ("write", write, 20), ("loop", loop, 20)]
    found = {name: partial(timed, name, make, calls, options) for name, make, calls in made}
    found |= {name: partial(timed_step, name, options) for name in STEPS}
    for name, figures_now in found.items():
        if wanted(name):
            f = figures[name] = figures_now()
            theirs = f"{f['torch']:>10.2f}{f['ratio']:>7.2f}" if "torch" in f else ""
            print(
                f"{name:<24}{f['segments']:>10.2f}{f['at once']:>10.2f}{f['ratio to at once']:>7.2f}{theirs}",
                flush=True,
            )
    for rows, columns in SIZES:
        name = f"first {rows}x{columns}"
        if wanted(name):
            f = figures[name] = first(rows, columns, options.turns)
            print(
                f"{name:<24}{f['segments']:>10.2f}{f['at once']:>10.2f}{f['ratio to at once']:>7.2f}   seconds",
                flush=True,
            )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
