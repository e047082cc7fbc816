"""Run a PyTorch program on xtensor: `python -m xtensor [--device D] script.py args...` or `... -m module args...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .interop.program import run_module, run_script


def main(arguments: Sequence[str]) -> None:
    """Parse the runner's own options; everything after the script or module is the program's."""
    parser = argparse.ArgumentParser(
        prog="python -m xtensor",
        description="Run an unmodified PyTorch program: `torch` and its submodules are xtensor's.",
        usage="python -m xtensor [--device DEVICE] (SCRIPT | -m MODULE) [ARGUMENTS ...]",
    )
    parser.add_argument("--device", help="where to run: requests for cuda and cpu mean this device")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    parser.add_argument("program", metavar="SCRIPT", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")
    options = parser.parse_args(arguments)
    run = run_module if options.module else run_script
    run(options.program, options.arguments, options.device)


if __name__ == "__main__":
    main(sys.argv[1:])
