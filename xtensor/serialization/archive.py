"""The zip container: its directory read and checked, its records handed out.

Records are stored, not compressed, so nothing can grow while it is read; each stands where no other does.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from . import options
from .errors import FileFormatError
from .source import Source

__all__ = ["Archive", "Record", "first_name", "is_zip"]

LOCAL, CENTRAL, END, END64, LOCATOR64 = (
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"PK\x05\x06",
    b"PK\x06\x06",
    b"PK\x06\x07",
)
LOCAL_FORMAT, CENTRAL_FORMAT = "<4s5H3L2H", "<4s6H3L5H2L"
LOCAL_SIZE, CENTRAL_SIZE = struct.calcsize(LOCAL_FORMAT), struct.calcsize(CENTRAL_FORMAT)
ENCRYPTED, FULL16, FULL32 = 1, 0xFFFF, 0xFFFFFFFF
LARGEST_DIRECTORY = 1 << 28


class Record(NamedTuple):
    """Where a record's bytes lie, and their checksum."""

    name: str
    start: int
    size: int
    crc: int
    compressed: bool


def is_zip(source: Source) -> bool:
    """Whether the file starts as a zip archive does."""
    return source.size >= 4 and source.read(0, 4) == LOCAL


def first_name(source: Source) -> str:
    """The name of the first record of a zip file."""
    header = source.read(0, min(source.size, 30))
    if len(header) < 30:
        return ""
    size = int.from_bytes(header[26:28], "little")
    return source.read(30, min(size, source.size - 30)).decode("utf-8", "replace")


def damaged(what: str) -> FileFormatError:
    return FileFormatError(f"failed reading zip archive: {what}")


