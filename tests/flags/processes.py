"""The processes of a comparison: which flags each has, and the rows of each."""

from __future__ import annotations

import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from xtensor.xla import host

__all__ = ["Wanted", "differences", "environments"]

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WITHOUT = {"XTENSOR_TUNE_HOST": "0"}


class Wanted(NamedTuple):
    """What to compare: dtypes by name, how many calls of a row in each, the environments of the processes with flags."""

    dtypes: Sequence[str]
    calls: int
    environments: dict[str, dict[str, str]]
    source: str = "worker"
    """What the rows are, by the module that runs them: `worker` has those of the table, `entries` PyTorch's."""


def environments(trials: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Of the processes with flags, by name: all of ours and each alone, or those on trial (`name=value`) alone."""
    if trials:
        return {flag: alone(flag) for flag in trials}
    found = {"all flags": {"XTENSOR_TUNE_HOST": "1"}}
    return found | {name: alone(f"{name}={value}") for name, value in host.FLAGS.items()}


def alone(flag: str) -> dict[str, str]:
    return WITHOUT | {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --{flag}".strip()}


def differences(rows: Sequence[str], wanted: Wanted) -> Iterator[dict[str, Any]]:
    """For every row and environment: calls, error (in units of what is allowed; 1 is the most) and what differs where."""
    folder = tempfile.mkdtemp(prefix="xtensor-flags-")
    try:
        found = list(lines(folder, "write", rows, wanted, WITHOUT))
        yield from ({**told, "flags": "none"} for told in found)
        ready = [told["row"] for told in found if told["calls"]]
        for name, environment in wanted.environments.items():
            yield from (
                {**told, "flags": name} for told in lines(folder, "compare", ready, wanted, environment)
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lines(
    folder: str, task: str, rows: Sequence[str], wanted: Wanted, environment: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """What the workers tell of each row; of one that ends its worker that, and another goes on behind it."""
    left = list(rows)
    given = {k: v for k, v in os.environ.items() if k not in ("XTENSOR_TUNE_HOST", "XTENSOR_DEVICE")}
    options = [folder, task, ",".join(wanted.dtypes), str(wanted.calls)]
    while left:
        done = subprocess.run(
            [sys.executable, "-m", f"tests.flags.{wanted.source}", *options, *left],
            cwd=ROOT,
            env=given | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        for line in done.stdout.splitlines():
            told = json.loads(line)
            left.remove(told["row"])
            yield told
        if left:
            last = (done.stderr.strip().splitlines() or [""])[-1]
            why = f"the process ended with {done.returncode}: {last}"
            yield {"row": left.pop(0), "calls": 0, "error": math.inf, "what": why}
