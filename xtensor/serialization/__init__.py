"""Checkpoints: PyTorch's files read and written without PyTorch, and without running anything in them.

`npz`, `orbax` and `safetensors` are modules for files of other formats; they are imported when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
from .places import default_restore_location, location_tag
from .saving import save

if TYPE_CHECKING:
    from . import npz, orbax, safetensors
    from .contents import Contents, describe, get_unsafe_globals_in_checkpoint

__all__ = [
    "Contents",
    "FileFormatError",
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "describe",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "npz",
    "orbax",
    "safe_globals",
    "safetensors",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
]

# What is imported when it is first asked for: modules, and names with the module that holds them.
_MODULES = ("npz", "orbax", "safetensors")
_HOLDERS = dict.fromkeys(("Contents", "describe", "get_unsafe_globals_in_checkpoint"), "contents")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOLDERS:
        return getattr(import_module(f".{_HOLDERS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
