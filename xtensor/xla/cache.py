"""What is kept to be found again, all of it bounded: one dict, one decorator for functions, one list of all that there are."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar

from .. import capture

__all__ = [
    "BoundedCache",
    "bounded",
    "caches",
    "clear_all",
    "emptied_too",
    "settings",
    "settings_read",
    "size_of",
]

K = TypeVar("K")
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])

_set = dict.__setitem__
_all: set[weakref.ref[Any]] = set()
# Re-entrant: what the garbage collector frees meanwhile may fill a cache itself.
_lock = threading.RLock()


def _register(cache: Any) -> None:
    _all.add(weakref.ref(cache, _all.discard))


class BoundedCache(dict[K, V]):
    """A dict of at most `limit` entries: one more, by `cache[key] = value`, and the eighth that came first goes.

    Lookups are a dict's own, so they change nothing about what is dropped. Threads may share one: of two values for one key
    the last stays, and each thread that is setting an entry may be one past the limit.
    """

    __slots__ = ("__weakref__", "limit")
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"a cache holds at least one entry (got {limit})")
        super().__init__()
        self.limit = limit
        _register(self)

    def __setitem__(self, key: K, value: V) -> None:
        # What goes is freed when this call ends, since its finalizers may come here again.
        gone = self._make_room() if len(self) >= self.limit and key not in self else None
        _set(self, key, value)
        del gone

    def _make_room(self) -> list[Any]:
        """Take out many at once, since each search for the oldest passes those that went before it."""
        with _lock:
            count = len(self) - self.limit + (self.limit // 8 or 1)
            oldest = list(islice(self, max(count, 0)))
            return [self.pop(key, None) for key in oldest]


def bounded(limit: int, typed: bool = False) -> Callable[[F], F]:
    """A decorator that keeps what a function gave for its last `limit` signatures: the rarely used go first.

    typed: arguments of other types are others, though they are equal.
    """

    def keep(function: F) -> F:
        kept: Any = functools.lru_cache(maxsize=limit, typed=typed)(function)
        _register(kept)
        return kept

    return keep


def caches() -> list[Any]:
    """Every cache of the process: each a `BoundedCache` or a function that `bounded` made."""
    return [cache for reference in list(_all) if (cache := reference()) is not None]


def size_of(cache: Any) -> tuple[int, int]:
    """How many entries a cache holds, and how many it may."""
    if isinstance(cache, BoundedCache):
        return len(cache), cache.limit
    info = cache.cache_info()
    return info.currsize, info.maxsize


def clear_all() -> None:
    """Empty every cache: what traces depend on has changed, or memory is short."""
    capture.moved(False)
    for cache in caches():
        (cache.clear if isinstance(cache, BoundedCache) else cache.cache_clear)()
    for forget in emptied_too:
        forget()


emptied_too: list[Callable[[], None]] = []
"""What `clear_all` calls besides, to empty what holds programs in a form of its own."""

settings_read: list[Callable[[], Any]] = []
"""What traces depend on besides their arguments: functions that tell it. Who changes one of them calls `clear_all`."""


def settings() -> tuple[Any, ...]:
    """All that traces depend on besides their arguments, as it is now."""
    return tuple([str(read()) for read in settings_read])
