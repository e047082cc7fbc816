"""The command line of both judges: programs in worker processes, totals, a histogram and shrunk failures."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.judging import Difference, Hang, Program, Verdict, normalised, time_limit

SECONDS = 120  # one program, with every compilation it needs


@dataclass
class Tally:
    """What came of a batch of programs."""

    programs: int = 0
    steps: int = 0
    errors: int = 0
    same_words: int = 0
    words: Counter[tuple[str, str]] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, Difference]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.steps += other.steps
        self.errors += other.errors
        self.same_words += other.same_words
        self.words += other.words
        self.kinds += other.kinds
        self.failures += other.failures


def use_cache(folder: str) -> None:
    """Points JAX at a compilation cache that the workers share, unless the user has set one."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@dataclass(frozen=True)
class Court:
    """Who judges whom, by module names, so that it travels to worker processes; and which aspects do not count."""

    judge: str
    subject: str
    use_torch: bool
    ignore: tuple[str, ...] = ()

    def load(self) -> tuple[Any, Any, Any]:
        """The judge's module, its reference (torch, or what stands in for it) and the library under test."""
        module = importlib.import_module(self.judge)
        base = module.FALLBACK
        if self.use_torch:
            base = importlib.import_module("torch")
            base.set_num_threads(1)
        return module, base, importlib.import_module(self.subject)


def verdict_on(court: Court, program: Program) -> Verdict:
    """The judge's verdict, a hang being a difference like any other."""
    module, base, lib = court.load()
    try:
        with time_limit(SECONDS):
            return module.compare(program, base, lib, court.ignore)
    except Hang as late:
        return Verdict(Difference(len(program.steps), "(hang)", "(program)", "time", "an end", str(late)))


def judge_seeds(court: Court, seeds: Sequence[int]) -> Tally:
    """Judges a batch of seeds in this process."""
    module, base, _ = court.load()
    tally = Tally()
    for seed in seeds:
        program = module.generate(seed, base)
        verdict = verdict_on(court, program)
        tally.programs += 1
        tally.steps += len(program.steps)
        tally.kinds.update(step.kind for step in program.steps)
        for ours, theirs in verdict.wordings:
            tally.errors += 1
            if normalised(ours) == normalised(theirs):
                tally.same_words += 1
            else:
                tally.words[normalised(ours)[:110], normalised(theirs)[:110]] += 1
        if verdict.difference:
            tally.failures.append((seed, verdict.difference))
    return tally


def shrunk(court: Court, seed: int) -> tuple[str, str]:
    """The script of a failing seed, shrunk, and the difference that is left."""
    module, base, lib = court.load()
    program = module.generate(seed, base)
    try:
        with time_limit(4 * SECONDS):
            program = module.shrink(program, base, lib, court.ignore)
    except Hang:
        pass
    left = verdict_on(court, program).difference
    note = "" if left else " (fails only after other programs ran in the same process)"
    return (program if left else module.generate(seed, base)).script(note), str(left)


def batches(seeds: range, size: int) -> Iterator[range]:
    for start in range(seeds.start, seeds.stop, size):
        yield range(start, min(start + size, seeds.stop))


