"""Random programs with calls that wait in segments, and without: the same bits, sizes, strides, versions and errors.

    python -m tests.fuzz.segments 5000                    so many programs
    python -m tests.fuzz.segments 1000 --first 5000 --processes 2

The statements are those of `tests.fuzz.views` and `tests.fuzz.autograd` (views, writes, indexing, hooks, backward), where nobody looks at a
value between them, and in a quarter of the programs of `tests.fuzz.training` (steps of optimizers); some run on another thread. Each program
runs three times: no call waits; its segments run call by call; they run as one program each; in half of the programs calls are patient, as in
training loops. Prints every program that differs, and ends with 1 where there is one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import xtensor
from tests.fuzz import autograd, training, views
from tests.fuzz.judging import Program, compiled
from xtensor.xla import segments
from xtensor.xla.segments import calls, structures

__all__ = ["Judged", "judged", "main"]

BATCH = 25
THREADED = 0.15
"""Of how many programs a statement in eight runs on another thread."""


class Judged(NamedTuple):
    """Of one program: what differs (empty where nothing does), its statements, those that raised, and its segments that ran as one program."""

    different: str
    statements: int
    raised: int
    whole: int


def generate(seed: int) -> Program:
    """The program of a seed."""
    return (training if seed % 8 in (3, 4) else autograd if seed % 2 else views).generate(seed)


@contextmanager
def waiting(on: bool, hot: int) -> Iterator[None]:
    """Whether calls wait, and from which time on a structure is a program, compiled at once."""
    state = structures.state
    before = state.on, state.hot, state.background
    segments.enable(on)
    state.hot, state.background = hot, False
    state.strange = state.idle = 0
    segments.calls.begin()
    try:
        yield
    finally:
        segments.finish()
        state.hot, state.background = before[1:]
        segments.enable(before[0])


def be_patient(on: bool) -> None:
    """Have calls be patient, or not; looks at values, in the end of a program, undo it."""
    structures.state.reads = 0
    if structures.state.patient is not on:
        calls.be_patient(on)


def ran(program: Program, threaded: bool) -> list[Any]:
    """What a program shows: the errors of its statements, and in the end all tensors that it named."""
    names: dict[str, Any] = {"torch": xtensor}
    found: list[Any] = []
    draw = random.Random(program.seed)
    xtensor.manual_seed(program.seed)

    def run(source: str) -> None:
        try:
            exec(compiled(source), names)
        except Exception as error:
            found.append((source, type(error).__name__, str(error)))

    for step in program.steps:
        if threaded and draw.random() < 0.125:
            thread = threading.Thread(target=run, args=(step.source,))
            thread.start()
            thread.join()
        else:
            run(step.source)
    for name in sorted(names):
        value = names[name]
        if isinstance(value, xtensor.Tensor):
            found.append((name, *shown(value)))
        elif isinstance(value, list):
            found += [(name, *(shown(v) if isinstance(v, xtensor.Tensor) else (repr(v),))) for v in value]
    return found


def shown(tensor: xtensor.Tensor) -> tuple[Any, ...]:
    """What a tensor and its gradient show, values as bytes; looking at a view whose base was written may raise."""
    try:
        return looked_at(tensor)
    except Exception as error:
        return type(error).__name__, str(error)


def looked_at(tensor: xtensor.Tensor) -> tuple[Any, ...]:
    grad = tensor.grad if tensor.is_leaf else None
    told: tuple[Any, ...] = (
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.storage_offset(),
        str(tensor.dtype),
        tensor._version,
        tensor.requires_grad,
        None if tensor.grad_fn is None else tensor.grad_fn.name(),
        bits(tensor),
    )
    return told if grad is None else (*told, tuple(grad.shape), grad._version, bits(grad))


def bits(tensor: xtensor.Tensor) -> bytes:
    """The values, as they lie in a contiguous array; every NaN is the same."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if plain.dtype is xtensor.bfloat16:
        plain = plain.float()
    values = np.array(plain.numpy())
    if values.dtype.kind in "fc":
        parts = values.view(values.real.dtype) if values.ndim else values.reshape(1).view(values.real.dtype)
        parts[np.isnan(parts)] = np.nan
    return values.tobytes()


def judged(seed: int) -> Judged:
    """A program's three runs, compared."""
    program = generate(seed)
    threaded = random.Random(seed).random() < THREADED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with waiting(False, 1):
            plain = ran(program, threaded)
        found: dict[str, list[Any]] = {}
        whole = segments.stats()["whole"]
        with waiting(True, 2):
            for how in ("call by call", "as one program"):
                be_patient(seed % 4 > 1)
                found[how] = ran(program, threaded)
            be_patient(False)
        whole = segments.stats()["whole"] - whole
    different = ""
    for how, other in found.items():
        if len(other) != len(plain):
            different = f"{how}: {len(plain)} observations, then {len(other)}: {other[:2]}"
        for a, b in zip(plain, other):
            if a != b and not different:
                different = f"{how}: {a} but {b}"
    raised = sum(len(f) == 3 and isinstance(f[2], str) for f in plain)
    return Judged(different, len(program.steps), raised, whole)


def judged_all(seeds: range) -> list[tuple[int, Judged]]:
    return [(seed, judged(seed)) for seed in seeds]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.segments")
    parser.add_argument("count", type=int, nargs="?", default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=max(1, min(4, os.cpu_count() or 1)))
    given = parser.parse_args(arguments)
    end = given.first + given.count
    batches = [range(i, min(i + BATCH, end)) for i in range(given.first, end, BATCH)]
    totals: Counter[str] = Counter()
    began = time.monotonic()
    context = multiprocessing.get_context("spawn")
    # An executor of `concurrent.futures` waits for ever, in Python 3.11, once its processes have ended after so many tasks.
    with context.Pool(given.processes, maxtasksperchild=10) as pool:
        for found in pool.imap(judged_all, batches):
            for seed, one in found:
                totals.update(programs=1, statements=one.statements, raised=one.raised, whole=one.whole)
                if one.different:
                    totals["differ"] += 1
                    print(f"{generate(seed).script()}\n# {one.different[:2000]}\n", flush=True)
    print(
        f"seeds {given.first} to {end - 1}: {totals['programs']} programs of {totals['statements']} statements, {totals['raised']} of which "
        f"raised; {totals['whole']} segments ran as one program; {totals['differ']} programs differ ({time.monotonic() - began:.0f} s)"
    )
    return 1 if totals["differ"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
