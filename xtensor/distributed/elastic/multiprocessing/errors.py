"""`torch.distributed.elastic.multiprocessing.errors`: what marks a program's entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["record"]

Entry = TypeVar("Entry", bound=Callable[..., Any])


def record(fn: Entry, error_handler: Any = None) -> Entry:
    """The function itself: the launcher shows errors of processes as they print them."""
    return fn