def judge_all(court: Court, seeds: range, jobs: int, size: int) -> Tally:
    """Judges every seed in `jobs` worker processes; a batch that kills its worker is run again seed by seed."""
    total = Tally()
    context = multiprocessing.get_context("spawn")
    waiting: list[range] = list(reversed(list(batches(seeds, size))))
    began = told = time.monotonic()
    while waiting:
        # A few batches per worker: JAX's caches grow with every program and are let go with the process. Not by `max_tasks_per_child`, with
        # which an executor of Python 3.11 may wait for ever.
        left = 10 * jobs
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            running: dict[Future[Tally], range] = {}
            try:
                while (waiting and left) or running:
                    while waiting and left and len(running) < jobs:
                        batch = waiting.pop()
                        left -= 1
                        running[pool.submit(judge_seeds, court, batch)] = batch
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        found = future.result()
                        total.add(found)
                        for seed, difference in found.failures:
                            print(f"  seed {seed}: {difference}", file=sys.stderr, flush=True)
                        del running[future]
                    if time.monotonic() - told > 30:
                        told = time.monotonic()
                        rate = total.programs / (told - began)
                        print(
                            f"  {total.programs} programs, {len(total.failures)} differ, {rate:.1f}/s",
                            file=sys.stderr,
                            flush=True,
                        )
            except BrokenProcessPool:
                for batch in running.values():
                    if len(batch) == 1:
                        died = Difference(0, "(crash)", "(program)", "process", "alive", "killed its process")
                        total.add(Tally(programs=1, failures=[(batch.start, died)]))
                    else:
                        waiting += reversed(list(batches(batch, max(1, len(batch) // 8))))
    return total


def report(total: Tally, show: int, court: Court) -> None:
    """Prints totals, the wording statistic, the histogram and the first failures, shrunk."""
    print(f"{total.programs} programs, {total.steps} steps, {len(total.failures)} programs differ")
    if total.errors:
        share = total.same_words / total.errors
        print(f"errors raised by both: {total.errors}, worded alike: {total.same_words} ({share:.1%})")
        for (ours, theirs), count in total.words.most_common(show):
            print(f"  {count:5} expected: {ours}\n        got:      {theirs}")
    histogram = Counter((d.kind, d.aspect) for _, d in total.failures)
    for (kind, aspect), count in histogram.most_common():
        print(f"  {count:5}  {kind}: {aspect}")
    shown: set[tuple[str, str]] = set()
    for seed, difference in sorted(total.failures, key=lambda failure: failure[0]):
        if len(shown) >= show:
            break
        if (difference.kind, difference.aspect) in shown:
            continue
        shown.add((difference.kind, difference.aspect))
        if difference.kind == "(crash)":
            print(f"\n# seed {seed} kills its process")
            continue
        script, left = shrunk(court, seed)
        print(f"\n{script}\n# {left}")


def main(judge: str, description: str, programs: int, argv: Sequence[str] | None = None) -> int:
    """Runs a judge from the command line; the exit code is 1 when any program differs."""
    parser = argparse.ArgumentParser(prog=f"python -m {judge}", description=description)
    parser.add_argument("--programs", type=int, default=programs)
    parser.add_argument(
        "--seed", type=int, default=0, help="the first seed; programs take the following ones"
    )
    parser.add_argument("--jobs", type=int, default=max(1, min(4, os.cpu_count() or 1)))
    parser.add_argument("--batch", type=int, default=25, help="programs per task of a worker")
    parser.add_argument("--show", type=int, default=10, help="how many shrunk failures to print")
    parser.add_argument("--subject", default="xtensor", help="the library under test")
    parser.add_argument("--without-torch", action="store_true", help="use the reference that needs no torch")
    parser.add_argument(
        "--ignore", action="append", default=[], help="an aspect that is not compared, e.g. stride"
    )
    parser.add_argument("--print", action="store_true", help="only print the programs")
    parser.add_argument(
        "--kinds", action="store_true", help="also print how often each kind of step was drawn"
    )
    options = parser.parse_args(argv)
    seeds = range(options.seed, options.seed + options.programs)
    if options.print:
        module = importlib.import_module(judge)
        for seed in seeds:
            print(module.generate(seed).script(), end="\n\n")
        return 0
    use_torch = not options.without_torch and importlib.util.find_spec("torch") is not None
    court = Court(judge, options.subject, use_torch, tuple(options.ignore))
    base = "torch" if use_torch else importlib.import_module(judge).FALLBACK.__name__
    print(f"{judge}: seeds {seeds.start} to {seeds.stop - 1}, {options.subject} against {base}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-xla-") as folder:
        use_cache(folder)
        began = time.monotonic()
        total = judge_all(court, seeds, options.jobs, options.batch)
        if options.kinds:
            for kind, count in total.kinds.most_common():
                print(f"  {count:6}  {kind}")
        report(total, options.show, court)
        print(f"{time.monotonic() - began:.0f} s")
    return 1 if total.failures else 0
