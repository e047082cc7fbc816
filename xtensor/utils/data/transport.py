"""Objects on their way between a program and its workers: cloudpickle, with large memory set aside and mapped.

What lies in `__main__` or in a function is sent by value, so that it need not be imported; large arrays and tensors go
into memory without a name, which both sides map and which is gone with the last of them, however they end.
"""

from __future__ import annotations

import ctypes
import importlib
import io
import itertools
import linecache
import mmap
import multiprocessing.context
import os
import pickle
import sys
import weakref
from collections import ChainMap
from collections.abc import Sequence
from multiprocessing import reduction
from multiprocessing.connection import Connection
from types import CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle
import numpy as np

from ... import dtypes
from ...storage import Storage
from .late import host_values, is_meta, rebuild_storage

__all__ = ["Packed", "forget", "pack", "pack_for_workers", "receive", "send", "unpack_in_worker"]

ASIDE = 64 << 10
"""From how many bytes on memory is not copied into the pickle."""

ALIGNMENT = 64  # bytes: XLA takes memory so aligned without a copy
AT_ONCE = 1 << 30  # bytes that one call writes

contexts: Any = multiprocessing.context
MAPPING = hasattr(os, "memfd_create")
if MAPPING:
    _libc: Any = ctypes.CDLL(None, use_errno=True)
    _libc.mmap.restype = ctypes.c_void_p
    _libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    _libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
FAILED = ctypes.c_void_p(-1).value


# ---- what is sent by value, and comes back -------------------------------------------------------------------------

_tokens = itertools.count()
_classes: dict[tuple[int, int], type] = {}


def remember(classes: Sequence[type]) -> int:
    """A number for classes that workers have copies of: theirs come back as these."""
    token = next(_tokens)
    _classes.update({(token, i): kind for i, kind in enumerate(classes)})
    return token


def forget(token: int) -> None:
    """Let go of the classes of a number."""
    for key in [key for key in _classes if key[0] == token]:
        del _classes[key]


def class_of(token: int, index: int) -> type:
    """The program's own class that a worker has a copy of."""
    return _classes[token, index]


def named_code(file: str, make: Any, parts: tuple[Any, ...]) -> CodeType:
    """Code in a worker, of the file or the cell that it is of."""
    return make(*parts).replace(co_filename=file)


def code_with_its_file(code: CodeType) -> tuple[Any, ...]:
    """Code for a worker, whose tracebacks name its file: cloudpickle alone drops the name (since 3.1.3)."""
    table: Any = cloudpickle.Pickler.dispatch_table
    return named_code, (code.co_filename, *table[CodeType](code))


