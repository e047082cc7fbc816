"""`XTENSOR_LOG=compiles`: a line for each program that is compiled or loaded, with the user's line that asked for it.

`XTENSOR_LOG=segments`: a line for each segment of calls that ran together, with what ended it and the line that had it run; a line that has ended `MANY` of a
single call is told of once.

A line of the program that keeps meeting new signatures waits at each of them. After `MANY` of one operator there it is said once, with
what to do. Everything goes to the standard error.
"""

from __future__ import annotations

import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from types import FrameType

from .. import checks
from . import segments
from .cache import BoundedCache
from .compiles import unwatch, watch

__all__ = ["KINDS", "MANY", "from_environment", "log"]

KINDS = ("compiles", "segments")
"""What can be logged."""

MANY = 64
"""Signatures of one operator at one line, after which the line is told of."""

PACKAGE = str(pathlib.Path(__file__).resolve().parent.parent) + os.sep
# What stands between the user's call and this file, and what is below it where no user has called.
PASSED = frozenset("xtensor jax jaxlib contextlib functools threading concurrent importlib runpy".split())

_counts: BoundedCache[tuple[str, str], int] = BoundedCache(4096)
_lock = threading.Lock()


def from_environment() -> None:
    """Log what `XTENSOR_LOG` names, several with commas between them."""
    told = os.environ.get("XTENSOR_LOG", "")
    if told:
        log(word for part in told.split(",") if (word := part.strip().lower()))


def log(kinds: Iterable[str]) -> None:
    """Log these kinds from now on, and no others; a name that is none is warned of."""
    wanted = set(kinds)
    unwatch(_begin)
    segments.watchers[:] = [w for w in segments.watchers if w is not _ran]
    if "compiles" in wanted:
        watch(_begin)
    if "segments" in wanted:
        segments.watchers.append(_ran)
    for name in sorted(wanted.difference(KINDS)):
        checks.warn(f"XTENSOR_LOG: nothing is called {name!r}; what can be logged: {', '.join(KINDS)}")


def users_line() -> str:
    """File and line of the first frame outside xtensor and JAX; where there is none, the thread's name."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name, file = str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename
        if name.partition(".")[0] not in PASSED and not file.startswith((PACKAGE, "<frozen")):
            return f"{_shortened(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return f"thread {threading.current_thread().name!r}"


def _shortened(file: str) -> str:
    """The path from where the process is, if the file lies below that."""
    try:
        return str(pathlib.Path(file).relative_to(pathlib.Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or no folder to be in
        return file


def _begin(name: str) -> Callable[[bool | None], None]:
    line, began = users_line(), perf_counter()

    def tell(loaded: bool | None) -> None:
        if loaded is None:
            return
        what = "loaded" if loaded else "compiled"
        _say(f"{what} {name} in {(perf_counter() - began) * 1e3:.1f} ms ({line})")
        with _lock:
            count = _counts[name, line] = _counts.get((name, line), 0) + 1
        if count == MANY:
            _say(
                f"{name} has met {MANY} signatures at {line}. Each shape, dtype and static argument is a program of its own, and "
                "waits for it: pad or bucket what varies to a few sizes, drop or pad the last batch "
                "(DataLoader(drop_last=True)), fill a buffer of fixed size instead of growing one by cat, or make the programs "
                "ahead (python -m xtensor.warm). docs/first_calls.md says more."
            )

    return tell


def _ran(names: Sequence[str], whole: bool, why: str) -> None:
    line = users_line()
    _say(f"ran {', '.join(names)} {'as one program' if whole else 'one by one'} for {why} ({line})")
    if len(names) == 1:
        count = _counts["segments", line] = _counts.get(("segments", line), 0) + 1
        if count == MANY:
            _say(
                f"{MANY} calls ran by themselves since {line} reads what they give: compute what is to be read together, and read it "
                "at once (torch.stack(...).tolist()), or less often. docs/performance.md says more."
            )


def _say(text: str) -> None:
    # Of a process without a standard error nobody reads it.
    if sys.stderr is not None:
        print(f"xtensor: {text}", file=sys.stderr, flush=True)
