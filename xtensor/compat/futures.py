"""`torch.futures`: results that come later, and what is done then."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from .. import devices

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that another thread, or a later line, sets; what waits for it is done by who sets it.

    devices: where its tensors lie, with an index each; nothing here waits for a device.

    >>> future = xtensor.futures.Future()
    >>> later = future.then(lambda done: done.value() + 1)
    >>> future.set_result(2)
    >>> later.wait()
    3
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        for place in devices or ():
            _check_index(place)
        self._guard = threading.RLock()  # see `xla/pending.py: Workers`
        self._condition = threading.Condition(self._guard)
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether the result, or an error, is there."""
        return self._done

    def wait(self) -> T:
        """The result, once it is there; raises the error that was set instead."""
        with self._guard:
            while not self._done:
                self._condition.wait()
        return self.value()

    def value(self) -> T:
        """The result; raises the error that was set instead, and RuntimeError where neither is there yet."""
        if not self._done:
            raise RuntimeError("value() of a Future that is not completed: wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: T) -> None:
        """Set the result, once; RuntimeError for a second one. Callbacks run here."""
        self._complete(result, None)

    def set_exception(self, result: Exception) -> None:
        """Set an error, which `wait` and `value` raise. AssertionError for what is none."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what `callback(self)` gives, which runs once this one is done: at once where it is. An error in it is a RuntimeError there."""
        made: Future[S] = Future()

        def run(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                made._complete(None, _of_callback(error))
            else:
                made.set_result(result)

        self._when_done(run)
        return made

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Run `callback(self)` once this one is done: at once where it is. An error in it is told, and goes no further."""

        def run(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception:
                print("Got the following error when running the callback:", file=sys.stderr)
                traceback.print_exc()

        self._when_done(run)

    def _when_done(self, run: Callable[[Future[T]], Any]) -> None:
        with self._guard:
            if not self._done:
                self._callbacks.append(run)
                return
        run(self)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._guard:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed once."
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for run in callbacks:
            run(self)


def _check_index(place: Any) -> None:
    found = devices.device(place)
    if found.index is None:
        raise ValueError(f"Expected devices to have indices, got {found}")


def _of_callback(error: Exception) -> RuntimeError:
    """What a future raises whose callback failed."""
    made = RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
    made.__cause__ = error
    return made


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of all of these, done when the last one is; with the error of the first that has one.

    >>> first, second = xtensor.futures.Future(), xtensor.futures.Future()
    >>> both = xtensor.futures.collect_all([first, second])
    >>> first.set_result(1)
    >>> second.set_result(2)
    >>> [future.value() for future in both.wait()]
    [1, 2]
    """
    made: Future[list[Future[Any]]] = Future()
    given = list(futures)
    lock = threading.Lock()
    missing = len(given)

    def one_more(_: Future[Any]) -> None:
        nonlocal missing
        with lock:
            missing -= 1
            last = missing == 0
        if last:
            error = next((f._error for f in given if f._error is not None), None)
            made._complete(given, error)

    if not given:
        made.set_result([])
    for future in given:
        future._when_done(one_more)
    return made


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """The results of all, once they are there; raises the error of the first that has one.

    >>> future = xtensor.futures.Future()
    >>> future.set_result(1)
    >>> xtensor.futures.wait_all([future])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]
