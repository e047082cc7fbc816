"""No program but its own is ever found: the operator table's calls from a full cache, each compiled again beside what was found.

    python -m tests.programs.check
    python -m tests.programs.check softmax conv2d --dtypes float32,bfloat16

One process runs the calls of all rows (those named), forward, in place and backward, into an empty cache; a second one runs them again,
and compiles every program that it finds there once more: JAX's key of it, which is a digest of the whole lowered program and XLA's
options, must be the one that it was kept with. Ends with 1 where one differs, or where nothing was found.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from typing import Any

import xtensor
from tests.table import ROWS, Row
from tests.table.bridge import OURS, flat, operator_named
from tests.table.facets import cotangents
from xtensor import compile_cache
from xtensor.plans.plans import executor
from xtensor.tensor import Tensor
from xtensor.xla import sizes
from xtensor.xla.store import checker

CALLS = 3
"""Samples of a row."""


def run(row: Row, dtype: str, number: int) -> None:
    """One sample of a row with its gradients."""
    sample, key = row.samples[number], f"{row.name}/programs"
    xtensor.manual_seed(0)
    args, kwargs, leaves = OURS.arguments(sample, key, dtype, grad=row.grad and not row.empty)
    found = flat(operator_named(row.name)(*args, **kwargs))
    asking = [r for r in found if isinstance(r, Tensor) and r.requires_grad]
    if leaves and asking:
        OURS.grad(asking, leaves, cotangents(OURS, asking, key), False)


def child(rows: Sequence[str], dtypes: Sequence[str]) -> dict[str, Any]:
    """All calls in this process."""
    warnings.simplefilter("ignore")
    sizes.enable(False)  # a program for several sizes would answer in place of many
    for row in ROWS:
        if rows and row.name not in rows:
            continue
        for dtype in dtypes:
            for number in range(min(len(row.samples), CALLS)):
                try:
                    run(row, dtype, number)
                except Exception:  # what the row's operator refuses
                    continue
    executor.wait()
    return {"compared": checker.compared, "different": checker.different, **compile_cache.stats()}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", help="names of rows; all without any")
    parser.add_argument("--dtypes", default="float32,int64")
    parser.add_argument("--child", choices=["fill", "check"], help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        checker.enabled = options.child == "check"
        print(json.dumps(child(options.rows, options.dtypes.split(","))))
        return 0
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for part in ("fill", "check"):
            command = [
                sys.executable,
                "-m",
                "tests.programs.check",
                *options.rows,
                "--dtypes",
                options.dtypes,
            ]
            done = subprocess.run(
                [*command, "--child", part],
                env=environment | {"XTENSOR_COMPILE_CACHE": folder},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            found.append(json.loads(done.stdout.splitlines()[-1]))
    filled, checked = found
    print(
        f"compiled {filled['misses']:.0f} programs; found again and compared {checked['compared']}", end="; "
    )
    print(f"compiled anew {checked['misses']:.0f}; different {len(checked['different'])}")
    for name in checked["different"]:
        print("  ", name)
    return 1 if checked["different"] or not checked["compared"] else 0


if __name__ == "__main__":
    sys.exit(main())
