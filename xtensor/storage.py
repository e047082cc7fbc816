"""Storage: a mutable cell around one immutable `jax.Array`.

Logically a storage is the row-major sequence of its array's elements; sizes, strides and offsets of tensors index that
sequence. The array keeps the shape in which it was produced. A write replaces the array, so whoever took the old one
(a saved value, a JAX program, the user) keeps what it saw. What NumPy shares is memory beside it (`shared_storage`).
"""

from __future__ import annotations

import math
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, starmap
from typing import Any, ClassVar, Protocol

import jax
import numpy as np
from jax.core import ShapedArray, Tracer

from . import capture, checks, devices, dtypes
from .xla.addresses import memory_at_new_addresses
from .xla.levels import KINDS
from .xla.memory import check_sizes
from .xla.pending import Pending
from .xla.placing import from_host
from .xla.threads import others
from .xla.x64 import call

__all__ = [
    "SOLE",
    "UNREAD",
    "Counter",
    "HostValues",
    "LazyStorage",
    "MetaArray",
    "Storage",
    "Unread",
    "UntypedStorage",
    "WrapperArray",
    "WrapperStorage",
    "abstract",
    "cell",
    "claimable",
    "commit",
    "commit_all",
    "exchange",
    "found_all",
    "promise",
    "put",
    "reading",
    "twin_of",
    "unclaimed",
]


