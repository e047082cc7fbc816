"""The command: see the package's docstring."""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import importlib
import json
import platform
import sys
from typing import Any

from tests.table import ROWS

from . import __doc__ as about
from .processes import Wanted, differences, environments

CHUNK = 24
"""Rows of a process: it holds what it compiled."""


def table(found: list[dict[str, Any]]) -> list[str]:
    """A line per environment, then one per row that differs by more than rounding."""
    lines = [f"{'flags':40} {'rows':>5} {'calls':>6} {'equal':>6} {'largest':>9} {'wrong':>6}"]
    for name in dict.fromkeys(told["flags"] for told in found):
        rows = [told for told in found if told["flags"] == name]
        errors = [told.get("error", 0.0) for told in rows]
        lines.append(
            f"{name:40} {sum(t['calls'] > 0 for t in rows):5} {sum(t['calls'] for t in rows):6} "
            f"{sum(e == 0 for e in errors):6} {max(errors, default=0.0):9.3g} {sum(e > 1 for e in errors):6}"
        )
    none = [t["row"] for t in found if t["flags"] == "none" and not t["calls"]]
    if none:
        lines.append(f"no enlarged call of {len(none)} rows: {', '.join(none)}")
    wrong = [t for t in found if t.get("error", 0.0) > 1]
    return lines + [
        f"{t['flags']}: {t['row']}: {t['error']:.3g} times what is allowed; {t['what']}" for t in wrong
    ]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.flags", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("patterns", nargs="*", default=["*"], help="rows of the table; all without any")
    parser.add_argument(
        "--flag", action="append", default=[], metavar="NAME=VALUE", help="on trial, instead of ours"
    )
    parser.add_argument(
        "--together", action="store_true", help="all of our flags at once, and none of them alone"
    )
    parser.add_argument(
        "--parity", action="store_true", help="PyTorch's samples, enlarged, instead of the table's"
    )
    parser.add_argument("--dtypes", default="float32,float64", help="float32 stands for the row's main dtype")
    parser.add_argument("--calls", type=int, default=2, help="enlarged calls of a row in each dtype")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--json", help="write what was found to this file")
    options = parser.parse_args(argv)
    every = (
        importlib.import_module(".entries", __package__).names() if options.parity else [r.name for r in ROWS]
    )
    names = [n for n in every if any(fnmatch.fnmatch(n, p) for p in options.patterns)]
    settings = environments(options.flag)
    if options.together:
        settings = {name: settings[name] for name in list(settings)[:1]}
    wanted = Wanted(
        options.dtypes.split(","), options.calls, settings, "entries" if options.parity else "worker"
    )
    chunks = [names[i : i + CHUNK] for i in range(0, len(names), CHUNK)]
    found: list[dict[str, Any]] = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for i, told in enumerate(pool.map(lambda chunk: list(differences(chunk, wanted)), chunks), 1):
            found += told
            print(f"{i} of {len(chunks)}: {told[-1]['row']}", file=sys.stderr, flush=True)
            if options.json:
                with open(options.json, "w") as file:
                    json.dump({"machine": platform.processor(), "rows": found}, file, indent=1)
    print("\n".join(table(found)))
    return int(any(told.get("error", 0.0) > 1 for told in found) or not any(t["calls"] for t in found))


if __name__ == "__main__":
    sys.exit(main())
