"""The operator table through ONNX and onnxruntime: `python -m tests.export.onnx_table [NAME ...] [--record]`.

Every row's samples are exported, run by onnxruntime and compared with eager code, to 1e-5 relative. `onnx_table.json` is the committed list of
rows that agree, and of those that do not with their reason; what does not agree and is not listed fails the command. The tests run some
of the first.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

import xtensor
from tests.table import ROWS
from tests.table.bridge import OURS, operator_named
from xtensor.export.onnx.model import translate
from xtensor.xla.cache import clear_all

LIST = Path(__file__).with_name("onnx_table.json")


class Call(xtensor.nn.Module):
    """A function with its arguments, whose tensors are inputs."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def is_tensor(value: Any) -> bool:
    return isinstance(value, xtensor.Tensor)


def tensors(value: Any) -> list[Any]:
    return [leaf for leaf in jax.tree.leaves(value, is_leaf=is_tensor) if is_tensor(leaf)]


def judge(row: Any) -> str:
    """ "agrees", or why not."""
    warnings.simplefilter("ignore")
    function = operator_named(row.name)
    tried = 0
    for number, sample in enumerate(row.samples):
        args, kwargs, _ = OURS.arguments(sample, f"{row.name} {number}", row.dtype)
        try:
            expected = function(*args, **kwargs)
        except Exception:
            continue
        if not tensors((args, kwargs)) or not tensors(expected):
            continue
        args, kwargs, _ = OURS.arguments(sample, f"{row.name} {number}", row.dtype)
        reason = compared(row, function, tuple(args), kwargs, tensors(expected))
        if reason:
            return f"{reason} (sample {number})"
        tried += 1
    return "agrees" if tried else "no tensors"


def compared(row: Any, function: Any, args: Any, kwargs: Any, expected: list[Any]) -> str:
    try:
        program = xtensor.export.export(Call(function), args, kwargs)
    except Exception as error:
        return f"export: {short(error)}"
    try:
        made = translate(program)
    except Exception as error:
        return short(error)
    try:
        found = made(*args, **kwargs)
    except Exception as error:
        return f"onnxruntime: {short(error)}"
    for a, b in zip(expected, found, strict=True):
        if a.dtype is not b.dtype or a.shape != b.shape:
            return f"gives {b.dtype} {list(b.shape)} instead of {a.dtype} {list(a.shape)}"
        if row.random or row.empty:
            continue
        one, two = a.detach().resolve_conj().resolve_neg().numpy(), b.numpy()
        tolerance = 1e-5 * max(row.tolerance, 1)
        kind = np.complex128 if one.dtype.kind == "c" else np.float64
        one, two = one.astype(kind), two.astype(kind)
        if not np.allclose(one, two, tolerance, tolerance, equal_nan=True):
            return f"differs by {np.nanmax(np.abs(one - two)):.1e}"
    return ""


def short(error: Exception) -> str:
    """What is wrong, without lines of files."""
    text = str(error).partition("\n")[0].partition(" (/")[0]
    return f"{type(error).__name__}: {text}"[:150]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.export.onnx_table")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    found: dict[str, str] = {}
    for number, row in enumerate(ROWS):
        if options.names and row.name not in options.names:
            continue
        found[row.name] = outcome = judge(row)
        if outcome not in ("agrees", "no tensors"):
            print(f"{row.name}: {outcome}", flush=True)
        if number % 50 == 49:
            clear_all()
            jax.clear_caches()
            gc.collect()
    agree = [name for name, outcome in found.items() if outcome == "agrees"]
    apart = {name: outcome for name, outcome in found.items() if outcome not in ("agrees", "no tensors")}
    print(f"{len(agree)} of {len(agree) + len(apart)} rows agree")
    if options.record:
        LIST.write_text(
            json.dumps({"agree": sorted(agree), "reasons": apart}, indent=1, sort_keys=True) + "\n", "utf-8"
        )
        return 0
    listed = json.loads(LIST.read_text("utf-8"))["reasons"] if LIST.exists() else {}
    for name in (unlisted := sorted(set(apart) - set(listed))):
        print(f"not listed: {name}: {apart[name]}")
    return int(bool(unlisted))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
