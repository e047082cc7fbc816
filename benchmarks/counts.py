"""What training steps do, counted: programs, launches, copies, reads, buffers and bytes. Counts tell a change from noise, which times do not.

    python -m benchmarks.counts                 every case, in two minutes; prints the counts
    python -m benchmarks.counts mlp cnn         some
    python -m benchmarks.counts --check         compare them with the table that is kept (counts.json): ends with 1 where one is worse
    python -m benchmarks.counts --write         keep them

programs: what ten steps compile, from an empty cache. settled: how many of them in the last four. launches: programs run by one step
that came before, told by XLA's own trace. copies: launches that only read a view, and arrays that came from the host.
reads: values that the host asked for. kept: parameters and states whose memory a step left where it was, and moved: those it did not.
bytes held: arrays after a step; bytes at most: between two operators of a step (node by node, as a record of memory runs it).
Bytes may differ by a hundredth. What a step is, `steps.py` says; the loss is read once.
"""

from __future__ import annotations

import argparse
import collections
import glob
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

TABLE = HERE / "counts.json"
CASES = (
    "mlp-32x64-sgd",
    "mlp-32x64-adam",
    "mlp-128x256-adam",
    "cnn",
    "depthwise-cnn",
    "lstm-loop",
    "gpt-small",
)
STEPS, SETTLED = 10, 6
LAUNCH = "ExecuteHelperOnSingleDevice"
SENT = "DevicePutWithSharding"
READING = "PjitFunction(_read_body)"
HOST = {"item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__"}
SLACK = {"bytes held": 0.01, "bytes at most": 0.01}
"""By how much a count may differ; others not at all."""
BETTER_HIGH = {"kept"}

Counts = dict[str, Any]


def traced(run: Callable[[], Any]) -> collections.Counter[str]:
    """How often each event comes in XLA's trace of a run."""
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder, profiler_options=options)
        try:
            run()
        finally:
            jax.profiler.stop_trace()
        [path] = glob.glob(os.path.join(folder, "**", "*.trace.json.gz"), recursive=True)
        with gzip.open(path, "rt", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    return collections.Counter(event.get("name", "") for event in events)


def launches_and_copies(events: collections.Counter[str]) -> tuple[int, int]:
    """Of a trace; RuntimeError where this jaxlib names its events otherwise."""
    launches = sum(count for name, count in events.items() if name.endswith(LAUNCH))
    if not launches:
        raise RuntimeError(
            f"this jaxlib's trace has no event {LAUNCH}: benchmarks/counts.py must learn its name"
        )
    # A call of a jitted function is two events, one within the other.
    return launches, events[READING] // 2 + events[SENT]


def memory_places(tensors: list[Any]) -> list[int]:
    """Where the buffers lie. Old and new ones are there together, so that only what is reused keeps its place."""
    return [tensor._xt_storage.array.unsafe_buffer_pointer() for tensor in tensors]


def count(name: str) -> Counts:
    """The counts of one case, in this process."""
    import steps

    import xtensor
    from xtensor.plans.plans import executor

    before = xtensor.memory_snapshot().nbytes
    xtensor.manual_seed(0)
    # The optimizer, whose states are looked at, is found where `eager` makes it.
    made: list[Any] = []
    kind = steps.CASES[name].optimizer
    plain = getattr(xtensor.optim, kind)
    setattr(xtensor.optim, kind, lambda *a, **k: made.append(plain(*a, **k)) or made[-1])
    try:
        step, model = steps.eager(xtensor, steps.CASES[name], None)
    finally:
        setattr(xtensor.optim, kind, plain)
    misses = []
    for _ in range(STEPS):
        step().item()
        executor.wait()
        misses.append(int(xtensor.compile_cache.stats()["misses"]))
    launches, copies = launches_and_copies(traced(lambda: step().item()))
    with xtensor.autograd.profiler.profile() as profile:
        step().item()
    reads = sum(row.count for row in profile.key_averages() if row.key in HOST)
    tensors = list(model.parameters())
    tensors += [
        t for state in made[0].state.values() for key, t in state.items() if key != "step" and t is not None
    ]
    old = memory_places(tensors)
    step().item()
    kept = sum(a == b for a, b in zip(old, memory_places(tensors), strict=True))
    held = xtensor.memory_snapshot().nbytes - before
    with xtensor.record_memory() as record:
        step().item()
    return {
        "programs": misses[-1],
        "settled": misses[-1] - misses[SETTLED - 1],
        "launches": launches,
        "copies": copies,
        "reads": reads,
        "kept": kept,
        "moved": len(tensors) - kept,
        "bytes held": held,
        "bytes at most": record.peak.nbytes - before,
    }


def apart(name: str) -> Counts:
    """`count` in a process of its own, with an empty compile cache."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-W", "ignore", str(HERE / "counts.py"), name, "--child"]
        environment = {**os.environ, "XTENSOR_COMPILE_CACHE": cache}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])


def changes(kept: dict[str, Counts], found: dict[str, Counts]) -> tuple[list[str], list[str]]:
    """What is worse than in the table, and what is better; a case that the table has not is worse."""
    worse: list[str] = []
    better: list[str] = []
    for name, counts in found.items():
        if name not in kept:
            worse.append(f"{name} is not in the table")
            continue
        for what, number in counts.items():
            was = kept[name].get(what)
            if was is None or abs(number - was) > was * SLACK.get(what, 0):
                up = was is None or number > was
                (better if up == (what in BETTER_HIGH) else worse).append(f"{name}: {what} {was} -> {number}")
    return worse, better


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="parts of case names; every case without any")
    parser.add_argument(
        "--check", action="store_true", help="compare with the table, and fail where one is worse"
    )
    parser.add_argument("--write", action="store_true", help="keep the counts in the table")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        print(json.dumps(count(options.cases[0])))
        return 0
    found: dict[str, Counts] = {}
    for name in CASES:
        if options.cases and not any(part in name for part in options.cases):
            continue
        found[name] = apart(name)
        if len(found) == 1:
            print(f"{'case':<20}" + "".join(f"{what:>14}" for what in found[name]))
        print(f"{name:<20}" + "".join(f"{number:>14}" for number in found[name].values()), flush=True)
    kept: dict[str, Counts] = json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {}
    if options.write:
        TABLE.write_text(json.dumps(kept | found, indent=1) + "\n", "utf-8")
        return 0
    worse, better = changes(kept, found)
    for line in worse:
        print(f"worse   {line}")
    for line in better:
        print(f"better  {line}  (keep it: --write)")
    return 1 if options.check and worse else 0


if __name__ == "__main__":
    sys.exit(main())
