"""The programs on both libraries, with the largest relative difference."""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from . import NAMES, difference, run_on_torch, run_on_xtensor


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scripts", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)} (all of them)")
    names = parser.parse_args(arguments).names
    if unknown := sorted({*names} - {*NAMES}):
        parser.error(f"no program is called {', '.join(unknown)}")
    failed = 0
    print(f"{'program':22} {'difference':>10} {'torch s':>8} {'xtensor s':>9}  last number")
    for name in names or NAMES:
        started = time.perf_counter()
        theirs = run_on_torch(name)
        between = time.perf_counter()
        try:
            ours = run_on_xtensor(name)
        except Exception as error:
            failed += 1
            print(f"{name:22} {type(error).__name__}: {error}")
            traceback.print_exc()
            continue
        ended = time.perf_counter()
        gap = difference(ours, theirs)
        failed += gap > 1e-4
        print(
            f"{name:22} {gap:10.1e} {between - started:8.2f} {ended - between:9.2f}  {ours[-1]:.6g} {theirs[-1]:.6g}"
        )
    print(f"{len(names or NAMES) - failed} of {len(names or NAMES)} agree within 1e-4")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