class MetaArray:
    """The array of a `meta` tensor: a shape and a dtype, and no values."""

    __slots__ = ("aval",)
    weak_type = False

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.aval = ShapedArray(tuple(shape), np.dtype(dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """How many elements there would be."""
        return math.prod(self.aval.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes they would take."""
        return self.size * self.dtype.itemsize

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


class WrapperArray(MetaArray):
    """The array of a tensor whose class keeps its values elsewhere."""

    __slots__ = ()


UNREAD = frozenset((MetaArray, WrapperArray, *KINDS))
"""The kinds of arrays that no program reads through a view: those without values, and those at levels of transforms."""


def abstract(array: Any) -> Any:
    """The `jax.ShapeDtypeStruct` of an array, a MetaArray or a Python number (which stays itself)."""
    aval = getattr(array, "aval", None)
    return array if aval is None else jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


class Counter:
    """A version counter of its own, for tensors (`.data`) that share a storage but not its version."""

    __slots__ = ("version",)

    def __init__(self, version: int = 0) -> None:
        self.version = version


_address_lock = threading.Lock()
_next_address = 1 << 20


def _reserve(nbytes: int) -> int:
    """A range of virtual addresses that no other storage has; nothing is ever read through it."""
    global _next_address
    with _address_lock:
        address = _next_address
        _next_address += (nbytes + 127) // 64 * 64
    return address


# Copies of the bytes of storages whose address was asked for, and at which of their writes.
_copies: weakref.WeakKeyDictionary[Storage, tuple[np.ndarray[Any, Any], int]] = weakref.WeakKeyDictionary()


def _copied(storage: Storage, array: Any, nbytes: int) -> int:
    """The address of a copy of a storage's bytes, the same as long as their number is."""
    with _address_lock:
        memory, writes = _copies.get(storage, (None, -1))
        if storage.address == 0 or memory is None:
            memory, writes = memory_at_new_addresses(nbytes), -1
            storage.address = memory.ctypes.data
        if writes != storage.writes:
            memory[:] = np.asarray(array).reshape(-1).view(np.uint8)
            _copies[storage] = memory, storage.writes
        return storage.address


class Births:
    """When storages were made, as far as derivatives of functions must know: before one of them began, or within.

    now: what the count of writes of a new storage begins with; it moves by `AGE` whenever such a derivative begins. open: how many
    of them run.
    """

    __slots__ = ("now", "open")

    def __init__(self) -> None:
        self.now = self.open = 0


AGE = 1 << 40
births = Births()


class Storage:
    """The cell.

    array: the values. raw: their slot, whatever a kind of storage makes of `array`. operand: the values, or what they are pending as.
    version: what autograd counts. writes: every replacement of `array`, for cached reads, from `births.now` on.
    shared: the present array is known outside (came from or went to the user), so it is never donated.
    writer: the code of the program that wrote last, the place in it (`f_lasti`), and the operator, once there was a write.
    sharing: what a SharedStorage or a CopiedStorage knows of NumPy's memory; others leave it out.
    cover: weak reference to the one tensor that takes its sizes from the array itself, once it has aliases.
    """

    __slots__ = (
        "__weakref__",
        "address",
        "array",
        "cover",
        "shared",
        "sharing",
        "version",
        "writer",
        "writes",
    )

    array: Any
    raw: Any
    operand: Any
    version: int
    writes: int
    shared: bool
    address: int
    cover: weakref.ref[Any] | None
    sharing: Any
    writer: tuple[Any, int, str]

    def __init_subclass__(cls) -> None:
        # What a kind of storage makes of its array, programs take as well.
        if "array" in vars(cls) and "operand" not in vars(cls):
            cls.operand = vars(cls)["array"]

    def __init__(self, array: Any, shared: bool = False) -> None:
        self.array = array
        self.version = 0
        self.writes = births.now
        self.shared = shared
        self.address = 0
        self.cover = None

    def replace(self, array: Any) -> None:
        """Put a new array, of the same shape and dtype, in the place of the old."""
        self.array = array
        self.writes += 1
        self.shared = False

    def nbytes(self) -> int:
        array = self.array
        return array.size * array.dtype.itemsize

    def data_ptr(self) -> int:
        """A stable number that identifies the storage; 0 when it is empty.

        On the CPU, and where a device stands in for it, it is the address of a copy of the bytes, made anew when this is asked for
        after a write.
        """
        size = self.nbytes()
        if size == 0:
            return 0
        array = self.array
        if isinstance(array, MetaArray):
            return 0
        if isinstance(array, jax.Array) and not isinstance(array, Tracer) and array.is_fully_addressable:
            place = devices.of_array(array)
            instead = devices.redirected("cpu")
            if place.type == "cpu" or (instead is not None and devices.same(instead, place)):
                return _copied(self, array, size)
        if self.address == 0:
            self.address = _reserve(size)
        return self.address

    def sole_owner(self) -> bool:
        """Whether nobody but this storage can see the present array, so that its buffer may be reused."""
        return (
            not self.shared and not others and _references(self) == SOLE and type(self.array) is not MetaArray
        )

    @property
    def device(self) -> devices.device:
        """Where the array is."""
        return devices.of_array(self.array)

    @property
    def is_meta(self) -> bool:
        return type(self.array) is MetaArray


class WrapperStorage(Storage):
    """The storage of a tensor whose class keeps its values elsewhere: a shape, a dtype and a device."""

    __slots__ = ("place",)

    def __init__(self, array: WrapperArray, place: devices.device) -> None:
        super().__init__(array)
        self.place = place

    @property
    def device(self) -> devices.device:
        return self.place


class Unread(Protocol):
    """What a LazyStorage holds until it is touched: what is known of the array, and the way to it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: devices.device

    def read(self) -> tuple[Any, bool]:
        """The array, on its device, and whether others can see it."""
        ...

    def on(self, device: devices.device) -> Unread:
        """The same array, to be read to another device."""
        ...


class HostValues:
    """What a LazyStorage holds whose values are in the host's memory, to which nobody writes any more.

    own: what is known of the storage's writes, where it alone knows that memory and is written there (`host.writes`); else None.
    """

    __slots__ = ("device", "dtype", "memory", "own", "shape")
    FEW: ClassVar[int] = 1 << 12

    def __init__(self, memory: np.ndarray[Any, Any], device: devices.device, own: Any = None) -> None:
        self.memory, self.device, self.own = memory, device, own
        self.shape: tuple[int, ...] = memory.shape
        self.dtype = memory.dtype

    def read(self) -> tuple[Any, bool]:
        """The array on its device. It has a copy of a few bytes; more may be this memory, and is reused for another result only where nobody
        else knows it.
        """
        if self.own is not None:  # whoever reads it is the storage, which holds the array from now on
            self.own.went()
            return call(from_host, self.memory, devices.sharding_of(self.device)), False
        if self.memory.nbytes > self.FEW or self.device.sharding is not None:
            return devices.put(self.memory, self.device, copy=False), True
        return call(from_host, self.memory.copy(), devices.sharding_of(self.device)), False

    def on(self, device: devices.device) -> HostValues:
        """The same values for another device."""
        return HostValues(self.kept(), device)

    def kept(self) -> np.ndarray[Any, Any]:
        """The values as they are now, whatever is written."""
        return self.memory if self.own is None else self.memory.copy()


cell: Any = Storage.array
"""The slot itself."""
Storage.raw = Storage.operand = cell
put: Callable[[Storage, Any], None] = cell.__set__
"""`storage.array = array`, as a function of C."""


def commit_all(
    cells: Iterable[Storage],
    program: Callable[..., Iterable[Any]],
    args: tuple[Any, ...],
    pick: Callable[[Any], Iterable[Any]] = iter,
    ready: Sequence[Any] = (),
) -> None:
    """Put what `pick` takes of the results of `program(*args)`, and then what is ready, into the cells, as `commit` does."""
    results = chain.from_iterable(map(pick, starmap(program, (args,))))
    any(map(put, cells, chain(results, ready) if ready else results))


def commit(storage: Storage, program: Callable[..., Any], *args: Any) -> None:
    """Put `program(storage.array, *args)` in the place of the storage's array.

    CPython looks for signals after calls. Unpacking an iterator is none, so a handler finds the old values or the new ones,
    never an array whose buffer was given up.
    """
    storage.writes += 1
    if others:
        exchange(storage, program, *args)
    else:
        (storage.raw,) = starmap(program, ((storage.array, *args),))
    storage.writes += 1
    storage.shared = False


def exchange(storage: Storage, program: Callable[..., Any], *args: Any) -> None:
    """`commit` where other threads run operators: what one of them wrote meanwhile is not lost, as the program is called again with that.

    Threads may fill parts of one tensor. A lock would be held while programs compile, and in a child process for ever.
    """
    while True:
        before = storage.array
        after = program(before, *args)
        kind = type(storage)
        # No call from here on: Python hands over to another thread at calls, and between these lines there is none.
        if storage.raw is before or kind is not Storage:
            storage.raw = after
            return


reading = threading.RLock()


def yet_to_read(storage: Storage) -> Unread | Pending | None:
    """What a storage is still to read, or None. No attribute of a LazyStorage: another thread may make it a Storage before it is found."""
    if type(storage) is not LazyStorage:
        return None
    held = cell.__get__(storage)
    return None if isinstance(held, jax.Array) else held  # a program may have put its result there


def begin(storage: Storage, unread: Any) -> None:
    """Make a new storage of what its array will be read from."""
    cell.__set__(storage, unread)
    storage.version = storage.address = 0
    storage.writes = births.now
    storage.shared = False
    storage.cover = None


class LazyStorage(Storage):
    """A storage whose array is read when it is first touched; from then on it is a Storage like any other."""

    __slots__ = ()

    def __init__(self, unread: Unread | Pending) -> None:
        begin(self, unread)

    @property
    def array(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        with reading:
            unread = yet_to_read(self)
            if unread is not None:
                array, shared = unread.read()
                cell.__set__(self, array)
                self.shared = shared
            if unread is not None or type(self) is LazyStorage:  # a program may have put its result there
                self.__class__ = Storage  # pyright: ignore[reportAttributeAccessIssue]
            return cell.__get__(self)

    @array.setter
    def array(self, array: Any) -> None:
        cell.__set__(self, array)
        self.__class__ = Storage  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def operand(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        held = cell.__get__(self)
        return held if type(held) is Pending and held._value is None else self.array

    def nbytes(self) -> int:
        held = cell.__get__(self)
        if type(held) is Pending:
            return held.aval.size * held.aval.dtype.itemsize
        with reading:
            unread = yet_to_read(self)
            return Storage.nbytes(self) if unread is None else math.prod(unread.shape) * unread.dtype.itemsize

    @property
    def device(self) -> devices.device:
        held = cell.__get__(self)
        if type(held) is Pending:
            return devices.of_array(held)
        with reading:
            unread = yet_to_read(self)
            if unread is None or isinstance(unread, Pending):
                return devices.of_array(cell.__get__(self))
            return unread.device

    @property
    def is_meta(self) -> bool:
        return self.device.type == "meta"


def promise(storage: Storage, pending: Pending | HostValues) -> bool:
    """Put a pending array, or the host's, in the place of a storage's own; whether that can be."""
    if others or not (type(storage) is Storage or type(storage.raw) in UNMADE):
        return False
    # No call from here on: a signal finds the old value or the new one.
    storage.raw = pending
    storage.__class__ = LazyStorage
    storage.writes += 1
    storage.shared = False
    return True


UNMADE = frozenset((Pending, HostValues))
"""What a LazyStorage holds whose array is still to be made, of those that a write may replace by another."""


def found_all(storages: Iterable[Storage]) -> None:
    """Have storages hold what came of that which they held pending, as each would when it is touched."""
    for storage in storages:
        held: Any = storage.raw
        if type(held) is Pending and type(storage) is LazyStorage and held._value is not None:
            cell.__set__(storage, held._value)
            storage.__class__ = Storage  # pyright: ignore[reportAttributeAccessIssue]


def _references(storage: Storage) -> int:
    return sys.getrefcount(storage.array)


# Calibrated, since what a call itself holds differs between CPython versions.
SOLE = _references(Storage(object()))
"""What `sys.getrefcount(storage.array)` is, in a function, where nobody but the storage holds the array."""


class UntypedStorage:
    """What `Tensor.untyped_storage()` gives: the bytes of a storage, by identity, size and content.

    It can hold attributes; there is one for a storage, as long as somebody holds it.
    """

    __slots__ = ("__dict__", "__weakref__", "_xt_storage")
    is_sparse = False
    filename: str | None = None
    # The bytes of a file that is shared; set by `compat.legacy`, which makes tensors over it.
    shared_file: ClassVar[Callable[[Any, int], UntypedStorage]]
    _xt_made: ClassVar[weakref.WeakValueDictionary[int, UntypedStorage]] = weakref.WeakValueDictionary()

    def __init__(
        self, storage: Storage | int | Iterable[int] = 0, *, device: devices.DeviceLike = None
    ) -> None:
        if not isinstance(storage, Storage):
            data, place = _bytes_given(storage), devices.resolve(device)
            meta = place.type == "meta"
            storage = Storage(MetaArray(data.shape, data.dtype) if meta else devices.put(data, place))
            self._xt_made[id(storage)] = self
        self._xt_storage = storage

    @classmethod
    def over(cls, storage: Storage) -> UntypedStorage:
        """The bytes of a storage; the object that there is, while there is one."""
        found = cls._xt_made.get(id(storage))
        if found is None or found._xt_storage is not storage:
            found = cls._xt_made[id(storage)] = cls(storage)
        return found

    @property
    def _cdata(self) -> int:
        """A number that tells this storage from any other."""
        return id(self._xt_storage)

    def _bytes(self) -> Storage:
        """The storage, to be read or written.

        Raises: RuntimeError for that of a tensor whose class keeps its values elsewhere.
        """
        if isinstance(self._xt_storage, WrapperStorage):
            raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")
        return self._xt_storage

    def data_ptr(self) -> int:
        """A number that tells this memory from any other."""
        return self._bytes().data_ptr()

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._xt_storage.nbytes()

    def size(self) -> int:
        """How many bytes there are."""
        return self._xt_storage.nbytes()

    def element_size(self) -> int:
        """1: the elements of an untyped storage are bytes."""
        return 1

    def __len__(self) -> int:
        return self._xt_storage.nbytes()

    @property
    def device(self) -> devices.device:
        return self._xt_storage.device

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """The index of the device; -1 on a CPU."""
        place = self.device
        return -1 if place.type == "cpu" else place.index or 0

    def is_shared(self) -> bool:
        """Whether other processes see the memory: never."""
        return False

    def is_pinned(self, device: devices.DeviceLike = None) -> bool:
        """Whether the memory is pinned: never."""
        return False

    def resizable(self) -> bool:
        """Whether the number of bytes can be changed."""
        return True

    def type(self) -> str:
        """The name of the class."""
        return "torch.storage.UntypedStorage"

    def new(self) -> UntypedStorage:
        """A storage without bytes on the same device."""
        return UntypedStorage(0, device=self.device)

    def _write(self, data: np.ndarray[Any, Any]) -> UntypedStorage:
        array = self._bytes().array
        values = np.ascontiguousarray(data).reshape(-1).view(array.dtype).reshape(array.shape)
        self._xt_storage.replace(devices.put(values, devices.of_array(array)))
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        return self._write(np.full(self.nbytes(), value, np.uint8))

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Take over the bytes of another storage, which has as many.

        Raises: RuntimeError where it has not.
        """
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        return self._write(np.frombuffer(source.tobytes(), np.uint8))

    def __setitem__(self, index: int | slice, value: int) -> None:
        data = np.frombuffer(self.tobytes(), np.uint8).copy()
        data[index] = value
        self._write(data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._xt_storage is self._xt_storage

    def __hash__(self) -> int:
        return hash(id(self._xt_storage))

    def to(self, device: devices.DeviceLike) -> UntypedStorage:
        """The same bytes on another device: itself where it is there already."""
        place = devices.resolve(device)
        storage = self._xt_storage
        if place == storage.device:
            return self
        unread = yet_to_read(storage)
        if unread is not None and not isinstance(unread, Pending):
            return UntypedStorage(LazyStorage(unread.on(place)))
        return UntypedStorage(Storage(devices.put(self._xt_storage.array, place)))

    def cpu(self) -> UntypedStorage:
        """The same bytes on the CPU."""
        return self.to("cpu")

    def cuda(self, device: devices.DeviceLike = None) -> UntypedStorage:
        """The same bytes on a GPU."""
        return self.to(devices.device("cuda", device) if type(device) is int else device or "cuda")

    def _refuse_meta(self) -> None:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def tobytes(self) -> bytes:
        """A copy of the bytes."""
        return np.asarray(self._bytes().array).tobytes()

    def tolist(self) -> list[int]:
        """The bytes as numbers from 0 to 255."""
        self._refuse_meta()
        return list(self.tobytes())

    def __getitem__(self, index: int | slice) -> Any:
        """A byte; of a slice, a storage.

        Differs from PyTorch: the bytes of a slice are a copy, those of a mapped file aside.
        """
        self._refuse_meta()
        data = np.frombuffer(self.tobytes(), np.uint8)[index]
        return int(data) if isinstance(index, int) else HostBytes(data)

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def clone(self) -> UntypedStorage:
        """A copy in memory of its own."""
        return HostBytes(np.frombuffer(self.tobytes(), np.uint8))

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        return memo.setdefault(id(self), UntypedStorage.over(twin_of(self._xt_storage, memo)))

    def _fix_weakref(self) -> None:
        """Nothing: a storage that is reached again through a weak reference is whole here."""

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Turn the bytes of every number around, which has as many as one of `dtype`; of a complex number, of its parts."""
        size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        self._write(np.frombuffer(self.tobytes(), np.uint8).reshape(-1, size)[:, ::-1])

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, read where they are asked for; `shared`: the file's own memory, so that a write to the one shows in the other.

        Differs from PyTorch: at most 1 MiB is shared.

        Example: `storage = xtensor.UntypedStorage.from_file(path, False, 100); x = xtensor.asarray(storage[4:8])`.
        """
        if shared:
            made = UntypedStorage.shared_file(filename, nbytes)
            made.filename = str(filename)
            return made
        size = os.stat(filename).st_size if nbytes == 0 else nbytes
        return HostBytes(np.memmap(filename, np.uint8, "r", shape=(size,)) if size else np.zeros(0, np.uint8))

    def resize_(self, nbytes: int) -> UntypedStorage:
        """Change the number of bytes; what was there keeps its place, what is new is zero."""
        resize(self._bytes(), nbytes)
        return self

    def _write_file(
        self, f: Any, is_real_file: bool = False, save_size: bool = False, element_size: int = 1
    ) -> None:
        """Write the bytes to a file or a buffer, after how many elements there are where that is asked for."""
        data = self.tobytes()
        f.write((len(data) // element_size).to_bytes(8, sys.byteorder) + data if save_size else data)

    def __repr__(self) -> str:
        lines = "".join([f" {byte}\n" for byte in self.tolist()]) or "\n"
        name = checks.spelled("storage.UntypedStorage")
        return f"{lines}[{name}(device={self.device}) of size {self.nbytes()}]"


def _bytes_given(given: Any) -> np.ndarray[Any, Any]:
    """So many zeros, or the bytes of a sequence."""
    if isinstance(given, int):
        return np.zeros(given, np.uint8)
    if not isinstance(given, Sequence):
        raise RuntimeError(
            f"torch.UntypedStorage(): Expected a sequence type, but got {type(given).__name__}"
        )
    for item in given:
        if not isinstance(item, int):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(given).__name__}), but one of "
                f"the items was of type {type(item).__name__} instead of int"
            )
    return np.asarray([*given], np.uint8)


def unclaimed() -> None:
    """Stands in a new storage's `cover` until the first of its tensors takes its sizes from the array."""


def claimable(array: Any, shared: bool = False) -> Storage:
    """A storage whose first tensor is still to be made."""
    storage = Storage(array, shared)
    storage.cover = unclaimed  # type: ignore[assignment]
    return storage


def twin_of(storage: Storage, memo: dict[int, Any]) -> Storage:
    """A storage's copy among those of a deep copy; both hold the one immutable array until either is written."""
    twin = memo.get(id(storage))
    if twin is None:
        twin = memo[id(storage)] = claimable(storage.array, storage.shared)
    return twin


class HostBytes(UntypedStorage):
    """Bytes of the host's, of a mapped file or a copy: an array is made of them when one is asked for."""

    __slots__ = ("_made", "memory")

    def __init__(self, memory: np.ndarray[Any, Any]) -> None:
        self.memory = memory
        self._made: Storage | None = None

    @property
    def _xt_storage(self) -> Storage:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self._made is None:
            self._made = Storage(devices.put(np.array(self.memory), devices.device("cpu")))
        return self._made

    def nbytes(self) -> int:
        return self.memory.size

    size = __len__ = nbytes

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        return memo.setdefault(id(self), self.clone())

    def tobytes(self) -> bytes:
        return self.memory.tobytes() if self._made is None else super().tobytes()

    def __getitem__(self, index: int | slice) -> Any:
        if self._made is not None or isinstance(index, int):
            return super().__getitem__(index)
        return HostBytes(self.memory[index])


def resize(storage: Storage, nbytes: int) -> None:
    """Give the storage room for `nbytes` bytes, as a flat array of its dtype, new elements zero."""
    capture.moved(False)
    array = storage.array
    itemsize = array.dtype.itemsize
    count = -(-nbytes // itemsize)
    cover = storage.cover() if storage.cover is not None else None
    if cover is not None:
        cover._pin_geometry()
    if type(array) is MetaArray:
        storage.replace(MetaArray((count,), array.dtype))
        return
    check_sizes((count,), itemsize)
    flat = np.asarray(array).reshape(-1)
    data = np.zeros(count, dtype=array.dtype)
    data[: min(count, flat.size)] = flat[:count]
    device = devices.of_array(array)
    storage.replace(devices.put(data, device))
    storage.address = 0
