"""How many programs a training compiles: eager steps of the models of `steps.py`, in fresh processes with a compile cache of their own.

    python benchmarks/programs.py
    python benchmarks/programs.py mlp gpt-small --json programs.json

first: what a first run compiles in ten steps, gradients' plan included. settled: how many of them in the last four steps, where all
shapes have come before. second: what a second process compiles, which finds the first one's in the cache. XLA compiles one
for the whole step written by hand under `jax.jit`, and PyTorch none.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

from steps import CASES

STEPS, SETTLED = 10, 6


def count(name: str) -> list[int]:
    """Programs compiled in this process after each of some steps of a model."""
    import steps

    import xtensor
    from xtensor.plans.plans import executor

    xtensor.manual_seed(0)
    step, _ = steps.eager(xtensor, CASES[name], None)
    found = []
    for _ in range(STEPS):
        step().item()
        executor.wait()
        found.append(xtensor.compile_cache.stats()["misses"])
    return found


def run(name: str, cache: str) -> list[int]:
    """`count` in a process of its own, with its compile cache in this folder."""
    command = [sys.executable, "-W", "ignore", __file__, name, "--child"]
    environment = {**os.environ, "XTENSOR_COMPILE_CACHE": cache}
    process = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(process.stdout)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="parts of case names; every case without any")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(argv)
    if options.child:
        print(json.dumps(count(options.cases[0])))
        return 0
    figures: dict[str, dict[str, int]] = {}
    print(f"{'case':<20}{'first':>8}{'settled':>9}{'second':>8}")
    for name in CASES:
        if options.cases and not any(part in name for part in options.cases):
            continue
        with tempfile.TemporaryDirectory() as cache:
            first, second = run(name, cache), run(name, cache)
        found = figures[name] = {
            "first": first[-1],
            "settled": first[-1] - first[SETTLED - 1],
            "second": second[-1],
        }
        print(f"{name:<20}{found['first']:>8}{found['settled']:>9}{found['second']:>8}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
