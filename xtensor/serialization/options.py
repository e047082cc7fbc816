"""Settings of the whole program: checksums, mapping, the byte order of files that do not tell theirs."""

from __future__ import annotations

from enum import Enum

__all__ = [
    "LoadEndianness",
    "checks_crc32",
    "get_crc32_options",
    "get_default_load_endianness",
    "set_crc32_options",
    "set_default_load_endianness",
]


class LoadEndianness(Enum):
    """The byte order to assume of a file that does not tell its own."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_crc32 = True
_endianness: LoadEndianness | None = None


def checks_crc32() -> bool:
    """Whether checksums are computed and compared."""
    return _crc32


def get_crc32_options() -> bool:
    """Whether `save` computes a checksum of every record and `load` compares it."""
    return _crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Turn checksums off (and on again): faster, and flipped bits pass unseen.

    Files that PyTorch wrote with its own `set_crc32_options(False)` load only so.
    """
    global _crc32
    _crc32 = bool(compute_crc32)


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed of files that do not tell theirs; None means little-endian."""
    return _endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Assume this byte order of files that do not tell theirs."""
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _endianness = endianness
