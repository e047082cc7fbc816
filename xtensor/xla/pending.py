"""Values that are not there yet: what a call that waits in a segment gives, and the threads that compile beside the program.

A call's errors are raised by it, and the shapes of its results are known; whoever needs the values waits. The programs are the same
ones, and so are the bits.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .threads import OWN

__all__ = ["Pending", "Work", "Workers", "processors", "settled", "workers"]


class Work:
    """Something to be done once: by a worker, or by the thread that needs its result first."""

    __slots__ = ("_by", "_function", "_lock", "_result", "done")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function: Callable[[], Any] | None = function
        # Held while it is done. What waits, waits for the lock: an event is Python, in which Ctrl-C would leave its own taken.
        self._lock = threading.RLock()
        self._by: int | None = None
        self._result: Any = None
        # Whether its result is there.
        self.done = False

    def begin(self) -> bool:
        """Do it here, unless somebody does it already; whether it was done here."""
        return self._by != os.getpid() and self._do()

    def _do(self) -> bool:
        if self._by is not None and self._by != os.getpid():
            # This process was forked, and has no workers that could end what they began.
            self._by, self._lock = None, threading.RLock()
        with self._lock:
            if self.done:
                return False
            function = self._function
            assert function is not None
            try:
                self._by = os.getpid()
                self._result = function()
                self.done = True
            finally:
                self._by = None
            self._function = None
            return True

    def result(self) -> Any:
        """What it gives, once it is there; what failed is done again here, and fails where it is needed."""
        if not self.done:
            self._do()
        return self._result


class Workers:
    """Threads that do work in the order in which it came; they end with the process."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._queue: collections.deque[Work] = collections.deque()
        # Entering a condition runs Python, where Ctrl-C would leave its lock taken for ever; entering a lock is one step.
        self._guard = threading.RLock()
        self._some = threading.Condition(self._guard)
        self._threads: list[threading.Thread] = []
        self._busy = 0
        self._ended = False

    def submit(self, work: Work) -> None:
        """Have a worker do it."""
        with self._guard:
            if self._ended:
                return
            self._queue.append(work)
            if len(self._threads) < min(self.count, len(self._queue)):
                thread = threading.Thread(target=self._serve, name=f"{OWN}compiles", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._some.notify_all()

    def _serve(self) -> None:
        while True:
            with self._guard:
                while not self._queue:
                    if self._ended:
                        return
                    self._some.wait()
                work = self._queue.popleft()
                self._busy += 1
            with contextlib.suppress(Exception):  # it is done again where it is needed
                work.begin()
            del work
            with self._guard:
                self._busy -= 1
                self._some.notify_all()

    def wait(self) -> None:
        """Have all that was submitted done."""
        with self._guard:
            while (self._queue and self._threads) or self._busy:
                self._some.wait()

    def end(self) -> None:
        """Let what was begun come to its end, and begin nothing more."""
        with self._guard:
            self._ended = True
            self._queue.clear()
            self._some.notify_all()
        for thread in self._threads:
            thread.join()

    def alone(self) -> None:
        """In a child process, which has none of the threads."""
        self._queue.clear()
        self._guard = threading.RLock()
        self._some = threading.Condition(self._guard)
        self._threads.clear()
        self._busy = 0


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


workers = Workers(min(processors(), 4))
"""Those that compile."""

atexit.register(workers.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.alone)


class Pending:
    """A result that is not there yet: its form, and `value()`, which waits for it.

    at: its number in a segment that it waits in (`segments`).
    """

    __slots__ = ("__weakref__", "_call", "_value", "at", "aval")
    weak_type: ClassVar[bool] = False

    def __init__(self, call: Any, aval: Any) -> None:
        self._call: Any = call
        self._value: Any = None
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: len(self.aval.shape))
    size = property(lambda self: self.aval.size)
    nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)

    @property
    def sharding(self) -> Any:
        """Where it lies, or will."""
        value = self._value
        return self._call.sharding if value is None else value.sharding

    @property
    def committed(self) -> bool:
        """Whether it is tied to its device."""
        value = self._value
        return self._call.is_committed(self.at) if value is None else value.committed

    def devices(self) -> set[Any]:
        """Where it will lie, as JAX's arrays say it."""
        return self.sharding.device_set

    @property
    def call(self) -> Any:
        """What gives it, None once it is there."""
        return self._call if self._value is None else None

    def __array__(self, *args: Any, **options: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.value(), *args, **options)

    def value(self) -> Any:
        """The array, once it is there."""
        value = self._value
        if value is None:
            self._call.finish()
            value = self._value
            if value is None:  # its call gave it to another, which has it
                self._call.finish()
                value = self._value
        return value

    def read(self) -> tuple[Any, bool]:
        """The array, which nobody else sees: as a storage reads what is not there yet."""
        return self.value(), False


def settled(value: Any) -> Any:
    """A value that is there: what pends is waited for, in tuples and lists too."""
    if type(value) is Pending:
        return value.value()
    if type(value) in (tuple, list):
        return type(value)(map(settled, value))
    return value
