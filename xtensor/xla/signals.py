"""Signals and CPython: what must be undone is undone, wherever a handler interrupts.

CPython looks for signals as a function begins and after calls. State that a block holds is therefore set and put back by plain
assignments, in `__enter__` after the last call, in `__exit__` before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["from_start"]

F = TypeVar("F", bound=Callable[..., Any])


def from_start(function: F) -> F:
    """The function, whose first `try` holds from its very first instruction.

    CPython handles signals as a function begins, before any line of it: an interrupt there would leave `__exit__` without having
    undone anything. The table of exceptions is changed to cover that instruction too.
    """
    code = getattr(function, "__code__", None)
    table = getattr(code, "co_exceptiontable", b"")
    if not table:
        return function
    data = iter(table)
    start, length = _varint(data), _varint(data)
    table = _encoded(0, first=128) + _encoded(start + length) + bytes(data)
    function.__code__ = code.replace(co_exceptiontable=table)  # pyright: ignore[reportFunctionMemberAccess, reportOptionalMemberAccess]
    return function


def _varint(data: Iterator[int]) -> int:
    """A number of the table: six bits a byte, the highest first, bit 6 where more follow."""
    value = 0
    for byte in data:
        value = value << 6 | byte & 63
        if not byte & 64:
            break
    return value


def _encoded(value: int, first: int = 0) -> bytes:
    parts = [value & 63]
    while value := value >> 6:
        parts.append(64 | value & 63)
    parts.reverse()
    parts[0] |= first
    return bytes(parts)
