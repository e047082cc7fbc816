"""Storages that share their memory with NumPy arrays, on the CPU and up to a size.

XLA's arrays cannot change, and programs read them after the call that started them has returned. So the memory that NumPy sees is
never one that XLA reads: a storage brings in what NumPy wrote whenever it is read, as a new array, and writes its own changes back.
"""

from __future__ import annotations

import sys
from operator import call
from typing import Any

import numpy as np
from jax.core import Tracer

from . import devices
from .storage import LazyStorage, Storage, cell, reading

__all__ = ["MOST", "SharedStorage", "adopt", "bytes_at", "exported", "owner_of", "shareable"]

MOST = 1 << 20
"""How many bytes a storage may have to be shared: they are compared at every read while an array of NumPy's lives."""

_slot: Any = Storage.sharing  # type: ignore[attr-defined]
_writes: Any = Storage.writes
_shared: Any = Storage.shared


class Span:
    """A run of bytes at an address, as NumPy takes it; `keep` lives as long as any array made from it."""

    def __init__(self, address: int, kind: str, count: int, keep: Any = None) -> None:
        self.__array_interface__ = {"shape": (count,), "typestr": kind, "data": (address, False), "version": 3}
        self.keep = keep


class Sharing:
    """What a shared storage knows of the memory.

    root: what owns it, referred to once. flat: the memory in words, without a reference to the root.
    seen: the storage's array when memory and array were last the same, and its words.
    """

    __slots__ = ("address", "flat", "foreign", "nbytes", "root", "seen")

    def __init__(self, root: Any, address: int, nbytes: int, array: Any) -> None:
        self.root = root
        self.foreign = not (isinstance(root, np.ndarray) and root.flags.owndata)
        self.address = address
        self.nbytes = nbytes
        size = 8 if nbytes % 8 == 0 else 4 if nbytes % 4 == 0 else 1
        self.flat = np.asarray(Span(address, np.dtype(f"u{size}").str, nbytes // size))
        self.seen = (array, self.words(array))

    def words(self, array: Any) -> Any:
        """The bytes of an array as words, which waits until it is there."""
        return np.asarray(array).reshape(-1).view(np.uint8).view(self.flat.dtype)

    def alone(self) -> bool:
        """Whether no array outside sees the memory any more; that of other libraries may be seen at any time."""
        return not self.foreign and sys.getrefcount(self.root) == _ALONE


class SharedStorage(Storage):
    """A storage whose memory NumPy sees; a Storage like any other again when the last array outside has gone.

    Its own changes come in through `array`, or straight into the slot; whatever is asked of the storage next writes them back.
    """

    __slots__ = ()

    @property
    def array(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return _met(self)

    @array.setter
    def array(self, array: Any) -> None:
        _met(self)
        cell.__set__(self, array)
        _met(self)

    @property
    def writes(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        _met(self)
        return _writes.__get__(self)

    @writes.setter
    def writes(self, count: int) -> None:
        _writes.__set__(self, count)

    @property
    def shared(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        _met(self)
        return type(self) is SharedStorage or _shared.__get__(self)

    @shared.setter
    def shared(self, shared: bool) -> None:
        _met(self)
        _shared.__set__(self, shared)


def _met(storage: Storage) -> Any:
    """The storage's array, after memory and array have been made the same."""
    with reading:
        array = cell.__get__(storage)
        if type(storage) is not SharedStorage or isinstance(array, Tracer):
            return array
        sharing = _slot.__get__(storage)
        alone = sharing.alone()
        seen, words = sharing.seen
        if array is not seen:
            words = sharing.words(array)
            if words.nbytes != sharing.nbytes:  # resized: memory of its own from now on
                alone = True
            else:
                sharing.flat[...] = words
                sharing.seen = (array, words)
        elif (sharing.flat != words).any():
            array = _taken(sharing, array)
            pair = (array, sharing.words(array))
            # One call of C, so that no signal's handler finds one without the others.
            done = ((cell.__set__, storage, array), (_set_seen, sharing, pair), (_shared.__set__, storage, False))
            _writes.__set__(storage, _writes.__get__(storage) + 1)
            any(map(call, *zip(*done)))
        if alone:
            storage.__class__ = Storage  # pyright: ignore[reportAttributeAccessIssue]
            _slot.__delete__(storage)
        return array


_set_seen = Sharing.seen.__set__  # type: ignore[attr-defined]


def _taken(sharing: Sharing, array: Any) -> Any:
    """What lies in the memory now, as an array like this one with memory of its own."""
    data = sharing.flat.copy().view(np.uint8).view(array.dtype).reshape(array.shape)
    return devices.put(data, devices.of_array(array), copy=False)


def shareable(storage: Storage) -> bool:
    """Whether the storage's memory can be shared with NumPy."""
    if type(storage) is SharedStorage:
        return True
    if storage.is_meta or storage.device.type != "cpu" or not 0 < storage.nbytes() <= MOST:
        return False
    if type(storage) is LazyStorage:
        storage.array  # noqa: B018  read now, it is a Storage
    return type(storage) is Storage and not isinstance(storage.array, Tracer)


def adopt(storage: Storage, root: Any, address: int) -> None:
    """Share the memory at the address, which `root` owns and which holds the storage's values, from now on."""
    with reading:
        array = cell.__get__(storage)
        _slot.__set__(storage, Sharing(root, address, Storage.nbytes(storage), array))
        storage.__class__ = SharedStorage  # pyright: ignore[reportAttributeAccessIssue]


def exported(storage: Storage) -> np.ndarray[Any, Any]:
    """The bytes of a shareable storage, to be read and written."""
    with reading:
        if type(storage) is not SharedStorage:
            memory = np.array(np.asarray(storage.array).reshape(-1).view(np.uint8))
            adopt(storage, memory, memory.__array_interface__["data"][0])
            return memory[:]
        _met(storage)
        if type(storage) is not SharedStorage:
            return exported(storage)
        sharing = _slot.__get__(storage)
        return np.asarray(Span(sharing.address, "|u1", sharing.nbytes, sharing.root))


def bytes_at(array: np.ndarray[Any, Any], nbytes: int) -> np.ndarray[Any, Any]:
    """So many bytes of memory from an array's first element on."""
    return np.asarray(Span(array.__array_interface__["data"][0], "|u1", nbytes, array))


def owner_of(array: np.ndarray[Any, Any]) -> Any:
    """The array that owns another's memory, or the outermost one over memory that is not NumPy's."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _references() -> int:
    memory = np.zeros(8, np.uint8)
    sharing = Sharing(memory, memory.ctypes.data, 8, memory.copy())
    del memory
    return sys.getrefcount(sharing.root)


# Calibrated, since what a call itself holds differs between CPython versions.
_ALONE = _references()
