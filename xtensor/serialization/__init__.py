"""Checkpoints: PyTorch's files read and written without PyTorch, and without running anything in them."""

from __future__ import annotations

from .allowed import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .errors import FileFormatError
from .loading import load
from .options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    set_crc32_options,
    set_default_load_endianness,
)
from .saving import save

__all__ = [
    "FileFormatError",
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
]
