"""Whether code that is compiled sooner has the bits of the other (`xtensor/xla/quick.py`): every program, run both ways at its first call.

    python -m tests.programs.quick                      # the table of all operators, and their derivatives
    python -m tests.programs.quick softmax 'conv*' --dtypes float32,bfloat16

The calls are those of the table, its tensors as they are and enlarged to 4,096 elements and more (`tests/flags/enlarge.py`). All is compiled
twice, so nothing is kept on disk. It prints the programs whose results differ, and ends with 1 where there are some.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

os.environ["XTENSOR_COMPILE_CACHE"] = "off"
os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)

import jax
import numpy as np

from tests.flags.worker import BYTES, chosen, resource
from tests.programs.check import CALLS, run
from tests.table import ROWS
from xtensor.plans.plans import executor
from xtensor.xla import quick, sizes, store

LARGER = 2
"""Enlarged calls of a row."""


class Compared:
    """The programs that were run both ways, by name, and those of them that differ."""

    def __init__(self) -> None:
        self.same: collections.Counter[str] = collections.Counter()
        self.different: list[str] = []
        plain = store.Program._compiled

        def compiled(program: Any, name: Any, form: Any, args: Any, once_more: bool = False) -> Any:
            entry = plain(program, None, form, args, once_more)
            if entry is not None and entry.quick:
                self.watch(program, form, entry, plain(program, None, form, args, True))
            return entry

        store.Program._compiled = compiled  # type: ignore[method-assign]
        # Large ones too, for which a folder is needed otherwise.
        store.quickly = lambda jaxpr, again: quick.quickly(jaxpr, True)

    def watch(self, program: Any, form: Any, entry: Any, other: Any) -> None:
        """Run the other executable too when the one is run."""
        plain, name = entry.run, program.jitted.__name__

        def both(leaves: list[Any]) -> Any:
            expected = other.run([copied(leaf) for leaf in leaves])
            found = plain(leaves)
            if all(map(same, expected, found)):
                self.same[name] += 1
            else:
                self.different.append(f"{name}{form.leaves}")
                print("different:", self.different[-1], flush=True)
            return found

        entry.run = both


def copied(leaf: Any) -> Any:
    """An argument that may be given up."""
    return jax.device_put(leaf, leaf.sharding, may_alias=False) if isinstance(leaf, jax.Array) else leaf


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have the same bits, but for what a NaN carries."""
    x, y = np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1)
    if x.tobytes() == y.tobytes():
        return True
    if x.dtype.kind == "c":
        x, y = x.view(x.real.dtype), y.view(y.real.dtype)
    words = f"u{x.dtype.itemsize}"
    return bool(np.all((x.view(words) == y.view(words)) | ((x != x) & (y != y))))


def main(argv: Sequence[str] | None = None) -> int:
    """Call all rows, or those that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", help="names of rows, with wildcards; all without any")
    parser.add_argument("--dtypes", default="float32,bfloat16,float64,complex64,int64")
    parser.add_argument("--behind", help="begin behind this row")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    sizes.enable(False)  # a program for several sizes would answer in place of many
    compared = Compared()
    names = [row.name for row in ROWS]
    rows = ROWS[names.index(options.behind) + 1 :] if options.behind else ROWS
    for row in rows:
        if options.rows and not any(fnmatch.fnmatch(row.name, name) for name in options.rows):
            continue
        print(row.name, end="\r", file=sys.stderr)
        for dtype in options.dtypes.split(","):
            with contextlib.suppress(Exception):  # what the row's operator refuses
                for number in range(min(len(row.samples), CALLS)):
                    run(row, dtype, number)
            with contextlib.suppress(Exception):
                for _ in chosen(row, dtype, LARGER):
                    pass
    executor.wait()
    print(
        f"{sum(compared.same.values())} programs of {len(compared.same)} names have the same bits either way"
    )
    print(f"different: {len(compared.different)}")
    return 1 if compared.different or not compared.same else 0


if __name__ == "__main__":
    sys.exit(main())
