"""The command: see the package's docstring."""

from __future__ import annotations

import argparse
import fnmatch
import json
import pathlib
import sys
from typing import Any

import xtensor
from tests.table import ROWS

from . import __doc__ as about
from .sweep import differences

LISTED = pathlib.Path(__file__).with_name("listed.json")
CLEARED = 40
"""Rows after which compiled programs are let go."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.transforms",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("patterns", nargs="*", default=["*"], help="rows of the table; all without any")
    parser.add_argument("--samples", type=int, default=1, help="samples of each row")
    parser.add_argument("--part", default="1/1", help="the second of three parts of the rows: 2/3")
    parser.add_argument(
        "--record", action="store_true", help="write what differs to listed.json, with known reasons"
    )
    options = parser.parse_args(argv)
    listed: dict[str, dict[str, str]] = json.loads(LISTED.read_text()) if LISTED.exists() else {}
    part, parts = map(int, options.part.split("/"))
    rows = [r for r in ROWS if any(fnmatch.fnmatch(r.name, p) for p in options.patterns)][part - 1 :: parts]
    wrong: dict[str, dict[str, str]] = {}
    new = 0
    for i, row in enumerate(rows):
        found = dict(differences(row, options.samples))
        for name, text in found.items():
            reason = listed.get(row.name, {}).get(name)
            new += reason is None
            wrong.setdefault(row.name, {})[name] = reason or text
            if reason is None:
                print(f"{row.name}: {name}: {text}", flush=True)
        if i % CLEARED == CLEARED - 1:
            xtensor.clear_caches() if hasattr(xtensor, "clear_caches") else None
            print(f"{i + 1} of {len(rows)}", file=sys.stderr, flush=True)
    print(
        f"{len(rows)} rows, {sum(map(len, wrong.values()))} checks of {len(wrong)} rows differ, {new} of them not listed"
    )
    if options.record:
        kept: dict[str, Any] = {
            name: checks for name, checks in listed.items() if name not in {r.name for r in rows}
        }
        LISTED.write_text(json.dumps(dict(sorted((kept | wrong).items())), indent=1) + "\n")
    return int(new > 0)


if __name__ == "__main__":
    sys.exit(main())
