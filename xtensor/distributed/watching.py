"""Who ends without a word takes the others along: each process waits to be told, and ends with the name of the rank."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

from .store import TCPStore
from .table import GONE
from .wire import read, send

__all__ = ["begin", "leave"]


class _Watch:
    """What this process has begun: a connection that stands for it, and a thread that waits."""

    def __init__(self, store: TCPStore, rank: int) -> None:
        self.rank = rank
        self.left = False
        self.line = store.another()._line
        send(self.line, b"rank", str(rank).encode())
        read(self.line)
        self.ear = store.another()._line
        threading.Thread(target=self._wait, daemon=True, name="xtensor ranks").start()

    def _wait(self) -> None:
        while not self.left:
            try:
                send(self.ear, b"get", GONE, b"3600")
                status, *found = read(self.ear)
            except OSError:
                self.end("the process with the store, which is rank 0 or the launcher")
                return
            if status == b"ok":
                self.end(f"rank {found[0].decode()}")
                return

    def end(self, who: str) -> None:
        """End this process, unless it is about to."""
        if self.left:
            return
        text = f"xtensor.distributed: rank {self.rank} ends, since {who} has ended without destroy_process_group()\n"
        sys.stderr.write(text)
        sys.stderr.flush()
        os._exit(1)


_watch: list[_Watch] = []


def begin(store: Any, rank: int) -> None:
    """Stand for a rank from now on."""
    if not _watch:
        _watch.append(_Watch(store, rank))
        atexit.register(at_exit)


def leave() -> None:
    """Say goodbye: what ends from now on ends as it should."""
    for watch in _watch:
        if not watch.left:
            watch.left = True
            try:
                send(watch.line, b"bye")
                read(watch.line)
            except OSError:
                pass


def at_exit() -> None:
    """Say goodbye, unless it is an error that ends the process: the others are to hear of that, and JAX would wait for them."""
    if getattr(sys, "last_value", None) is None:
        leave()
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
