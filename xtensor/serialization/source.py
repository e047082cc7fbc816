"""The bytes of a file: read in pieces, or mapped into memory."""

from __future__ import annotations

import io
import mmap
import os
from typing import IO, Any

import numpy as np

from .errors import FileFormatError

__all__ = ["FileLike", "MappedSource", "Source", "aligned"]

FileLike = str | os.PathLike[str] | IO[bytes]

# XLA takes host memory as it is where it starts at a multiple of this.
ALIGNMENT = 64


def aligned(nbytes: int) -> np.ndarray[Any, Any]:
    """Fresh bytes that an array can be made of without a copy."""
    room = np.empty(nbytes + ALIGNMENT, np.uint8)
    skip = -room.ctypes.data % ALIGNMENT
    return room[skip : skip + nbytes]


class Source:
    """The bytes of a seekable stream from where it stands to its end."""

    def __init__(self, stream: IO[bytes], owned: bool = False) -> None:
        self.stream = stream
        self.owned = owned
        try:
            stream.read  # noqa: B018
            self.start = stream.tell()
            self.size = stream.seek(0, io.SEEK_END) - self.start
            stream.seek(self.start)
        except (AttributeError, OSError) as error:
            kind = AttributeError if isinstance(error, AttributeError) else io.UnsupportedOperation
            raise kind(
                f"{error}. You can only load from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            ) from error

    @classmethod
    def open(cls, f: FileLike) -> Source:
        """The source of a path or a stream; what it opened it closes."""
        # Unbuffered: large reads into fresh memory are several times slower through Python's buffer.
        return cls(open(f, "rb", 0), owned=True) if isinstance(f, (str, os.PathLike)) else cls(f)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        if self.owned:
            self.stream.close()

    def read(self, offset: int, count: int) -> bytes:
        """Exactly `count` bytes; FileFormatError where the file ends before."""
        self.check(offset, count)
        self.stream.seek(self.start + offset)
        data = self.stream.read(count)
        while 0 < len(data) < count and (more := self.stream.read(count - len(data))):
            data += more
        if len(data) != count:
            raise truncated(offset, count, self.size)
        return data

    def read_array(self, offset: int, count: int) -> np.ndarray[Any, Any]:
        """Bytes in memory of their own, aligned as XLA likes it."""
        self.check(offset, count)
        data = aligned(count)
        self.stream.seek(self.start + offset)
        into = getattr(self.stream, "readinto", None)
        done = 0
        while done < count:
            if into is not None:
                got = into(data[done:].data) or 0
            else:
                piece = self.stream.read(min(count - done, 1 << 24))
                got = len(piece)
                data[done : done + got] = np.frombuffer(piece, np.uint8)
            if got == 0:
                raise truncated(offset, count, self.size)
            done += got
        return data

    def check(self, offset: int, count: int) -> None:
        """Refuse to read past the end, before anything is allocated."""
        if offset < 0 or count < 0 or offset + count > self.size:
            raise truncated(offset, count, self.size)


def truncated(offset: int, count: int, size: int) -> FileFormatError:
    return FileFormatError(
        f"the file is truncated: {count} bytes are expected at byte {offset}, and it ends at byte {size}"
    )


class MappedSource(Source):
    """A file mapped into memory: its pages are read when they are touched, and can be dropped again."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(open(path, "rb"), owned=True)  # noqa: SIM115
        self.mapping = mmap.mmap(self.stream.fileno(), 0, access=mmap.ACCESS_READ) if self.size else b""

    def read_array(self, offset: int, count: int) -> np.ndarray[Any, Any]:
        """The bytes in the mapping, which must not be written."""
        self.check(offset, count)
        return np.frombuffer(self.mapping, np.uint8, count, offset)
