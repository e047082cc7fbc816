"""Options of XLA's CPU compiler that JAX has no way to set for one program.

They are entries of a map, `xla_backend_extra_options`, which is a field of the options that a program is compiled with. JAX sets fields by name,
but no maps; so the entries are appended to the options as they are spelled in bytes, which protocol buffers define to be the same as having
them set. JAX's keys of programs tell them apart.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from .cache import bounded
from .jax_internals import compiling

__all__ = ["extra"]

FIELDS = (3, 3, 500)
"""Of `CompileOptionsProto`: `executable_build_options`, in it `debug_options`, in it `xla_backend_extra_options`."""


class _Own(threading.local):
    """The names that this thread's programs are compiled with."""

    names: tuple[str, ...] = ()


_own = _Own()


@contextlib.contextmanager
def extra(names: tuple[str, ...]) -> Iterator[None]:
    """A context in which this thread compiles one program with such options, besides those of the process."""
    if names and compiling is not None and compiling.seat.create_compile_options is compiling.make:
        compiling.seat.create_compile_options = _make
    try:
        _own.names = names
        yield
    finally:
        _own.names = ()


def _make(*args: Any, **options: Any) -> Any:
    """In the place of JAX's `create_compile_options`: what that makes, with what the thread adds."""
    made = compiling.make(*args, **options)
    return compiling.parse(made.SerializeAsString() + spelled(_own.names)) if _own.names else made


@bounded(16)
def spelled(names: tuple[str, ...]) -> bytes:
    """Options that hold nothing but these entries, each with an empty value."""
    found = b""
    for name in names:
        entry = message(1, name.encode()) + message(2, b"")
        for field in reversed(FIELDS):
            entry = message(field, entry)
        found += entry
    return found


def message(field: int, content: bytes) -> bytes:
    """A field that has a length."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """A number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)
