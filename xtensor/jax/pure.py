"""A block in which eager code is traced as a pure function: random numbers come from operands, and what cannot be traced says so."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from .. import capture, devices
from ..nn.modules.module import Module
from ..tensor import Tensor, array_of
from ..xla.x64 import call

__all__ = ["Pure", "TraceError", "line_of_user", "pure"]

INSIDE = ("xtensor", "jax", "jaxlib", "numpy", "contextlib", "functools", "runpy")


class TraceError(RuntimeError):
    """Code that cannot be a pure function of tensors; the message names its line."""


def line_of_user(trace: Any = None) -> str:
    """`file:line` of the innermost code outside of libraries: of the frame that runs, or of a traceback; "" without one."""
    found: list[tuple[Any, int]] = []
    if trace is not None:
        while trace is not None:
            found.append((trace.tb_frame, trace.tb_lineno))
            trace = trace.tb_next
        found.reverse()
    else:
        frame: Any = sys._getframe(1)
        while frame is not None:
            found.append((frame, frame.f_lineno))
            frame = frame.f_back
    for frame, line in found:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in INSIDE:
            return f"{frame.f_code.co_filename}:{line}"
    return ""


class Pure:
    """What stands between traced code and the world: see `capture.Watcher`.

    random: gives the seed and the number of the first draw as operands; None where none may be drawn. drawn: how many draws were made.
    """

    place: Any

    def __init__(self, what: str, random: Callable[[], tuple[Any, Any]] | None, place: Any = None) -> None:
        self.what = what
        self.random = random
        self.thread = threading.get_ident()
        self.place = devices.current() if place is None else place
        self.drawn = 0

    def draw(self, generator: Any) -> tuple[Any, Any]:
        """See `capture.Watcher`."""
        if self.random is None:
            self.refuse("it draws random numbers, and no seed is given")
        assert self.random is not None
        seed, first = self.random()
        number = call(lambda a, b: a + b, first, np.int64(self.drawn))
        self.drawn += 1
        return seed, number

    def numbers(self, optimizer: Any) -> Any:
        """See `capture.Watcher`."""
        self.steps(optimizer)

    def counts(self, counters: list[Tensor]) -> list[Any]:
        """See `capture.Watcher`."""
        return [array_of(counter) for counter in counters]

    def skip(self, generator: Any, count: int) -> None:
        """See `capture.Watcher`."""
        self.drawn += count

    def unseen(self, array: Any, fits: Callable[[Any], bool], when: Any = None) -> None:
        """See `capture.Watcher`: values of a pure function are never looked at."""

    def refuse(self, reason: str) -> None:
        """See `capture.Watcher`."""
        line = line_of_user()
        raise TraceError(f"{self.what} cannot be traced: {reason}{f' ({line})' if line else ''}")

    def steps(self, optimizer: Any) -> None:
        """See `capture.Watcher`."""
        self.refuse(f"a step of {type(optimizer).__name__} changes what is outside of the function")

    def new_module(self, module: Module) -> None:
        """See `capture.Watcher`: a module is no tensor."""

    def repeats(self, owner: Any, name: str | None, value: Any) -> bool:
        """See `capture.Watcher`: attributes are set while tracing, as Python does."""
        return True


@contextmanager
def pure(what: str, random: Callable[[], tuple[Any, Any]] | None = None, place: Any = None) -> Iterator[Pure]:
    """A block in which code is traced; values that Python asks for are refused by TraceError, which names the line."""
    watcher = Pure(what, random, place)
    capture.begin(watcher)
    try:
        yield watcher
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        line = line_of_user(error.__traceback__)
        raise TraceError(
            f"{what} cannot be traced: it needs the value of a tensor, which is not known while tracing"
            f"{f' ({line})' if line else ''}"
        ) from error
    finally:
        capture.end(watcher)
