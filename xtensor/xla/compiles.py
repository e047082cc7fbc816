"""Tells who asks of every program of xtensor's that is compiled: its name as that begins, then whether a cache had it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from jax import monitoring

__all__ = ["Watcher", "found_on_disk", "unwatch", "watch", "watched"]

Watcher = Callable[[str], Callable[[bool | None], None]]
"""Given a program's name, it returns what is told True (loaded), False (compiled) or None (it was there already)."""

BUILT = "/jax/core/compile/backend_compile_duration"
LOADED = "/jax/compilation_cache/cache_hits"

_watchers: list[Watcher] = []
_makers: list[Watcher] = []
_nobody: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


class _Counts(threading.local):
    """What JAX has reported on this thread: programs made, and those of them that a cache had."""

    built = loaded = 0


_counts = _Counts()


def _on_duration(event: str, *_: Any, **__: Any) -> None:
    if event == BUILT:
        _counts.built += 1


def _on_event(event: str, **_: Any) -> None:
    if event == LOADED:
        _counts.loaded += 1


def found_on_disk() -> None:
    """A program was loaded without asking JAX."""
    _counts.built += 1
    _counts.loaded += 1


def watch(watcher: Watcher, where_made: bool = False) -> None:
    """Tell `watcher` of every program from now on: as it is asked for, or as its making begins, on the thread that makes it."""
    if not _watchers and not _makers:
        monitoring.register_event_duration_secs_listener(_on_duration)
        monitoring.register_event_listener(_on_event)
    (_makers if where_made else _watchers).append(watcher)


def unwatch(watcher: Watcher) -> None:
    """Tell `watcher` no more."""
    listed = next((some for some in (_watchers, _makers) if watcher in some), None)
    if listed is None:
        return
    listed.remove(watcher)
    if not _watchers and not _makers:
        # Who calls `jax.monitoring.clear_event_listeners` has removed them already.
        with contextlib.suppress(AssertionError, ValueError):
            monitoring.unregister_event_duration_listener(_on_duration)
        with contextlib.suppress(AssertionError, ValueError):
            monitoring.unregister_event_listener(_on_event)


def watched(name: str) -> contextlib.AbstractContextManager[None]:
    """A context for making a program of that name, here or on another thread: who asks is asking now. Without watchers it does nothing."""
    return _told([watcher(name) for watcher in _watchers], name) if _watchers or _makers else _nobody


@contextlib.contextmanager
def _told(told: list[Callable[[bool | None], None]], name: str) -> Iterator[None]:
    told = [*told, *[watcher(name) for watcher in _makers]]
    built, loaded = _counts.built, _counts.loaded
    try:
        yield
    finally:
        made = _counts.built - built
        for tell in told:
            tell(_counts.loaded - loaded >= made if made else None)