class Packer(cloudpickle.Pickler):
    """Pickles anything that cloudpickle does, tensors by their memory, and the classes in `known` by their numbers."""

    def __init__(
        self, file: Any, buffers: list[memoryview], known: dict[type, tuple[int, int]], more: Any = None
    ) -> None:
        def set_aside(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes >= ASIDE:
                buffers.append(raw)
            return raw.nbytes < ASIDE

        own: Any = cloudpickle.Pickler.dispatch_table
        self.dispatch_table = ChainMap(
            more or {}, {CodeType: code_with_its_file}, own
        )  # taken when it is made
        super().__init__(file, protocol=5, buffer_callback=set_aside)
        self.known = known
        self.classes: list[type] = []
        self.files: set[str] = set()
        self.modules: set[str] = set()

    def reducer_override(self, obj: Any) -> Any:
        """How tensors, classes and functions are pickled; the rest as ever."""
        if isinstance(obj, Storage):
            if is_meta(obj):
                return NotImplemented
            values = np.ascontiguousarray(host_values(obj))
            raw: Any = values.reshape(-1).view(np.uint8)
            return rebuild_storage, (pickle.PickleBuffer(raw), values.shape, dtypes.FROM_NUMPY[values.dtype])
        if isinstance(obj, type) and obj in self.known:
            return class_of, self.known[obj]
        if isinstance(obj, (type, FunctionType, ModuleType)):
            name = obj.__name__ if isinstance(obj, ModuleType) else obj.__module__
            if isinstance(name, str):
                self.modules.add(name)
        if isinstance(obj, ModuleType) and sys.modules.get(obj.__name__) is obj:
            return importlib.import_module, (obj.__name__,)  # modules of classes of their own, too
        reduced = super().reducer_override(obj)
        if isinstance(reduced, tuple):
            if isinstance(obj, type) and len(reduced) > 2:
                self.classes.append(obj)
            code = getattr(obj, "__code__", None)
            if code is not None:
                self.files.add(code.co_filename)
        return reduced


class Descriptor:
    """In a pickle, one of the descriptors that came with it."""

    came: list[int] = []

    def __init__(self, index: int) -> None:
        self.index = index

    def detach(self) -> int:
        """The descriptor in this process."""
        return Descriptor.came[self.index]


class Spawning:
    """A context in which what multiprocessing shares only with the processes that it starts can be pickled."""

    DupFd = Descriptor

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def duplicate_for_child(self, fd: int) -> int:
        """The place of a descriptor among those that are sent with the pickle."""
        self.descriptors.append(fd)
        return len(self.descriptors) - 1

    def __enter__(self) -> Spawning:
        self.before = contexts.get_spawning_popen()
        if sys.platform != "win32":
            contexts.set_spawning_popen(self)
        return self

    def __exit__(self, *_: object) -> None:
        contexts.set_spawning_popen(self.before)


def sources(files: set[str]) -> dict[str, list[str]]:
    """The lines of code that lies in no file, as in a notebook: tracebacks of workers show them."""
    return {name: lines for name in files if not os.path.exists(name) and (lines := linecache.getlines(name))}


# ---- messages ------------------------------------------------------------------------------------------------------


def padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Packed:
    """A message: a pickle, and the memory that it speaks of."""

    def __init__(self, data: bytes, buffers: list[memoryview], descriptors: list[int] | None = None) -> None:
        self.data, self.buffers, self.descriptors = data, buffers, descriptors or []
        self.sizes = [buffer.nbytes for buffer in buffers]
        self.memory = -1
        if buffers and MAPPING:
            self.memory = os.memfd_create("xtensor")
            try:
                self.fill()
            except BaseException:
                self.close()
                raise
            self.buffers = []

    def fill(self) -> None:
        start = 0
        for buffer in self.buffers:
            done = 0
            while done < buffer.nbytes:
                done += os.pwrite(self.memory, buffer[done : done + AT_ONCE], start + done)
            start += padded(buffer.nbytes)
        os.ftruncate(self.memory, start)

    def send(self, connection: Connection) -> None:
        """Write the message, which may be sent to others too."""
        head = (self.data, self.sizes, self.memory >= 0, len(self.descriptors))
        connection.send_bytes(pickle.dumps(head))
        for descriptor in (*self.descriptors, *[self.memory][: self.memory >= 0]):
            reduction.send_handle(connection, descriptor, 0)
        for buffer in self.buffers:
            connection.send_bytes(buffer)

    def close(self) -> None:
        """Let go of the memory; who has received it keeps it."""
        if self.memory >= 0:
            os.close(self.memory)
            self.memory = -1


def pack(obj: Any, known: dict[type, tuple[int, int]]) -> Packed:
    """An object as a message, from a worker to the program."""
    file, buffers = io.BytesIO(), []
    Packer(file, buffers, known).dump(obj)
    return Packed(file.getvalue(), buffers)


def pack_for_workers(*objects: Any) -> tuple[Packed, int, set[str]]:
    """Objects as a message from the program to workers, the number that their classes are remembered by, and modules.

    The message holds the objects, the classes that were sent by value, that number and the lines of their code.
    """
    file, buffers = io.BytesIO(), []
    sharing: Any = reduction.ForkingPickler(io.BytesIO())
    packer = Packer(file, buffers, {}, sharing.dispatch_table)
    with Spawning() as spawning:
        packer.dump((objects, packer.classes))
    token = remember(packer.classes)
    extra = pickle.dumps((token, sources(packer.files)))
    return Packed(extra + file.getvalue(), buffers, spawning.descriptors), token, packer.modules


def unpack_in_worker(connection: Connection) -> tuple[tuple[Any, ...], dict[type, tuple[int, int]]]:
    """What `pack_for_workers` packed, and by which numbers the program knows its classes."""
    data, buffers = receive(connection)
    file = io.BytesIO(data)
    token, lines = pickle.load(file)
    for name, text in lines.items():
        linecache.cache[name] = (sum(map(len, text)), None, text, name)
    objects, classes = pickle.load(file, buffers=buffers)
    return objects, {kind: (token, i) for i, kind in enumerate(classes)}


def send(connection: Connection, packed: Packed) -> None:
    """Send a message once."""
    try:
        packed.send(connection)
    finally:
        packed.close()


def receive(connection: Connection) -> tuple[bytes, list[Any]]:
    """The pickle of the next message, and its memory; EOFError where the other side is gone."""
    data, sizes, shared, descriptors = pickle.loads(connection.recv_bytes())
    if descriptors:
        Descriptor.came = [reduction.recv_handle(connection) for _ in range(descriptors)]
    if shared:
        return data, mapped(reduction.recv_handle(connection), sizes)
    buffers = []
    for size in sizes:
        buffer = bytearray(size)
        connection.recv_bytes_into(buffer)
        buffers.append(buffer)
    return data, buffers


def mapped(memory: int, sizes: list[int]) -> list[Any]:
    """Parts of memory that came by its descriptor; what is written to them is seen here alone."""
    starts = list(itertools.accumulate(map(padded, sizes), initial=0))
    total = starts[-1]
    try:
        address = _libc.mmap(None, total, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, memory, 0)
        whole: Any
        if address == FAILED:  # a process has only so many mappings
            whole = bytearray(total)
            with open(memory, "rb", closefd=False) as file:
                file.readinto(whole)
        else:
            whole = (ctypes.c_ubyte * total).from_address(address)
            weakref.finalize(whole, _libc.munmap, address, total).atexit = False
    finally:
        os.close(memory)
    view = memoryview(whole).cast("B")
    return [view[start : start + size] for start, size in zip(starts, sizes)]
