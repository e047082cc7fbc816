"""Is this machine right? `python -m xtensor.selfcheck [--device D] [--dtype float32] [--json FILE] [PATTERN ...]`."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

from .checking import check


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 where an operator is wrong, 2 where the arguments are."""
    parser = argparse.ArgumentParser(
        prog="python -m xtensor.selfcheck",
        description="Every operator on a device against float64 on the host: the largest error in units in the last place.",
        epilog="Exit status: 0 where all is right, 1 where an operator is wrong or fails, 2 for wrong arguments.",
    )
    parser.add_argument(
        "patterns", metavar="PATTERN", nargs="*", default=["*"], help="operators, as 'fft_*'; all"
    )
    parser.add_argument("--device", help="where to run, as 'cuda:1'; the default device")
    parser.add_argument("--dtype", action="append", help="only this dtype, as 'float32'; may be given again")
    parser.add_argument(
        "--json", metavar="FILE", help="write the findings there, too; '-' is standard output, alone"
    )
    options = parser.parse_args(arguments)
    try:
        report = check(options.device, options.patterns, options.dtype, forget=True)
    except (LookupError, RuntimeError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    if options.json:
        text = json.dumps(report.as_dict(), indent=1) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
            return int(bool(report.wrong))
        pathlib.Path(options.json).write_text(text, "utf-8")
    print(report)
    return int(bool(report.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
