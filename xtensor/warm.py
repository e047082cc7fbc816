"""`python -m xtensor.warm script.py args...`: run PyTorch programs so that what they compile is there before they are needed.

For images and clusters: `--to FOLDER` collects the programs in a folder that others read (`xtensor/xla/shared_store.py`).
"""

from __future__ import annotations

import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from .__main__ import main as run
from .plans.plans import executor
from .xla import compile_cache, segments, shared_store, trust

__all__ = ["main"]

USAGE = """usage: python -m xtensor.warm [--to FOLDER] [--device DEVICE] (SCRIPT | -m MODULE | -c CODE) [ARGUMENTS ...]
       python -m xtensor.warm [--to FOLDER] --list FILE"""
HELP = f"""{USAGE}

Run an unmodified PyTorch program, as `python -m xtensor` does, and keep every program that it compiles. A few steps are enough:
what is compiled depends on shapes, dtypes and settings, not on values. Gradients' plans are made in the third step.

  SCRIPT, -m MODULE, -c CODE, ARGUMENTS, --device
                   as for python -m xtensor
  --list FILE      a list of such programs: one a line, as it would stand behind `python -m xtensor`; `#` begins a comment
  --to FOLDER      keep them in FOLDER for others, who name it by {shared_store.VARIABLE}: they need
                   not be able to write there, and nobody but its owner (they themselves, or root) may.
                   Otherwise they are kept in your own compile cache.
  -h, --help       this text

Exit status: the first of the programs' that is not 0; 2 for wrong arguments."""

CHILD = "--in-this-process"


class Held(NamedTuple):
    """Entries and bytes that a folder holds."""

    programs: int
    size: int


def held(folder: pathlib.Path) -> Held:
    """What a folder of programs holds, its secret or key and unfinished files left out."""
    files = (
        [f for f in folder.iterdir() if f.is_file() and f.suffix not in ("", ".part")]
        if folder.is_dir()
        else []
    )
    # Each is there under JAX's key, and under the signatures that led to it.
    programs = [f for f in files if not f.name.startswith(compile_cache.CALL)]
    return Held(len(programs), sum(f.stat().st_size for f in files))


def main(arguments: Sequence[str]) -> int:
    """Read the command line, run the programs one after the other, and say what they added."""
    left = list(arguments)
    if left[:1] == [CHILD]:
        try:
            run(left[1:])
        finally:
            # What waits, or is left to a thread, is let go when a process ends.
            segments.finish()
            segments.workers.wait()
            executor.wait()
        return 0
    to = listed = None
    while left and left[0].partition("=")[0] in ("-h", "--help", "--to", "--list"):
        option, equals, value = left.pop(0).partition("=")
        if option in ("-h", "--help"):
            print(HELP)
            return 0
        if not equals and not left:
            return refused(f"argument {option}: expected one argument")
        value = pathlib.Path(value if equals else left.pop(0))
        if option == "--to":
            to = value
        else:
            listed = value
    if (listed is None) == (not left):
        return refused("SCRIPT is missing" if listed is None else "a list and a program")
    try:
        programs = [left] if listed is None else read_list(listed)
        with destination(to) as (folder, environment):
            before = held(folder)
            status = 0
            for program in programs:
                command = [sys.executable, "-m", "xtensor.warm", CHILD, *program]
                code = subprocess.run(command, env=environment, check=False).returncode
                if code:
                    print(f"python -m xtensor.warm: status {code} of: {shlex.join(program)}", file=sys.stderr)
                status = status or code
        after = held(folder)
    except OSError as error:
        return refused(str(error))
    print(
        f"{after.programs - before.programs} programs added, {megabytes(after.size - before.size)}; "
        f"{after.programs} programs, {megabytes(after.size)} in {folder}",
        flush=True,
    )
    return status if status >= 0 else 128 - status  # ended by a signal, as a shell says it


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def refused(why: str) -> int:
    """A line on what is wrong with the arguments."""
    print(USAGE, f"python -m xtensor.warm: error: {why}", sep="\n", file=sys.stderr)
    return 2


def read_list(file: pathlib.Path) -> list[list[str]]:
    """The programs of a list, each as words."""
    lines = [shlex.split(line, comments=True) for line in file.read_text("utf-8").splitlines()]
    return [words for words in lines if words]


@contextmanager
def destination(to: pathlib.Path | None) -> Iterator[tuple[pathlib.Path, dict[str, str]]]:
    """Where the programs will be, and the environment of the processes that make them."""
    environment = dict(os.environ)
    if to is None:
        folder = compile_cache.directory()
        if folder is None:
            raise OSError(
                "the compile cache is off (XTENSOR_COMPILE_CACHE), refused, or JAX has one of yours (JAX_COMPILATION_CACHE_DIR)"
            )
        yield folder, environment
        return
    store = shared_store.SharedStore(pathlib.Path(os.path.abspath(to)), compile_cache.machine())
    trust.make_folder(store.path, 0o755)
    why = trust.fault(store.path, roots=True)
    if why is not None:
        raise PermissionError(f"nobody would trust that folder: {why}")
    # What is made for others is made beside it, under a secret of its own; what is there already is loaded and not made again.
    with tempfile.TemporaryDirectory(prefix=".making-", dir=store.path) as own:
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        environment |= {"XTENSOR_COMPILE_CACHE": own, shared_store.VARIABLE: str(store.path.parent)}
        yield store.path, environment
        seal = trust.open_seal(pathlib.Path(own), make=False)
        if seal is not None:
            shared_store.publish(pathlib.Path(own), seal, store)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