class Archive:
    """A zip archive whose records lie in one folder; `records` has them by their names in it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.root = ""
        self.records: dict[str, Record] = {}
        start, size, count = find_directory(source)
        self.read_directory(source.read(start, size), start, count)

    def read_directory(self, directory: bytes, end: int, count: int) -> None:
        """Every entry, each checked alone, then all against each other."""
        at, taken, roots = 0, [], set()
        for _ in range(count):
            name, record, at = self.read_entry(directory, at)
            root, _, inner = name.partition("/")
            roots.add(root)
            if record is None:
                continue
            if inner in self.records:
                raise damaged(f"the record {name!r} is there twice")
            header, record = record
            self.records[inner] = record
            taken.append((header, record.start + record.size, name))
        if len(roots) > 1:
            raise damaged(f"its records lie in more than one folder: {', '.join(sorted(roots)[:4])}")
        self.root = roots.pop() if roots else ""
        taken.sort()
        for (_, stop, name), (start, _, other) in zip(taken, [*taken[1:], (end, end, "the directory")]):
            if stop > start:
                raise damaged(f"the record {name!r} overlaps {other!r}")

    def read_entry(self, directory: bytes, at: int) -> tuple[str, tuple[int, Record] | None, int]:
        """One entry of the directory: the name, where its header stands with the record, and the next entry."""
        if at + CENTRAL_SIZE > len(directory):
            raise damaged("its directory is truncated")
        fields = struct.unpack_from(CENTRAL_FORMAT, directory, at)
        signature, flags, method, crc = fields[0], fields[3], fields[4], fields[7]
        packed, size, name_size, extra_size, comment_size = fields[8:13]
        offset = fields[-1]
        if signature != CENTRAL:
            raise damaged("failed finding central directory entry")
        name_at = at + CENTRAL_SIZE
        extra_at = name_at + name_size
        after = extra_at + extra_size + comment_size
        if after > len(directory):
            raise damaged("its directory is truncated")
        raw_name = directory[name_at:extra_at]
        name = checked_name(raw_name)
        wide = [size == FULL32, packed == FULL32, offset == FULL32]
        if any(wide):
            numbers = iter(read_wide(directory[extra_at : extra_at + extra_size], sum(wide)))
            size, packed, offset = (
                next(numbers) if wide[i] else narrow for i, narrow in enumerate((size, packed, offset))
            )
        if flags & ENCRYPTED:
            raise damaged(f"the record {name!r} is encrypted")
        if method == 0 and packed != size:
            raise damaged(f"the record {name!r} has two sizes")
        if name.endswith("/"):
            return name, None, after
        start = self.find_data(offset, raw_name, name)
        self.source.check(start, packed)
        return name, (offset, Record(name, start, packed, crc, method != 0)), after

    def find_data(self, offset: int, raw_name: bytes, name: str) -> int:
        """Where the bytes of a record start, behind its local header."""
        header = self.source.read(offset, LOCAL_SIZE)
        fields = struct.unpack(LOCAL_FORMAT, header)
        if fields[0] != LOCAL:
            raise damaged(f"the record {name!r} has no header")
        if self.source.read(offset + LOCAL_SIZE, fields[-2]) != raw_name:
            raise damaged(f"the record {name!r} has another name in its header")
        return offset + LOCAL_SIZE + fields[-2] + fields[-1]

    def __contains__(self, name: str) -> bool:
        return name in self.records

    def record(self, name: str) -> Record:
        """A record by its name."""
        found = self.records.get(name)
        if found is None:
            raise FileFormatError(f"file not found in the archive: {self.root}/{name}")
        if found.compressed:
            raise damaged(f"the record {name!r} is compressed: checkpoints are stored")
        return found

    def read(self, name: str) -> bytes:
        """The bytes of a small record, its checksum compared."""
        record = self.record(name)
        data = self.source.read(record.start, record.size)
        verify(record, data)
        return data

    def read_array(self, record: Record) -> np.ndarray[Any, Any]:
        """The bytes of a record as an array, in the mapping if the file is mapped, its checksum compared."""
        data = self.source.read_array(record.start, record.size)
        verify(record, data)
        return data


def verify(record: Record, data: Any) -> None:
    if options.checks_crc32() and zlib.crc32(data) != record.crc:
        raise FileFormatError(f"the file is damaged: wrong CRC32 checksum of the record {record.name!r}")


def find_directory(source: Source) -> tuple[int, int, int]:
    """Offset, size and number of entries of the central directory."""
    tail_at = max(0, source.size - 22 - FULL16)
    tail = source.read(tail_at, source.size - tail_at)
    found = tail.rfind(END)
    if found < 0 or found + 22 > len(tail):
        raise damaged("failed finding central directory (is the file truncated?)")
    disk, first, _, count, size, start, _ = struct.unpack_from("<4H2LH", tail, found + 4)
    if disk != first:
        raise damaged("it is one of several volumes")
    end = tail_at + found
    locator = end - 20
    if (count == FULL16 or FULL32 in (size, start)) and locator >= 0 and source.read(locator, 4) == LOCATOR64:
        end = struct.unpack("<Q", source.read(locator + 8, 8))[0]
        fields = struct.unpack("<4sQ2H2L4Q", source.read(end, 56))
        if fields[0] != END64:
            raise damaged("failed finding central directory")
        count, size, start = fields[7:10]
    if start + size > end:
        raise damaged("its directory is larger than the file")
    if size > LARGEST_DIRECTORY or count * CENTRAL_SIZE > size:
        raise damaged(f"its directory claims {count} entries in {size} bytes")
    return start, size, count


def read_wide(extra: bytes, count: int) -> tuple[int, ...]:
    """The 64-bit numbers of an entry's extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind == 1 and size >= 8 * count and at + 4 + size <= len(extra):
            return struct.unpack_from(f"<{count}Q", extra, at + 4)
        at += 4 + size
    raise damaged("an entry lacks its 64-bit sizes")


def checked_name(raw: bytes) -> str:
    """The name of an entry, which must stay inside the archive."""
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise damaged(f"the name {raw[:80]!r} is not UTF-8") from None
    parts = name.removesuffix("/").split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise damaged(f"the name {name[:80]!r} leads out of the archive")
    return name
