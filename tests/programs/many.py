"""A process that meets many signatures: what it holds of them, and whether those in use stay as fast, and as right, as they were.

    python -m tests.programs.many 50000

Every signature is an operator on a shape that has not been there before; now and then its gradient is asked for too. Between them the
calls of a small working set come again and again. Each line tells the resident memory, the memory maps of the process (Linux allows
65,530 by default, and ends the process beyond), the microseconds of a round of the working set, and how many of its programs had to
be made again. Ends with 1 where a bound is passed.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import xtensor
from xtensor import compile_cache
from xtensor.xla import compiles, segments, sizes
from xtensor.xla.threads import OWN

OPERATORS = (
    "tanh",
    "exp",
    "sin",
    "sigmoid",
    "erf",
    "log1p",
    "square",
    "cumsum",
    "softmax",
    "sum",
    "flip",
    "gelu",
)
BETWEEN = 8
"""Signatures from one round of the working set to the next."""
GRADIENT = 16
"""One signature in so many is differentiated."""
ROUNDS = 20
"""Rounds of the working set that are timed for a line."""


class Report(NamedTuple):
    """The process after so many signatures: megabytes, maps, microseconds of a round, names of programs made again, signatures a second."""

    signatures: int
    memory: float
    maps: int
    round: float
    again: tuple[str, ...]
    rate: float

    def __str__(self) -> str:
        return f"{self.signatures:>10}{self.memory:>10.0f}{self.maps:>8}{self.round:>11.0f}{len(self.again):>8}{self.rate:>9.1f}"


HEAD = f"{'signatures':>10}{'RSS MB':>10}{'maps':>8}{'round us':>11}{'again':>8}{'per s':>9}"


def memory() -> float:
    """Resident megabytes of this process."""
    status = pathlib.Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def maps() -> int:
    """Memory maps of this process."""
    with open("/proc/self/maps") as lines:
        return sum(1 for _ in lines)


def signatures() -> Iterator[tuple[str, tuple[int, int]]]:
    """Operators on shapes, none of them twice."""
    total = 8
    while True:
        for rows in range(1, total):
            for name in OPERATORS:
                yield name, (rows, total - rows)
        total += 1


def meet(name: str, shape: tuple[int, int], gradient: bool) -> None:
    """Call an operator on a shape."""
    x = xtensor.from_numpy(np.full(shape, 0.5, np.float32)).requires_grad_(gradient)
    function: Callable[..., xtensor.Tensor] = getattr(
        xtensor.nn.functional if name == "gelu" else xtensor, name
    )
    arguments = {"cumsum": (0,), "softmax": (-1,), "flip": ((0,),)}.get(name, ())
    result = function(x, *arguments)
    if gradient:
        result.backward(xtensor.from_numpy(np.ones(tuple(result.shape), np.float32)))


class WorkingSet:
    """A small network's step, and what it gave the first time."""

    def __init__(self) -> None:
        numbers = np.random.RandomState(0)
        self.x, self.weight, self.bias = (
            xtensor.from_numpy(numbers.standard_normal(shape).astype(np.float32))
            for shape in ((64, 131), (17, 131), (17,))
        )
        self.weight.requires_grad_()
        for _ in range(6):  # its plan is there after the third
            self.expected = self.run()
            xtensor.plans.plans.executor.wait()

    def run(self) -> np.ndarray:
        """Forward and backward, and views and reductions beside it."""
        self.weight.grad = None
        hidden = xtensor.nn.functional.linear(self.x, self.weight, self.bias).tanh()
        loss = xtensor.nn.functional.softmax(hidden, dim=-1)[:, 3:11].square().sum()
        loss.backward()
        assert self.weight.grad is not None
        return self.weight.grad.numpy()

    def check(self) -> None:
        """AssertionError unless it gives what it gave, to the bit."""
        np.testing.assert_array_equal(self.run(), self.expected)


def settle() -> None:
    """Wait for all that threads are making."""
    xtensor.plans.plans.executor.wait()
    segments.workers.wait()


def meet_many(count: int, every: int, several: bool = False) -> Iterator[Report]:
    """Meet so many signatures; a report at the start and after every so many.

    several: whether one program may serve several sizes, as it does ordinarily.
    """
    settle()
    before = sizes.enabled()
    sizes.enable(several)
    working = WorkingSet()
    again: list[str] = []
    within = False

    def told(name: str) -> Callable[[bool | None], None]:
        # What often came is a program of its own from then on, for the first time. And what was compiled the quick way is compiled for good
        # by a thread, where nothing else was for a while, as when this process was stopped.
        first = name.startswith("segment_of_") or threading.current_thread().name == f"{OWN}compiles again"
        asked = within and not first

        def made(found: bool | None) -> None:
            # That thread has programs come by at their next calls, to see which are still called: nothing is made then.
            if asked and found is not None:
                again.append(f"{name} by {threading.current_thread().name}")

        return made

    def timed() -> float:
        found = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            working.run()
            found.append(time.perf_counter() - began)
        return min(found) * 1e6

    compiles.watch(told)
    try:
        began, since = time.perf_counter(), 0
        for met, (name, shape) in enumerate(signatures()):
            if met % BETWEEN == 0 or met in (count, since + every):
                segments.finish()
                settle()  # what the signatures began is none of the working set's
                within = True
                working.check()
                if met in (0, count, since + every):
                    now = time.perf_counter()
                    yield Report(met, memory(), maps(), timed(), tuple(again), (met - since) / (now - began))
                    began, since = time.perf_counter(), met
                within = False
            if met == count:
                return
            meet(name, shape, met % GRADIENT == 0)
    finally:
        compiles.unwatch(told)
        sizes.enable(before)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.programs.many",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("count", type=int, nargs="?", default=50_000, help="signatures (50000)")
    parser.add_argument(
        "--several", action="store_true", help="let one program serve several sizes, as it does ordinarily"
    )
    parser.add_argument("--every", type=int, help="signatures from line to line (a twentieth of all)")
    parser.add_argument("--memory", type=float, default=2000, help="megabytes that it may hold (2000)")
    parser.add_argument("--maps", type=int, default=20_000, help="memory maps that it may have (20000)")
    parser.add_argument("--slower", type=float, default=1.5, help="a round's time over the first one's (1.5)")
    parser.add_argument(
        "--cache", help="the compile cache's folder; by default one that is removed at the end"
    )
    options = parser.parse_args(arguments)
    if not pathlib.Path("/proc/self/maps").exists():
        parser.exit(2, "it reads /proc/self/maps, which is Linux's\n")
    passed: dict[str, str] = {}
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as own:
        compile_cache.set_directory(options.cache or own)
        first = None
        every = options.every or max(1, options.count // 20)
        for report in meet_many(options.count, every, options.several):
            print(report, flush=True)
            first = first or report
            if report.memory > options.memory:
                passed["memory"] = f"{report.memory:.0f} MB after {report.signatures} signatures"
            if report.maps > options.maps:
                passed["maps"] = f"{report.maps} maps after {report.signatures} signatures"
            if report.round > options.slower * first.round:
                passed["speed"] = f"{report.round:.0f} us a round, at first {first.round:.0f}"
            if report.again:
                passed["again"] = (
                    f"{len(report.again)} programs in use were made again: {', '.join(report.again[:8])}"
                )
        print(f"compile cache: {compile_cache.stats()}")
        compile_cache.set_directory(None)
    for what, how in passed.items():
        print(f"passed its bound: {what}: {how}")
    return int(bool(passed))


if __name__ == "__main__":
    sys.exit(main())
