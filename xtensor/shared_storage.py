"""Storages that share their memory with NumPy arrays, on the CPU and up to a size.

XLA's arrays cannot change, and programs read them after the call that started them has returned. So the memory that NumPy sees is
never one that XLA reads: a storage brings in what NumPy wrote whenever it is read, as a new array, and writes its own changes back.
"""

from __future__ import annotations

import sys
from operator import call
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from . import devices
from .storage import Storage, begin, cell, reading

__all__ = ["MOST", "HostMemory", "HostStorage", "SharedStorage", "adopt", "bytes_at", "exported", "is_shared"]

MOST = 1 << 20
"""How many bytes a storage may have to be shared: they are compared at every read while an array of NumPy's lives."""

_call: Any = call
_slot: Any = Storage.sharing  # type: ignore[attr-defined]
_writes: Any = Storage.writes
_shared: Any = Storage.shared


class Span:
    """A run of bytes at an address, as NumPy takes it; `keep` lives as long as any array made from it."""

    def __init__(self, address: int, kind: str, count: int, keep: Any = None) -> None:
        self.__array_interface__ = {
            "shape": (count,),
            "typestr": kind,
            "data": (address, False),
            "version": 3,
        }
        self.keep = keep


class Sharing:
    """What a shared storage knows of the memory.

    root: what owns it, referred to once. address: of its first byte, None for that of the root.
    seen: the storage's array when memory and array were last the same, and its bytes once they were asked for.
    """

    __slots__ = ("_flat", "address", "foreign", "nbytes", "root", "seen")

    def __init__(self, root: Any, address: int | None, nbytes: int, array: Any, foreign: bool) -> None:
        self.root = root
        self.address = address
        self.nbytes = nbytes
        self.foreign = foreign
        self.seen = (array, None)
        self._flat: Any = None

    def flat(self) -> np.ndarray[Any, Any]:
        """The memory in words, without a reference to the root."""
        if self._flat is None:
            address = self.address
            if address is None:
                address = self.root.__array_interface__["data"][0]
            size = 8 if self.nbytes % 8 == 0 else 4 if self.nbytes % 4 == 0 else 1
            self._flat = np.asarray(Span(address, _WORDS[size], self.nbytes // size))
        return self._flat

    def words(self, array: Any) -> Any:
        """The bytes of an array as words, which waits until it is there."""
        return np.asarray(array).reshape(-1).view(np.uint8).view(self.flat().dtype)

    def alone(self) -> bool:
        """Whether no array outside sees the memory any more; that of other libraries may be seen at any time."""
        return not self.foreign and sys.getrefcount(self.root) == _ALONE

    def bring(self, array: Any) -> Any:
        """The array, which was the memory's when last seen, or a new one of what the memory holds now."""
        seen = self.seen[1]
        if self.nbytes > _FEW:
            seen = self.words(array) if seen is None else seen
            same = not (self.flat() != seen).any()
        else:
            seen = np.asarray(array).tobytes() if seen is None else seen
            same = (self.root if self.address is None else self.flat()).tobytes() == seen
        if same:
            self.seen = (array, seen)
            return array
        data = self.flat().copy().view(np.uint8).view(array.dtype).reshape(array.shape)
        return devices.put(data, devices.of_array(array), copy=False)

    def send(self, array: Any) -> bool:
        """Write an array to the memory; False if it is not of its size."""
        if array.size * array.dtype.itemsize != self.nbytes:
            return False
        self.flat()[...] = self.words(array)
        self.seen = (array, None)
        return True


_WORDS = {1: "|u1", 4: np.dtype("u4").str, 8: np.dtype("u8").str}
_FEW = 1 << 14
"""Up to so many bytes a copy and a comparison of bytes are quicker than NumPy's loops."""


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
    def device(self) -> devices.device:
        return devices.of_array(cell.__get__(self))

    @property
    def is_meta(self) -> bool:
        return False

    def data_ptr(self) -> int:
        """The address of the memory, which from now on may be written by whoever knows it; that of the copy, if it was asked for before."""
        # To ask for its size is to look whether anybody outside is left.
        if self.address != 0 or self.nbytes() == 0 or type(self) is not SharedStorage:
            return Storage.data_ptr(self)
        sharing = _slot.__get__(self)
        sharing.foreign = True
        return sharing.flat().__array_interface__["data"][0]

    @property
    def writes(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        _met(self)
        return _writes.__get__(self)

    @writes.setter
    def writes(self, count: int) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        _writes.__set__(self, count)

    @property
    def shared(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        _met(self)
        return type(self) is SharedStorage or _shared.__get__(self)

    @shared.setter
    def shared(self, shared: bool) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        _met(self)
        _shared.__set__(self, shared)


class HostMemory:
    """What a HostStorage holds: an array of NumPy's whose elements lie one after the other."""

    __slots__ = ("dtype", "memory", "shape")

    def __init__(self, memory: np.ndarray[Any, Any]) -> None:
        self.memory = memory
        self.shape: tuple[int, ...] = memory.shape
        self.dtype = memory.dtype


class HostStorage(Storage):
    """A storage that shares the memory of an array of NumPy's, whose values XLA has not asked for yet: then it is a SharedStorage."""

    __slots__ = ()

    def __init__(self, memory: np.ndarray[Any, Any]) -> None:
        begin(self, HostMemory(memory))

    @property
    def array(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return _taken(self)

    @array.setter
    def array(self, array: Any) -> None:
        _taken(self)
        self.array = array  # that of a SharedStorage

    @property
    def operand(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return _taken(self)

    def nbytes(self) -> int:
        held = cell.__get__(self)
        return held.memory.nbytes if type(held) is HostMemory else Storage.nbytes(self)

    @property
    def device(self) -> devices.device:
        return devices.device("cpu")

    @property
    def is_meta(self) -> bool:
        return False

    def data_ptr(self) -> int:
        """As a SharedStorage has it."""
        _taken(self)
        return self.data_ptr()


def _taken(storage: Storage) -> Any:
    """The array of what was a HostStorage."""
    with reading:
        held = cell.__get__(storage)
        if type(held) is HostMemory:
            memory = held.memory
            array = devices.put(memory, devices.device("cpu"))
            # One call of C, so that no signal's handler finds one without the others.
            setters: Any = (_slot.__set__, cell.__set__, _set_class)
            any(
                map(
                    _call,
                    setters,
                    (storage,) * 3,
                    (_sharing(memory, array, memory.nbytes), array, SharedStorage),
                )
            )
        return _met(storage)


_set_class: Any = object.__dict__["__class__"].__set__


def is_shared(storage: Storage) -> bool:
    """Whether NumPy sees the storage's memory."""
    return isinstance(storage, (SharedStorage, HostStorage))


def _met(storage: Storage, again: bool = False) -> Any:
    """The storage's array, after memory and array have been made the same; `again` is for memory about to be shared again."""
    with reading:
        array = cell.__get__(storage)
        if type(storage) is not SharedStorage or isinstance(array, Tracer):
            return array
        sharing = _slot.__get__(storage)
        alone = sharing.alone()
        if array is not sharing.seen[0]:
            alone = not sharing.send(array) or alone  # resized: memory of its own from now on
        else:
            new = sharing.bring(array)
            if new is not array:
                array = new
                _writes.__set__(storage, _writes.__get__(storage) + 1)
                # One call of C, so that no signal's handler finds one without the other.
                setters: Any = (cell.__set__, _set_seen, _shared.__set__)
                any(map(_call, setters, (storage, sharing, storage), (new, (new, None), False)))
        if alone and not again:
            storage.__class__ = Storage  # pyright: ignore[reportAttributeAccessIssue]
            _slot.__delete__(storage)
        return array


_set_seen = Sharing.seen.__set__  # type: ignore[attr-defined]


def adopt(storage: Storage, memory: np.ndarray[Any, Any]) -> None:
    """Share the memory of an array of NumPy's, which holds the storage's values, from its first element on."""
    if not on_cpu(storage):
        return
    with reading:
        array = cell.__get__(storage)
        _slot.__set__(storage, _sharing(memory, array, Storage.nbytes(storage)))
        storage.__class__ = SharedStorage  # pyright: ignore[reportAttributeAccessIssue]


def _sharing(memory: np.ndarray[Any, Any], array: Any, nbytes: int) -> Sharing:
    root: Any = memory
    while isinstance(root.base, np.ndarray):
        root = root.base
    return Sharing(root, memory.__array_interface__["data"][0], nbytes, array, not root.flags.owndata)


def on_cpu(storage: Storage) -> bool:
    """Whether the storage's array is one of XLA's in the host's memory."""
    array = storage.array  # read first: a LazyStorage is a Storage from then on
    return (
        isinstance(array, jax.Array)
        and not isinstance(array, Tracer)
        and devices.of_array(array).type == "cpu"
    )


def exported(storage: Storage) -> np.ndarray[Any, Any] | None:
    """The elements of a storage as an array to be read and written; None where they cannot be shared."""
    with reading:
        if type(storage) is HostStorage:
            _taken(storage)
        if type(storage) is SharedStorage:
            array = _met(storage, True)
            if type(storage) is SharedStorage and not isinstance(array, Tracer):
                sharing = _slot.__get__(storage)
                if sharing.address is None:
                    return sharing.root.reshape(array.shape)
                raw = np.asarray(Span(sharing.address, "|u1", sharing.nbytes, sharing.root))
                return raw.view(array.dtype).reshape(array.shape)
        if not on_cpu(storage):
            return None
        array = storage.array
        values = np.asarray(array)
        if not 0 < values.nbytes <= MOST:
            return None
        memory = values.copy()
        _slot.__set__(storage, Sharing(memory, None, memory.nbytes, array, False))
        storage.__class__ = SharedStorage  # pyright: ignore[reportAttributeAccessIssue]
        return memory.view()


def bytes_at(array: np.ndarray[Any, Any], nbytes: int) -> np.ndarray[Any, Any]:
    """So many bytes of memory from an array's first element on."""
    return np.asarray(Span(array.__array_interface__["data"][0], "|u1", nbytes, array))


def _references() -> int:
    memory = np.zeros(8, np.uint8)
    sharing = Sharing(memory, None, 8, None, False)
    del memory
    return sys.getrefcount(sharing.root)


# Calibrated, since what a call itself holds differs between CPython versions.
_ALONE = _references()
