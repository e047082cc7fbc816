"""What the launcher starts: JAX's runtime first, since it must come before any tensor, then the program, for which `torch` is xtensor."""

from __future__ import annotations

import sys

from ..interop.program import run_module, run_script
from . import runtime
from .rendezvous import rendezvous
from .store import DEFAULT, PrefixStore

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Run `SCRIPT ARGUMENTS...` or `-m MODULE ARGUMENTS...`."""
    store, rank, world_size = rendezvous("env://")
    base = PrefixStore(f"job/{getattr(store, 'attempt', 0)}", store)
    runtime.start(base, rank, world_size, DEFAULT.total_seconds())
    runtime.watch(store, rank, world_size)
    if arguments[0] == "-m":
        run_module(arguments[1], arguments[2:])
    else:
        run_script(arguments[0], arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
