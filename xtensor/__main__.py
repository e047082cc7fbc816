"""Run a PyTorch program on xtensor: `python -m xtensor [--device D] script.py args...`, or `-m module`, `-c code`, `-`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from .env import welcome
from .interop.program import run_code, run_input, run_module, run_script

USAGE = "usage: python -m xtensor [--device DEVICE] (SCRIPT | -m MODULE | -c CODE | -) [ARGUMENTS ...]"
HELP = f"""{USAGE}

Run an unmodified PyTorch program: `torch` and its submodules are xtensor's. Without arguments: version, devices, caches, what to try.

  SCRIPT           a Python file, or a folder or zip file with a __main__.py
  -m MODULE        a module or package, by name
  -c CODE          code
  -                what the standard input holds
  ARGUMENTS        the program's own, all of them: sys.argv[1:]
  --device DEVICE  where to run: requests for cuda and cpu mean this device
  -h, --help       this text"""


def refuse(why: str) -> NoReturn:
    """End with a line on what is wrong with the arguments."""
    print(USAGE, f"python -m xtensor: error: {why}", sep="\n", file=sys.stderr)
    raise SystemExit(2)


def main(arguments: Sequence[str]) -> None:
    """Read the runner's own options as Python reads its own; what follows the program's name is the program's."""
    device = None
    left = list(arguments)
    if not left:
        print(welcome())
        return
    while left:
        word = left.pop(0)
        option, equals, value = word.partition("=")
        if word in ("-h", "--help"):
            print(HELP)
            return
        if option == "--device":
            if not equals and not left:
                refuse("argument --device: expected one argument")
            device = value if equals else left.pop(0)
        elif word == "-":
            return run_input(left, device)
        elif word[:2] in ("-m", "-c"):
            if word[2:]:
                left.insert(0, word[2:])
            if not left:
                refuse(f"argument expected for the {word} option")
            return (run_module if word[:2] == "-m" else run_code)(left[0], left[1:], device)
        elif word == "--" and left:
            return run_script(left[0], left[1:], device)
        elif word.startswith("-"):
            refuse(f"unrecognized argument: {word}" if word != "--" else "SCRIPT is missing")
        else:
            return run_script(word, left, device)
    refuse("SCRIPT is missing")


if __name__ == "__main__":
    main(sys.argv[1:])
