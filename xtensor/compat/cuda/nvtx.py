"""`torch.cuda.nvtx`: marks for NVIDIA's profilers; they go into this library's own profile, as `record_function` does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...engine import record_function

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_open: list[Any] = []


def range_push(msg: str) -> int:
    """Begin a range inside those that are open; how many were open before comes back."""
    block = record_function(msg)
    block.__enter__()
    _open.append(block)
    return len(_open) - 1


def range_pop() -> int:
    """End the range that was begun last; how many are still open comes back."""
    if _open:
        _open.pop().__exit__(None, None, None)
    return len(_open)


def range_start(msg: str) -> Any:
    """Begin a range that `range_end` ends."""
    block = record_function(msg)
    block.__enter__()
    return block


def range_end(range_id: Any) -> None:
    """End a range of `range_start`."""
    range_id.__exit__(None, None, None)


def mark(msg: str) -> None:
    """A moment, as an empty range."""
    with record_function(msg):
        pass


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A block as a range, or a decorator; the message is formatted with the arguments."""
    with record_function(msg.format(*args, **kwargs)):
        yield
