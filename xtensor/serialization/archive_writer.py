"""A zip archive written as PyTorch lays it out: stored records, each starting at a multiple of 64 bytes.

It is written from front to back, so that a stream which cannot seek will do; sizes follow each record.
"""

from __future__ import annotations

import struct
import zlib
from typing import IO, Any

from . import options
from .archive import CENTRAL, CENTRAL_FORMAT, END, END64, FULL16, FULL32, LOCAL, LOCAL_FORMAT, LOCATOR64

__all__ = ["ArchiveWriter"]

ALIGNMENT = 64
DESCRIPTOR = b"PK\x07\x08"
SIZES_FOLLOW, UTF8 = 0x0008, 0x0800
PIECE = 1 << 24


class ArchiveWriter:
    """Writes records under one folder; `close` ends the archive."""

    def __init__(self, stream: IO[bytes], root: str) -> None:
        self.stream, self.root = stream, root
        self.at = 0
        self.entries: list[tuple[bytes, int, int, int]] = []

    def put(self, data: bytes) -> None:
        self.stream.write(data)
        self.at += len(data)

    def write(self, name: str, data: Any) -> None:
        """A record with these bytes (any buffer of bytes)."""
        view = memoryview(data).cast("B")
        raw_name = f"{self.root}/{name}".encode()
        offset, size = self.at, len(view)
        wide = size >= FULL32 or offset >= FULL32
        # Sizes are not told here but behind the record, as PyTorch's writer does and its readers count on.
        numbers = 2 * (size >= FULL32) + (offset >= FULL32)
        own = struct.pack(f"<2H{8 * numbers}x", 1, 8 * numbers) if wide else b""
        start = offset + struct.calcsize(LOCAL_FORMAT) + len(raw_name) + len(own) + 4
        padding = -start % ALIGNMENT
        extra = own + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        self.put(
            struct.pack(
                LOCAL_FORMAT, LOCAL, 0, SIZES_FOLLOW | UTF8, 0, 0, 0, 0, 0, 0, len(raw_name), len(extra)
            )
            + raw_name
            + extra
        )
        crc = 0
        for begin in range(0, size, PIECE):
            piece = view[begin : begin + PIECE]
            if options.checks_crc32():
                crc = zlib.crc32(piece, crc)
            self.stream.write(piece)
        self.at += size
        self.put(struct.pack("<4sL2Q" if wide else "<4s3L", DESCRIPTOR, crc, size, size))
        self.entries.append((raw_name, offset, size, crc))

    def close(self) -> None:
        """Write the directory."""
        start = self.at
        for raw_name, offset, size, crc in self.entries:
            wide = [number for number in (size, size, offset) if number >= FULL32]
            extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
            small = min(size, FULL32)
            numbers = (crc, small, small, len(raw_name), len(extra), 0, 0, 0, 0, min(offset, FULL32))
            self.put(
                struct.pack(CENTRAL_FORMAT, CENTRAL, 0, 0, SIZES_FOLLOW | UTF8, 0, 0, 0, *numbers)
                + raw_name
                + extra
            )
        size, count = self.at - start, len(self.entries)
        if start >= FULL32 or size >= FULL32 or count >= FULL16:
            end = self.at
            self.put(struct.pack("<4sQ2H2L4Q", END64, 44, 45, 45, 0, 0, count, count, size, start))
            self.put(struct.pack("<4sLQL", LOCATOR64, 0, end, 1))
        few = min(count, FULL16)
        self.put(struct.pack("<4s4H2LH", END, 0, 0, few, few, min(size, FULL32), min(start, FULL32), 0))
