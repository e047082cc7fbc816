"""The command: see the package's docstring."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import sys
import time

from . import __doc__ as about
from . import report
from .entries import DTYPES, dtypes_of, entries, left_out, select
from .worker import ROOT, Job, Verdict, run_jobs

FACETS = ("forward", "gradient", "inplace", "out", "method", "errors", "gradgrad")
DTYPED = FACETS[:5]


def jobs_for(
    names: list[str], dtypes: list[str], facets: list[str], every: bool, large: bool = False
) -> list[Job]:
    """The runs wanted: per dtype, and the two facets that have no dtype to choose."""
    jobs = []
    for name in names:
        entry = entries()[name]
        has = dtypes_of(entry)
        if left_out(name) or not has:
            continue
        for dtype in dtypes:
            wanted = tuple(f for f in facets if f in DTYPED)
            if dtype in has and wanted:
                jobs.append(Job(name, dtype, wanted, every, large))
        if "errors" in facets:
            jobs.append(Job(name, has[0], ("errors",), every))
        if "gradgrad" in facets:
            double = next((d for d in ("float64", "complex128", "float32") if d in has), None)
            if double:
                jobs.append(Job(name, double, ("gradgrad",), every))
    return jobs


def settings(quick: bool = False) -> None:
    """JAX's settings for the workers, as the tests have them: compiled programs are kept between runs.

    quick: the programs are the same, but XLA's CPU backend makes code of them without optimizing it.
    """
    if quick:
        flags = (
            os.environ.get("XLA_FLAGS", ""),
            "--xla_backend_optimization_level=0",
            "--xla_cpu_use_fusion_emitters=false",
        )
        os.environ["XLA_FLAGS"] = " ".join(flags).strip()
    place = ROOT / ".cache" / f"jax-{importlib.metadata.version('jaxlib')}-{platform.node() or 'local'}"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(place))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def save(path: pathlib.Path, verdicts: list[Verdict]) -> None:
    """Write the verdicts; a reader never sees half a file."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(report.as_json(verdicts)) + "\n", "utf-8")
    part.replace(path)


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; 1 where a pair of the committed list no longer agrees."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.parity", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="entries or operators; a * stands for anything")
    parser.add_argument("--dtypes", default="float32", help="comma-separated, or 'all'")
    parser.add_argument("--facets", default=",".join(FACETS), help="comma-separated")
    parser.add_argument("--all", action="store_true", help="every sample")
    parser.add_argument(
        "--large", action="store_true", help="samples of 4,096 elements and more: values and gradients"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument(
        "--timeout", type=float, default=120, help="seconds per entry and facet (default: 120)"
    )
    parser.add_argument("--json", type=pathlib.Path, help="write every verdict here, also while running")
    parser.add_argument("--resume", action="store_true", help="keep what --json's file holds, run the rest")
    parser.add_argument("--record", action="store_true", help="write agreeing.json from a run of every entry")
    parser.add_argument(
        "--quick", action="store_true", help="code that is not optimized: a third of the time"
    )
    parser.add_argument("--quiet", action="store_true", help="no line per difference")
    options = parser.parse_args(arguments)

    dtypes = list(DTYPES) if options.dtypes == "all" else options.dtypes.split(",")
    facets = ["forward", "gradient"] if options.large else options.facets.split(",")
    if options.record and (options.names or set(facets) != set(FACETS)):
        parser.error("--record is for all entries and all facets")
    for given, known in ((dtypes, DTYPES), (facets, FACETS)):
        if unknown := set(given) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    names = select(options.names)
    if not names:
        parser.error("no entry has such a name")
    settings(options.quick)
    jobs = jobs_for(names, dtypes, facets, options.all, options.large)
    verdicts: list[Verdict] = []
    if options.resume and options.json and options.json.exists():
        held = [Verdict(**v) for v in json.loads(options.json.read_text("utf-8"))["verdicts"]]
        known = {(v.name, v.dtype, v.facet) for v in held}
        jobs = [job for job in jobs if any((job.name, job.dtype, f) not in known for f in job.facets)]
        again = {(job.name, job.dtype, f) for job in jobs for f in job.facets}
        verdicts += [v for v in held if (v.name, v.dtype, v.facet) not in again]
    started = saved = time.monotonic()

    def tell(verdict: Verdict) -> None:
        nonlocal saved
        verdicts.append(verdict)
        if verdict.status == "differ" and not options.quiet:
            print(f"{verdict.name} {verdict.dtype} {verdict.facet}: {verdict.detail}", flush=True)
        if options.json and time.monotonic() - saved > 30:
            saved = time.monotonic()
            save(options.json, verdicts)

    run_jobs(jobs, options.jobs, options.timeout, tell)
    print()
    print(report.tables(verdicts, names))
    print(f"{len(jobs)} runs in {time.monotonic() - started:.0f} s")
    if options.json:
        save(options.json, verdicts)
    if options.record:
        report.record(verdicts)
    lost = report.regressions(verdicts)
    for line in lost:
        print(f"no longer agrees: {line}")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
