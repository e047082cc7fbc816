"""The command: all entries, a row each, and the totals."""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import jax

from xtensor.operators.operator import forget_programs

from . import judge_modules, judge_optimizers


def main(arguments: list[str]) -> int:
    """Run the entries asked for; the status is 1 where less than 97 % of all cases agree."""
    parser = argparse.ArgumentParser(prog="python -m tests.modules", description=__doc__)
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="NAME", help="entries whose name contains this"
    )
    parser.add_argument(
        "--limit", type=int, default=0, metavar="N", help="at most N cases of an entry, spread evenly"
    )
    parser.add_argument("--json", metavar="FILE", help="write all outcomes to a file")
    options = parser.parse_args(arguments)
    rows: dict[str, dict[str, Any]] = {}
    for judge in (judge_modules, judge_optimizers):
        for entry, name in enumerate(judge.names()):
            if options.only and not any(part in name for part in options.only):
                continue
            rows[name] = row = run_entry(judge, entry, name, options.limit)
            print(f"{name:38}{row['agree']:5}/{row['cases']:<5}{row['seconds']:7.1f} s", flush=True)
            for title, difference in list(row["differences"].items())[:5]:
                print(f"    {title}: {difference}", flush=True)
            # Each program holds mappings of memory, of which a process may have 65,530.
            forget_programs()
            jax.clear_caches()
            gc.collect()
    cases = sum(row["cases"] for row in rows.values())
    agree = sum(row["agree"] for row in rows.values())
    whole = sum(row["cases"] == row["agree"] for row in rows.values())
    print(
        f"\nentries that agree in every case: {whole} of {len(rows)} ({100 * whole / max(len(rows), 1):.1f} %)"
    )
    print(f"cases that agree: {agree} of {cases} ({100 * agree / max(cases, 1):.1f} %)")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1), "utf-8")
    return int(agree < 0.97 * cases)


def run_entry(judge: Any, entry: int, name: str, limit: int) -> dict[str, Any]:
    """The outcomes of one entry's cases."""
    start = time.perf_counter()
    found = spread(list(judge.cases(entry, name)), limit)
    outcomes = {case.title: judge.run(case) for case in found}
    differences = {title: outcome for title, outcome in outcomes.items() if outcome is not None}
    return dict(
        cases=len(outcomes),
        agree=len(outcomes) - len(differences),
        seconds=time.perf_counter() - start,
        differences=differences,
    )


def spread(found: list[Any], limit: int) -> list[Any]:
    """At most `limit` of a list, evenly spaced, the first and the last among them."""
    if not limit or len(found) <= limit:
        return found
    if limit == 1:
        return found[:1]
    return [found[round(i * (len(found) - 1) / (limit - 1))] for i in range(limit)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
