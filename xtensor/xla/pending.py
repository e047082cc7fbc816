"""Values whose programs are still being compiled: what a first call gives at once, while threads compile beside the program.

A call of a new signature is traced, so its errors are raised and the shapes of its results are known; the program that it takes is
compiled by a worker. What depends on a pending value may pend, too. Whoever needs the values waits, and does what no worker has begun.
The programs are the same ones, and so are the bits; a call whose program is there never pends.

`XTENSOR_COMPILE_THREADS` says how many workers there are: none by default, a number, or `auto` for as many as the process has
processors (none of one).
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import numpy as np

from .threads import OWN

__all__ = [
    "Call",
    "Deferred",
    "Pending",
    "Work",
    "at_once",
    "forms",
    "settle_all",
    "settlers",
    "settled",
    "threads",
    "workers",
]

MOST = 8
"""Workers that `auto` makes at most: one thread traces what they compile."""

BEHIND = 128
"""Programs that may wait for a worker; beyond them a call waits for its own."""


class Deferred(Exception):
    """What a program raises whose results are pending: `results`, as it would give them."""

    def __init__(self, results: Any) -> None:
        super().__init__("the results of this call are pending")
        self.results = results


class Work:
    """Something to be done once: by a worker, or by the thread that needs its result first. about: what is known before."""

    __slots__ = ("_by", "_done", "_function", "_lock", "_result", "about")

    def __init__(self, function: Callable[[], Any], about: Any = None) -> None:
        self._function: Callable[[], Any] | None = function
        self.about = about
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._by: tuple[int, int] | None = None
        self._result: Any = None

    @property
    def done(self) -> bool:
        """Whether the result is there, or failed to be."""
        return self._done.is_set()

    def begin(self) -> bool:
        """Do it here, unless somebody has begun; whether it was done here."""
        here = os.getpid(), threading.get_ident()
        try:
            with self._lock:
                # A process that was forked has no workers that could end what they began.
                if self._done.is_set() or (self._by is not None and self._by[0] == here[0]):
                    return False
                self._by = here
            function = self._function
            assert function is not None
            self._result = function()
        except BaseException:
            if self._by == here:
                self._by = None
            raise
        self._function = None
        self._done.set()
        return True

    def result(self) -> Any:
        """What it gives, once it is there."""
        while not self.begin() and not self._done.wait(AGAIN):
            pass
        return self._result


AGAIN = 1.0
"""Seconds after which who waits looks whether it is still being done: what failed is done again, and fails where it is needed."""


class Workers:
    """Threads that do work in the order in which it came; they end with the process."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._queue: collections.deque[Work] = collections.deque()
        self._some = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._ended = False

    def submit(self, work: Work) -> None:
        """Have a worker do it."""
        with self._some:
            if self._ended:
                return
            self._queue.append(work)
            if len(self._threads) < min(self.count, len(self._queue)):
                thread = threading.Thread(target=self._serve, name=f"{OWN}compiles", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._some.notify()

    def behind(self) -> bool:
        """Whether so much waits that nothing more should."""
        return len(self._queue) >= BEHIND

    def _serve(self) -> None:
        while True:
            with self._some:
                while not self._queue:
                    if self._ended:
                        return
                    self._some.wait()
                work = self._queue.popleft()
            with contextlib.suppress(Exception):  # it is done again where it is needed
                work.begin()
            del work

    def end(self) -> None:
        """Let what was begun come to its end, and begin nothing more."""
        with self._some:
            self._ended = True
            self._queue.clear()
            self._some.notify_all()
        for thread in self._threads:
            thread.join()

    def alone(self) -> None:
        """In a child process, which has none of the threads."""
        self._queue.clear()
        self._some = threading.Condition()
        self._threads.clear()


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def wanted() -> int:
    """How many workers there shall be."""
    told = os.environ.get("XTENSOR_COMPILE_THREADS", "").lower()
    if told == "auto":
        count = min(processors(), MOST)
        return 0 if count == 1 else count
    return int(told) if told.isdecimal() else 0


workers = Workers(wanted())
atexit.register(workers.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.alone)


def threads(count: int | None = None) -> int:
    """How many threads compile beside the program; from now on `count`, where given."""
    before = workers.count
    if count is not None:
        workers.count = count
    return before


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
        return self._call.committed if value is None else value.committed

    def devices(self) -> set[Any]:
        """Where it will lie, as JAX's arrays say it."""
        return self.sharding.device_set

    @property
    def call(self) -> Any:
        """What gives it, None once it is there."""
        return self._call if self._value is None else None

    def __array__(self, *args: Any, **options: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.value(), *args, **options)

    def come(self, value: Any) -> None:
        """Have the value."""
        self._value = value
        self._call = None

    def value(self) -> Any:
        """The array, once it is there."""
        value = self._value
        if value is None:
            self._call.finish()
            value = self._value
        return value

    def read(self) -> tuple[Any, bool]:
        """The array, which nobody else sees: as a storage reads what is not there yet."""
        return self.value(), False


class Call:
    """A call that waits for its program: the leaves of its arguments, pending ones among them.

    work: gives `run(leaves)`, whose results are the leaves of what the call gives.
    """

    __slots__ = ("__weakref__", "_lock", "_results", "committed", "leaves", "sharding", "work")

    def __init__(self, work: Work, leaves: Sequence[Any], sharding: Any, committed: bool) -> None:
        self.work: Work | None = work
        self.leaves: Sequence[Any] | None = leaves
        self.sharding = sharding
        self.committed = committed
        self._lock = threading.RLock()
        self._results: list[weakref.ref[Pending]] = []

    def results(self, avals: Sequence[Any]) -> list[Pending]:
        """What it will give; called once."""
        made = [Pending(self, aval) for aval in avals]
        self._results = [weakref.ref(p) for p in made]
        waiting.add(self)
        return made

    def finish(self) -> None:
        """Make the call, and those that it waits for before: without recursion, since a chain may be long."""
        stack = [self]
        while stack:
            leaves = stack[-1].leaves or ()
            before = [c for p in leaves if type(p) is Pending and (c := p.call) is not None]
            if before:
                stack += before
            else:
                stack.pop()._run()

    def _run(self) -> None:
        with self._lock:
            work, leaves = self.work, self.leaves
            if work is None or leaves is None:
                return
            found = work.result()([settled(leaf) for leaf in leaves])
            for reference, value in zip(self._results, found, strict=True):
                if (pending := reference()) is not None:
                    pending.come(value)
            self.work = self.leaves = None
            waiting.discard(self)


waiting: weakref.WeakSet[Call] = weakref.WeakSet()
"""The calls whose results somebody still holds."""


settlers: list[Callable[[], None]] = []
"""What else has values that are pending run."""


def settle_all() -> None:
    """Wait for all that is pending."""
    for settle in settlers:
        settle()
    for call in list(waiting):
        call.finish()


def settled(value: Any) -> Any:
    """A value that is there: what pends is waited for, in tuples and lists too."""
    if type(value) is Pending:
        return value.value()
    if type(value) in (tuple, list):
        return type(value)(map(settled, value))
    return value


def at_once(program: Callable[..., Any], *args: Any) -> Any:
    """`program(*args)`, whose results are there."""
    try:
        return program(*args)
    except Deferred as deferred:
        return settled(deferred.results)


def forms(leaves: Sequence[Any]) -> list[Any]:
    """The leaves as a trace takes them."""
    return [
        jax.ShapeDtypeStruct(
            leaf.shape,
            leaf.dtype,
            sharding=leaf.sharding if leaf.committed else None,
            weak_type=leaf.aval.weak_type,
        )
        if type(leaf) is Pending
        else leaf
        for leaf in leaves
    ]
