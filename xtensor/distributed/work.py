"""Work: a collective that was begun, to be waited for."""

from __future__ import annotations

import concurrent.futures
from datetime import timedelta
from typing import Any

import jax

from ..compat.futures import Future

__all__ = ["Work"]


class Work:
    """A collective that runs: its results are in the tensors already, and are waited for by whoever reads them.

    Differs from PyTorch: a tensor may be read before `wait`, which then waits.
    """

    def __init__(
        self, arrays: Any = (), results: Any = None, thread: concurrent.futures.Future[Any] | None = None
    ) -> None:
        self._arrays = list(arrays)
        self._results = results
        self._thread = thread

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the end; True. What went wrong is raised."""
        if self._thread is not None:
            self._thread.result(None if timeout is None else timeout.total_seconds())
        for array in self._arrays:
            array.block_until_ready()
        return True

    def is_completed(self) -> bool:
        """Whether it has ended."""
        if self._thread is not None:
            return self._thread.done()
        return all(array.is_ready() for array in self._arrays)

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """What went wrong, or None."""
        return self._thread.exception() if self._thread is not None and self._thread.done() else None

    def result(self) -> Any:
        """The tensors that were written."""
        self.wait()
        return self._results

    def source_rank(self) -> int:
        """The rank that a message came from."""
        self.wait()
        return -1 if self._thread is None else self._thread.result()

    def get_future(self) -> Future[Any]:
        """A future of the tensors that were written."""
        made: Future[Any] = Future()
        try:
            made.set_result(self.result())
        except Exception as error:
            made.set_exception(error)
        return made

    def synchronize(self) -> None:
        """Wait for the end."""
        jax.block_until_ready(self._arrays)
