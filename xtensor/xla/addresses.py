"""Memory at addresses that are not given twice: a program that keeps something by a tensor's address finds no other tensor there.

An address is asked for late, so malloc's would come back while tensors that are as old as the one which has died are still there. Ranges
of addresses cost nothing: there is memory behind those alone that were written to, until it is given back.
"""

from __future__ import annotations

import collections
import mmap
import os
import sys
import threading
import weakref
from typing import Any

import numpy as np

__all__ = ["memory_at_new_addresses"]

RANGE = 1 << 38
"""Addresses that are reserved at once."""
BLOCK = 1 << 16
"""Bytes that are given back together where they hold small pieces."""
LINE = 64
"""What addresses are multiples of."""
NORESERVE = getattr(mmap, "MAP_NORESERVE", {"linux": 0x4000, "darwin": 0x40}.get(sys.platform, 0))


def up(place: int, step: int) -> int:
    """The next multiple."""
    return -(-place // step) * step


class Range:
    """A range of addresses, of which more and more are given away. block: where small pieces come next. held: pieces in each block, and one
    more in that.
    """

    def __init__(self) -> None:
        self.map = mmap.mmap(-1, RANGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
        self.bytes = np.frombuffer(self.map, np.uint8)
        self.next = self.block = 0
        self.held = collections.Counter({0: 1})

    def take(self, nbytes: int) -> np.ndarray[Any, Any] | None:
        """So many bytes; None where there are no more."""
        small = nbytes < BLOCK
        start = up(self.next, LINE if small else BLOCK)
        if small and start % BLOCK + nbytes > BLOCK:
            start = up(start, BLOCK)
        if start + nbytes > RANGE:
            return None
        self.next = start + nbytes if small else up(start + nbytes, BLOCK)
        block = (start if small else self.next) // BLOCK
        if block != self.block:
            before, self.block = self.block, block
            self.held[block] += 1
            self.leave(before)
        piece = self.bytes[start : start + nbytes]
        if small:
            self.held[block] += 1
            weakref.finalize(piece, self.leave, block).atexit = False
        else:
            weakref.finalize(piece, self.give_back, start, nbytes).atexit = False
        return piece

    def leave(self, block: int) -> None:
        """Let go of the memory of small pieces with the last one of their block."""
        with lock:
            self.held[block] -= 1
            if self.held[block]:
                return
            del self.held[block]
        self.give_back(block * BLOCK, BLOCK)

    def give_back(self, start: int, nbytes: int) -> None:
        """Let go of memory."""
        self.map.madvise(mmap.MADV_DONTNEED, start, up(nbytes, mmap.PAGESIZE))


lock = threading.RLock()
ranges: list[Range] = []
"""The present one, if any."""


def memory_at_new_addresses(nbytes: int) -> np.ndarray[Any, Any]:
    """So many bytes, at an address of its own as long as the process runs where the system can reserve addresses."""
    with lock:
        if os.name == "posix" and nbytes <= RANGE:
            for _ in range(2):
                piece = ranges[0].take(nbytes) if ranges else None
                if piece is not None:
                    return piece
                try:
                    ranges[:] = [Range()]
                except (OSError, ValueError):  # as where `ulimit -v` limits them
                    break
    room = np.empty(nbytes + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + nbytes]
