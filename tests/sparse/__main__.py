"""`python -m tests.sparse [NAMES]`: PyTorch's sparse samples on both libraries, and a table of what differs.

`--layouts coo,csr` and `--dtypes float32,float64` choose; `--record` writes `tests/sparse/differing.json`, the committed list of the
entries that differ, each with how many of its samples agree and the first difference.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import pathlib

from .sweep import LAYOUTS, entries, run

RECORD = pathlib.Path(__file__).parent / "differing.json"


def main(arguments: list[str] | None = None) -> int:
    """Run the samples; the exit status says whether any entry differs that is not in the list."""
    parser = argparse.ArgumentParser(prog="python -m tests.sparse", description=__doc__)
    parser.add_argument("names", nargs="*", default=["*"])
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args(arguments)
    known = json.loads(RECORD.read_text())["differing"] if RECORD.exists() else {}
    differing: dict[str, dict[str, object]] = {}
    totals: dict[str, list[int]] = {}
    fresh = []
    for layout in given.layouts.split(","):
        for name, op in entries(layout).items():
            if not any(fnmatch.fnmatch(name, pattern) for pattern in given.names):
                continue
            for dtype in given.dtypes.split(","):
                if str(dtype) not in {str(d).partition(".")[2] for d in op.dtypes}:
                    continue
                found = run(op, layout, dtype)
                total = totals.setdefault(f"{layout} {dtype}", [0, 0])
                total[0] += found.agreed
                total[1] += found.run
                if found.difference:
                    key = f"{name} {layout} {dtype}"
                    differing[key] = {"agree": found.agreed, "of": found.run, "first": found.difference}
                    print(f"{key:<48} {found.agreed:>4}/{found.run:<4} {found.difference}", flush=True)
                    if key not in known:
                        fresh.append(key)
    for key, (agreed, count) in totals.items():
        print(f"{key}: {agreed} of {count} samples agree ({agreed / max(1, count):.1%})")
    if given.record:
        totals_shown = {key: f"{a} of {n}" for key, (a, n) in totals.items()}
        RECORD.write_text(json.dumps({"agreeing": totals_shown, "differing": differing}, indent=1) + "\n")
    return 1 if fresh and not given.record else 0


if __name__ == "__main__":
    raise SystemExit(main())
