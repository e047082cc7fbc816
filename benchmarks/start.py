"""How long people wait: whole processes of unmodified PyTorch programs, xtensor against PyTorch, from an empty and from a full cache.

    python benchmarks/start.py                              all: an hour on two cores
    python benchmarks/start.py --only first lengths own     some of: first, lengths, own, public
    python benchmarks/start.py --scripts gpt 'cifar *'      some scripts, by name or kind
    python benchmarks/start.py --clones FOLDER              public scripts from git clones there (owner/name) instead of from GitHub

first: a small network on handwritten digits, until its first loss is printed. lengths: what sizes that vary cost: sixty tokens from a
GPT whose context grows, an LSTM over twenty lengths. own: the programs of `tests/scripts`. public: those of `public_scripts.py`,
fetched at a commit; those that cannot be had are left out, with a message.

Each turn runs every contender once: PyTorch, xtensor with an empty compile cache (cold), and xtensor with the cache which that run
filled (warm). Figures are medians of wall-clock time over turns, of ratios within a turn; beside them stand the processors' seconds,
which say the same on a machine that has other work.
"""

from __future__ import annotations

import argparse
import atexit
import fnmatch
import importlib.util
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import public_scripts
from turns import ratio

HERE = pathlib.Path(__file__).resolve().parent
OWN = HERE.parent / "tests" / "scripts"
PARTS = ("first", "lengths", "own", "public")
COLD, WARM = 6.0, 2.5
"""At most so many times PyTorch's time, for any script."""
TOTAL_COLD, TOTAL_WARM = 2.0, 1.2
"""And for all of them together."""
LENGTHS = {"context": (6.0, 1.0), "lstm": (4.0, 1.0)}
"""Seconds that they may take, cold and warm."""
RUNNERS = {"torch": (), "cold": ("-m", "xtensor"), "warm": ("-m", "xtensor")}

PROGRAM = """
import sys
import numpy as np
from sklearn.datasets import load_digits
import {library} as lib
from {library} import nn
images, labels = load_digits(return_X_y=True)
x = lib.tensor((images[:64] / 16).astype(np.float32).reshape(-1, 1, 8, 8))
y = lib.tensor(labels[:64].astype(np.int64))
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.1),
    nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10),
)
loss = nn.functional.cross_entropy(model(x), y)
print(loss.item(), flush=True)
"""


BYTECODE = tempfile.TemporaryDirectory()
atexit.register(BYTECODE.cleanup)
ASIDE = ("JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")


def environment(cache: str, **more: str) -> dict[str, str]:
    """The user's, without a compile cache of JAX's own, and with nothing shown on a screen; Python's bytecode as if installed."""
    kept = {name: value for name, value in os.environ.items() if name not in ASIDE}
    told = {"MPLBACKEND": "Agg", "PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": BYTECODE.name}
    return kept | told | {"XTENSOR_COMPILE_CACHE": cache} | more


def compile_sources() -> None:
    """Write the bytecode that an installation would have written: of xtensor, and of what else it and PyTorch import."""
    for library in ("torch", "xtensor"):
        subprocess.run(
            [sys.executable, "-c", PROGRAM.format(library=library)], env=environment("off"), check=True
        )


# -- the first loss


def start(library: str, cache: str) -> float:
    """Seconds until a process has printed its first loss."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(library=library)],
        env=environment(cache, OMP_NUM_THREADS="2"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    took = time.perf_counter() - began
    process.communicate()
    if process.returncode or not float(line) > 0:
        raise SystemExit(f"{library} failed: {line}")
    return took


def first_loss(turns: int) -> dict[str, float]:
    """Medians of the first start, any later one, and PyTorch's."""
    found: dict[str, list[float]] = {"first": [], "later": [], "torch": []}
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as cache:
            found["first"].append(start("xtensor", cache))
            found["later"].append(start("xtensor", cache))
            found["torch"].append(start("torch", cache))
    figures = {name: statistics.median(v) for name, v in found.items()}
    for name in ("first", "later"):
        figures[f"{name} to torch"] = ratio(found, name, "torch")
    print(
        f"first start {figures['first']:.2f} s, later {figures['later']:.2f} s, PyTorch {figures['torch']:.2f} s"
    )
    print(f"later over PyTorch {figures['later to torch']:.2f} (at most 1.0)")
    return figures


