"""What the program's user allows files to name, beyond the closed list, and how the rest is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pickle import UnpicklingError
from typing import Any

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "refusal",
    "safe_globals",
    "user_globals",
]

SafeGlobal = Callable[..., Any] | tuple[Callable[..., Any], str]

# Nothing in these is ever allowed.
BLOCKED = ("sys", "os", "posix", "nt", "subprocess")

_lock = threading.Lock()
_allowed: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let files name these functions and classes: `load` will then call them with what the file says.

    An element is the object itself, or `(object, "module.name")` where a file names it differently.
    """
    with _lock:
        for item in checked(safe_globals):
            if item not in _allowed:
                _allowed.append(item)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` was given."""
    return list(_allowed)


def clear_safe_globals() -> None:
    """Forget everything that `add_safe_globals` was given."""
    with _lock:
        _allowed.clear()


class safe_globals:
    """A context in which files may name these functions and classes: `add_safe_globals` for a while."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self.added = [item for item in checked(self.safe_globals) if item not in _allowed]
        add_safe_globals(self.added)

    def __exit__(self, *_: object) -> None:
        with _lock:
            for item in self.added:
                if item in _allowed:
                    _allowed.remove(item)


def checked(items: Iterable[Any]) -> list[Any]:
    items = list(items)
    for item in items:
        named(item)
    return items


def named(item: Any) -> tuple[str, Any]:
    """The name under which a file may ask for an element of `add_safe_globals`."""
    if isinstance(item, tuple):
        if len(item) != 2:
            raise ValueError(
                "Expected tuple of length 2 (global, str of callable full path), but got tuple of length: "
                f"{len(item)}"
            )
        if type(item[1]) is not str:
            raise TypeError(
                f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}"
            )
        return item[1], item[0]
    return f"{item.__module__}.{item.__qualname__}", item


def user_globals() -> dict[str, Any]:
    """What files may name because the user said so."""
    return dict(map(named, _allowed))


def refusal(name: str, where: str) -> UnpicklingError:
    """The error for a global that is not on the list."""
    module = name.split(".", 1)[0]
    if module in BLOCKED:
        return UnpicklingError(
            f"Weights only load failed. Trying to load unsupported GLOBAL {name} whose module {module} is blocked "
            f"({where})."
        )
    shown = name.removeprefix("builtins.")
    return UnpicklingError(
        f"Weights only load failed. Unsupported global: GLOBAL {shown} was not an allowed global by default ({where}). "
        f"Nothing was loaded. Please use `xtensor.serialization.add_safe_globals([{shown}])` or the "
        f"`xtensor.serialization.safe_globals([{shown}])` context manager to allowlist this global if you trust this "
        "class/function, or `weights_only=False` if you trust the whole file: it may then make objects of any class that "
        "can be imported."
    )


def blocked(name: str) -> bool:
    """Whether not even the user can allow this name."""
    return name.split(".", 1)[0] in BLOCKED
