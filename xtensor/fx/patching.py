"""Functions that are not traced into: names of programs that stand, while a tracer runs, for functions that make nodes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from .proxy import find_proxy

__all__ = ["Patcher", "recording", "recording_method", "wrap", "wrapped_functions", "wrapped_methods"]

wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}
"""Names that `wrap` was told of, with the globals of their modules."""
wrapped_methods: list[tuple[type, str]] = []


def wrap(fn_or_name: Any) -> Any:
    """Have a function of the calling module be one node where it gets a proxy, instead of being traced into.

    It is called where the module is made, with the function or with the name by which it is found there; also a decorator.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    wrapped_functions[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which becomes a node where it gets a proxy."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = find_proxy(args, kwargs)
        if found is None:
            return function(*args, **kwargs)
        made = found.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def recording_method(kind: type, name: str) -> Callable[..., Any]:
    """The method, which becomes a node where it gets a proxy."""
    method = getattr(kind, name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = find_proxy(args, kwargs)
        if found is None:
            return method(*args, **kwargs)
        return found.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


MISSING = object()


class Patcher:
    """A block that puts other objects under names of dicts and classes, and back what was there."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, str, Any]] = []
        self.seen: set[int] = set()

    def __enter__(self) -> Patcher:
        return self

    def __exit__(self, *error: object) -> None:
        while self.done:
            where, name, before = self.done.pop()
            if isinstance(where, dict):
                if before is MISSING:
                    where.pop(name, None)
                else:
                    where[name] = before
            elif before is MISSING:
                delattr(where, name)
            else:
                setattr(where, name, before)

    def patch(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Put a value under a name of a dict."""
        if not hasattr(names.get(name), "_xt_patched"):
            value._xt_patched = True
            self.done.append((names, name, names.get(name, MISSING)))
            names[name] = value

    def patch_method(self, kind: type, name: str, value: Any) -> None:
        """Put a method under a name of a class."""
        if not hasattr(vars(kind).get(name), "_xt_patched"):
            value._xt_patched = True
            self.done.append((kind, name, vars(kind).get(name, MISSING)))
            setattr(kind, name, value)

    def visit_once(self, thing: object) -> bool:
        """Whether this is the first time that the object comes."""
        first = id(thing) not in self.seen
        self.seen.add(id(thing))
        return first
