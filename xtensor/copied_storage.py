"""Storages with a copy of memory that was too large to share with NumPy: a change that the other side misses is said once."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from . import checks
from .storage import Storage, cell

__all__ = ["CopiedStorage", "watch"]

_slot: Any = Storage.sharing  # type: ignore[attr-defined]
_SAMPLES = 64

_said = False


class Watched:
    """The array of NumPy's, while it lives, a few of its values, and how often the storage had been written."""

    __slots__ = ("memory", "values", "writes")

    def __init__(self, memory: np.ndarray[Any, Any], writes: int) -> None:
        self.memory = weakref.ref(memory)
        self.writes = writes
        self.values = _sample(memory) if memory.flags.writeable else None


class CopiedStorage(Storage):
    """A storage whose values an array of NumPy's has as well; a Storage like any other once that has gone, or a difference was said."""

    __slots__ = ()

    @property
    def array(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        if type(self) is CopiedStorage:
            _look(self)
        return cell.__get__(self)

    @array.setter
    def array(self, array: Any) -> None:
        cell.__set__(self, array)


def watch(storage: Storage, memory: np.ndarray[Any, Any]) -> None:
    """Say it once in a process if storage and array, which hold the same values, are seen to part."""
    if not _said and type(storage) is Storage:
        _slot.__set__(storage, Watched(memory, storage.writes))
        storage.__class__ = CopiedStorage  # pyright: ignore[reportAttributeAccessIssue]


def _sample(memory: np.ndarray[Any, Any]) -> bytes:
    """Some of the values, from all over the array: a write to all of it shows, one to an element may not."""
    count = max(2, int(_SAMPLES ** (1 / max(1, memory.ndim))))
    return memory[tuple([slice(None, None, max(1, n // count)) for n in memory.shape])].tobytes()


def _look(storage: Storage) -> None:
    watched: Watched | None = storage.sharing
    memory = None if watched is None else watched.memory()
    apart = None
    if watched is not None and memory is not None:
        if storage.writes != watched.writes:
            apart = "A tensor was written whose NumPy array does not see it"
        elif watched.values is not None and _sample(memory) != watched.values:
            apart = "A NumPy array was written whose tensor does not see it"
        elif not _said:
            return
    storage.__class__ = Storage  # pyright: ignore[reportAttributeAccessIssue]
    storage.sharing = None
    if apart is not None and not _said:
        _say(apart, memory)


def _say(apart: str, memory: Any) -> None:
    global _said
    _said = True
    size = memory.nbytes / (1 << 20)
    checks.warn(
        f"{apart}: memory of more than 1 MiB is not shared (here {size:.1f} MiB), unlike PyTorch's. Write to one of the two only, "
        "and convert again. This is said once."
    )
