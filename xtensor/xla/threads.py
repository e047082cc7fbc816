"""Which threads run operators: a buffer is given up only where no other thread can be looking at it.

A thread is known from its first operator on until it ends. With one thread, buffers are reused; with several, programs write
to memory of their own, so that what one thread reads another may replace, as it may in PyTorch. The package's own threads do
not count: they work for a thread that waits, or touch no tensor.
"""

from __future__ import annotations

import os
import threading

__all__ = ["OWN", "Token", "others"]

OWN = "xtensor "
"""How the names of the package's own threads begin."""

others: list[int] = []
"""The threads that run operators, beyond the first: empty where there is one."""

_known: list[int] = []
_lock = threading.Lock()


class Token:
    """A thread's mark that it runs operators; it goes with the thread."""

    __slots__ = ("ident",)

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        if not threading.current_thread().name.startswith(OWN):
            with _lock:
                _known.append(self.ident)
                others[:] = _known[1:]

    def __del__(self) -> None:
        with _lock:
            if self.ident in _known:
                _known.remove(self.ident)
                others[:] = _known[1:]


def _alone() -> None:
    """In a child process: the one thread there is."""
    global _lock
    _lock = threading.Lock()
    _known[:] = [i for i in _known if i == threading.get_ident()]
    others.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)
