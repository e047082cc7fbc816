"""Who ends without a word takes the others along: each process waits to be told, and ends with the name of the rank."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

from .store import TCPStore
from .table import gone_key
from .wire import read, send

__all__ = ["begin", "leave"]


class _Watch:
    """What this process has begun: a connection that stands for it, and a thread that waits."""

    def __init__(self, store: TCPStore, rank: int) -> None:
        self.rank = rank
        self.left = False
        # Held, since a store that is given up ends its connection.
        self.stores = (store.another(), store.another())
        self.line, self.ear = (s.line for s in self.stores)
        self.key = gone_key(getattr(store, "attempt", 0)).encode()
        send(self.line, b"rank", str(rank).encode(), self.key)
        read(self.line)
        threading.Thread(target=self._wait, daemon=True, name="xtensor ranks").start()

    def _wait(self) -> None:
        while not self.left:
            try:
                send(self.ear, b"get", self.key, b"3600")
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
        text = (
            f"xtensor.distributed: rank {self.rank} ends, since {who} has ended with an error or was killed\n"
        )
        sys.stderr.write(text)
        sys.stderr.flush()
        os._exit(1)


_watch: list[_Watch] = []
_never = threading.Event()
LOST = ("Gloo", "NCCL", "onnection")
"""What errors of collectives say when a rank has gone."""
SOON = 2.0
"""Seconds until it is known which."""


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
    error = getattr(sys, "last_value", None)
    if error is None:
        leave()
        return
    if any(word in str(error) for word in LOST):
        _never.wait(SOON)  # within which the thread that waits ends the process, and names the rank
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