# -- sizes that vary


def lengths(name: str, turns: int) -> dict[str, float]:
    """Seconds, and the processor's, that a program of `lengths/` says it took, by contender."""
    found: dict[str, list[float]] = {}
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as cache:
            for contender, runner in RUNNERS.items():
                command = [sys.executable, *runner, str(HERE / "lengths" / f"{name}.py")]
                done = subprocess.run(
                    command, env=environment(cache), capture_output=True, text=True, check=True
                )
                wall, cpu = map(float, done.stdout.split())
                found.setdefault(contender, []).append(wall)
                found.setdefault(f"{contender} cpu", []).append(cpu)
    figures = {key: statistics.median(v) for key, v in found.items()}
    print(
        f"{name:<24}"
        + "".join(f"{figures[c]:>9.2f}{figures[f'{c} cpu']:>9.2f}" for c in RUNNERS)
        + f"   (at most {LENGTHS[name][0]:.0f} s cold, {LENGTHS[name][1]:.0f} s warm)",
        flush=True,
    )
    return figures


# -- whole programs


class Job(NamedTuple):
    """A program to run: what stands behind `python`, a folder of which each run has its own copy, and where in it."""

    kind: str
    command: tuple[str, ...]
    source: pathlib.Path
    folder: str = "."
    path: tuple[str, ...] = ()
    environment: dict[str, str] = {}


def own_jobs() -> dict[str, Job]:
    """The programs of `tests/scripts`."""
    helpers = {"same", "__init__", "__main__"}
    names = sorted(path.stem for path in OWN.glob("*.py") if path.stem not in helpers)
    return {name: Job("own", (f"{name}.py",), OWN) for name in names}


def public_jobs(wanted: list[str], cache: pathlib.Path, clones: pathlib.Path | None) -> dict[str, Job]:
    """Those of the public scripts that can be had, and run, here."""
    jobs: dict[str, Job] = {}
    absent: dict[str, str] = {}
    for name, script in public_scripts.SCRIPTS.items():
        if not chosen(name, script.kind, wanted):
            continue
        missing = [package for package in script.needs if importlib.util.find_spec(package) is None]
        if missing:
            print(f"left out: {name}: {', '.join(missing)} is not installed")
            continue
        if script.repository not in absent:
            try:
                source = public_scripts.fetch(script.repository, cache, clones)
            except public_scripts.Absent as why:
                absent[script.repository] = str(why)
                print(f"left out: scripts of {script.repository}: {why}")
            else:
                more = (script.folder, script.path, script.environment)
                jobs[name] = Job(script.kind, script.command, source, *more)
    return jobs


def chosen(name: str, kind: str, wanted: list[str]) -> bool:
    return not wanted or any(fnmatch.fnmatch(name, w) or w == kind for w in wanted)


