"""Every operator of the table on a mesh of eight simulated devices against one device; see `python -m tests.distributed --help`."""

from __future__ import annotations

import os

os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import argparse
import fnmatch
import sys

from tests.table import ROWS
from xtensor.distributed.device_mesh import init_device_mesh

from .judge import KNOWN, clear, differences


def main(argv: list[str] | None = None) -> int:
    """Run it; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.distributed", description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"], help="rows of the table; all without any")
    parser.add_argument("--samples", type=int, default=1, help="samples of each row")
    parser.add_argument("--part", default="1/1", help="the second of three parts of the rows: 2/3")
    options = parser.parse_args(argv)
    part, parts = map(int, options.part.split("/"))
    rows = [r for r in ROWS if any(fnmatch.fnmatch(r.name, p) for p in options.patterns)][part - 1 :: parts]
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("a", "b"))
    wrong = 0
    for i, row in enumerate(rows):
        for text in differences(row, mesh, options.samples):
            wrong += row.name not in KNOWN
            print(f"known: {KNOWN[row.name]}: {row.name}" if row.name in KNOWN else text, flush=True)
        if i % 40 == 39:
            clear()
            print(f"{i + 1} of {len(rows)}", file=sys.stderr, flush=True)
    print(f"{len(rows)} rows, {wrong} calls differ that are not known to")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
