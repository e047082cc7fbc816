"""PyTorch's format before 1.6: pickles one after the other, then the storages' bytes."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import numpy as np

from .. import devices, dtypes
from .errors import FileFormatError
from .pickles import Global, Machine, Policy, Reader
from .places import MapLocation
from .rebuild import Rebuilder, text
from .source import Source
from .storages import FileStorage

__all__ = ["Stream", "load"]

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


class Plain:
    """The policy of the pickles around the object: no names at all."""

    def find(self, name: str, where: Callable[[], str]) -> Global:
        raise UnpicklingError(f"Unsupported global: GLOBAL {name} in the header of the file ({where()})")

    def trusts(self, kind: type[Any]) -> bool:
        return False

    def persistent(self, saved: Any) -> Any:
        raise UnpicklingError("unsupported persistent id encountered")


class Stream:
    """A file of that format: its header checked, its object next to be read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.reader = Reader(source, 0, source.size, "the file")
        try:
            magic = self.plain()
        except (UnpicklingError, EOFError, UnicodeDecodeError) as problem:
            raise UnpicklingError(
                f"the file starts neither as a zip archive nor as PyTorch's older format: {problem}"
            ) from None
        if magic != MAGIC:
            raise UnpicklingError("Invalid magic number; corrupt file?")
        version = self.plain()
        if version != PROTOCOL:
            raise UnpicklingError(f"Invalid protocol version: {version!r:.40}")
        info = self.plain()
        little = info.get("little_endian", True) if type(info) is dict else True
        self.swapped = bool(little) != (sys.byteorder == "little")

    def plain(self) -> Any:
        return Machine(self.reader, Plain()).load()

    def unpickle(self, policy: Policy, encoding: str = "utf-8") -> Any:
        """The object, by what `policy` allows."""
        return Machine(self.reader, policy, encoding).load()


def load(source: Source, map_location: MapLocation, encoding: str, trusting: bool = False) -> Any:
    """The object of a file of that format; the stream is left behind it."""
    stream = Stream(source)
    contents: dict[str, np.ndarray[Any, Any]] = {}
    sizes: dict[str, tuple[int, int]] = {}

    def open_storage(key: str, nbytes: int, dtype: dtypes.dtype, device: devices.device) -> FileStorage:
        if nbytes > source.size:
            raise FileFormatError(f"the storage {key!r} of {nbytes} bytes is larger than the file")
        sizes[key] = nbytes, dtype.itemsize

        def fetch() -> np.ndarray[Any, Any]:
            if key not in contents:
                raise RuntimeError(f"the storage {key!r} is used before its bytes were read from the file")
            return contents[key]

        return FileStorage(fetch, nbytes, dtype, device, stream.swapped)

    rebuilder = Rebuilder(open_storage, map_location, trusting)
    made = stream.unpickle(rebuilder, encoding)
    keys = stream.plain()
    if type(keys) is not list or sorted(map(text, keys)) != sorted(sizes):
        raise FileFormatError("the list of storages does not match the object")
    at = stream.reader.position
    order = "<q" if (sys.byteorder == "little") != stream.swapped else ">q"
    for key in map(text, keys):
        nbytes, itemsize = sizes[key]
        count = struct.unpack(order, source.read(at, 8))[0]
        if count * itemsize != nbytes:
            raise FileFormatError(
                f"the storage {key!r} should have {nbytes} bytes, and has {count * itemsize}"
            )
        contents[key] = source.read_array(at + 8, nbytes)
        at += 8 + nbytes
    rebuilder.finish()
    source.stream.seek(source.start + at)
    return made