def process(job: Job, contender: str, cache: str) -> tuple[float, float]:
    """Seconds of a whole process, and the processors'; it ends the benchmark where the program fails."""
    with tempfile.TemporaryDirectory() as place:
        copy = pathlib.Path(place, "copy")
        shutil.copytree(job.source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = [str(copy / entry) for entry in job.path] + [os.environ.get("PYTHONPATH", "")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *RUNNERS[contender], *job.command],
            cwd=copy / job.folder,
            env=environment(
                cache, PYTHONPATH=os.pathsep.join(entry for entry in path if entry), **job.environment
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{contender}, status {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def whole(job: Job, turns: int) -> dict[str, Any]:
    """Medians of the seconds of all contenders, of the processors' seconds, and of the ratios to PyTorch within turns."""
    found: dict[str, list[float]] = {}
    programs = 0
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as cache:
            for contender in RUNNERS:
                wall, cpu = process(job, contender, cache)
                found.setdefault(contender, []).append(wall)
                found.setdefault(f"{contender} cpu", []).append(cpu)
            # Each is there under JAX's key, and under the signatures that led to it.
            programs = sum(not file.name.startswith("call_") for file in pathlib.Path(cache).glob("*.xla"))
    figures: dict[str, Any] = {key: statistics.median(v) for key, v in found.items()}
    for contender in ("cold", "warm"):
        figures[f"{contender} to torch"] = ratio(found, contender, "torch")
    return figures | {"kind": job.kind, "programs": programs}


HEAD = f"{'':24}{'torch s':>9}{'cpu':>9}{'cold s':>9}{'cpu':>9}{'warm s':>9}{'cpu':>9}"


def line(name: str, f: dict[str, Any]) -> str:
    shown = f"{name:<24}" + "".join(f"{f[c]:>9.2f}{f[f'{c} cpu']:>9.2f}" for c in RUNNERS)
    return f"{shown}{f['cold to torch']:>9.2f}{f['warm to torch']:>7.2f}{f['programs']:>6}"


def total(scripts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """All scripts together: the sums of their seconds, and the ratios of these."""
    keys = [key for c in RUNNERS for key in (c, f"{c} cpu")]
    sums: dict[str, Any] = {key: sum(f[key] for f in scripts.values()) for key in [*keys, "programs"]}
    for contender in ("cold", "warm"):
        sums[f"{contender} to torch"] = sums[contender] / sums["torch"]
        sums[f"{contender} to torch, cpu"] = sums[f"{contender} cpu"] / sums["torch cpu"]
    return sums


def report(scripts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The totals of the scripts, printed with the worst of them."""
    sums = total(scripts)
    print(line(f"all {len(scripts)}", sums))
    print(
        f"processors' seconds: {sums['cold to torch, cpu']:.2f} cold, {sums['warm to torch, cpu']:.2f} warm"
    )
    print(f"at most {TOTAL_COLD} cold and {TOTAL_WARM} warm in total, {COLD} and {WARM} for any")
    for contender, bound in (("cold", COLD), ("warm", WARM)):
        key = f"{contender} to torch"
        over = sorted((n for n, f in scripts.items() if f[key] > bound), key=lambda n: -scripts[n][key])
        print(f"over {bound} {contender}: {', '.join(f'{n} {scripts[n][key]:.1f}' for n in over) or 'none'}")
    return sums


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--scripts", nargs="+", default=[], metavar="NAME", help="scripts, by name or kind")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--clones", type=pathlib.Path, help="a folder of git clones, as owner/name")
    parser.add_argument(
        "--cache", type=pathlib.Path, default=HERE.parent / ".cache" / "scripts", help="where files go"
    )
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file, after each")
    parser.add_argument(
        "--resume", action="store_true", help="keep the file's figures, and add what it lacks"
    )
    options = parser.parse_args(argv)
    compile_sources()
    figures: dict[str, Any] = {}
    if options.resume and options.json and options.json.exists():
        figures = json.loads(options.json.read_text("utf-8"))

    def save() -> None:
        if options.json:
            options.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")

    if "first" in options.only and "first" not in figures:
        figures |= first_loss(options.turns)
        save()
    print(f"{HEAD}{'cold':>9}{'warm':>7}{'programs':>9}")
    if "lengths" in options.only:
        for name in LENGTHS:
            if name not in figures.setdefault("lengths", {}):
                figures["lengths"][name] = lengths(name, options.turns)
                save()
    jobs: dict[str, Job] = {}
    if "own" in options.only:
        jobs |= {n: j for n, j in own_jobs().items() if chosen(n, j.kind, options.scripts)}
    if "public" in options.only:
        jobs |= public_jobs(options.scripts, options.cache, options.clones)
    scripts, failed = figures.setdefault("scripts", {}), []
    for name, job in jobs.items():
        if name not in scripts:
            try:
                scripts[name] = whole(job, options.turns)
            except RuntimeError as error:
                failed.append(name)
                print(f"{name:<24} failed: {error}", flush=True)
                continue
            save()
        print(line(name, scripts[name]), flush=True)
    if scripts:
        figures["all scripts"] = report(scripts)
    figures["failed"] = failed
    save()
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
