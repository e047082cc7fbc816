"""The removable handle that every kind of hook registration returns."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .. import capture

__all__ = ["HookDict", "MultiHandle", "RemovableHandle", "add_hook"]

HookDict = OrderedDict[int, Callable[..., Any]]
"""Hooks by registration number, in the order they run; an OrderedDict because handles refer to it weakly."""


class RemovableHandle:
    """Takes a hook out of the dictionary it was registered in: by `remove()` or at the end of a `with` block.

    `extra_dict` is a dictionary (or a list of them) with entries under the same number, which go with it.
    """

    _numbers = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id: int = next(RemovableHandle._numbers)
        extra = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra)

    def remove(self) -> None:
        """Remove the hook; a second call, or one after the owner is gone, does nothing."""
        capture.moved(False)
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, saved: tuple[Any, ...]) -> None:
        hooks, self.id, extra = saved
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra if d is not None)
        # Numbers drawn later must not collide with the one just loaded.
        following = max(next(RemovableHandle._numbers), self.id + 1)
        RemovableHandle._numbers = itertools.count(following)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class MultiHandle(RemovableHandle):
    """One handle for several registrations."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[RemovableHandle, ...]:
        return self.handles

    def __setstate__(self, saved: tuple[RemovableHandle, ...]) -> None:
        self.handles = saved


def add_hook(hooks: HookDict, hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook` at the end of `hooks`."""
    capture.moved(False)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
