"""What stands between a function that is being captured as one program and those who read or change more than tensors' values.

`epoch` counts the changes of what programs depend on and nobody asks about at every call: a module's attributes, hooks, which
tensors are parameters and which of them require grad. A captured program looks at all of it again once the count has moved.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Watcher", "compiler", "epoch", "moved", "running", "watchers"]

epoch = [0]
"""How many such changes there were."""

compiler: list[Callable[..., Any]] = []
"""What makes a captured function of a function: the layer that can installs itself."""


class Watcher(Protocol):
    """A capture that runs."""

    thread: int
    place: Any

    def draw(self, generator: Any) -> tuple[Any, Any]:
        """The seed and the number of a generator's next draw, as values of the program."""
        ...

    def numbers(self, optimizer: Any) -> Any:
        """The hyperparameters of all groups of an optimizer that makes a step, as one value of the program."""
        ...

    def counts(self, counters: list[Any]) -> list[Any]:
        """What tensors that count steps say, as values of the program."""
        ...

    def skip(self, generator: Any, count: int) -> None:
        """Pass over so many draws of a generator, or take them back."""
        ...

    def unseen(self, array: Any, fits: Callable[[Any], bool], when: Any = None) -> None:
        """Have `fits(array)` asked at every call, of the values that the program then has there; `when`: a value that tells whether."""
        ...

    def refuse(self, reason: str) -> None:
        """End the capture: the function runs eagerly instead."""
        ...

    def steps(self, optimizer: Any) -> None:
        """An optimizer is about to make a step."""
        ...

    def new_module(self, module: Any) -> None:
        """A module is made."""
        ...

    def repeats(self, owner: Any, name: str | None, value: Any) -> bool:
        """Whether the program can make a change of a module again: the module is its own, or an attribute is set."""
        ...


watchers: list[Watcher] = []
"""The captures that run, on whatever thread."""


def running() -> Any:
    """The capture that runs on this thread, or None."""
    if not watchers:
        return None
    watcher = watchers[-1]
    return watcher if watcher.thread == threading.get_ident() else None


def begin(watcher: Watcher) -> None:
    """From now on `running` tells of this capture."""
    watchers.append(watcher)


def end(watcher: Watcher) -> None:
    """The capture is over."""
    if watcher in watchers:
        watchers.remove(watcher)


def refuse(reason: str) -> None:
    """End the capture that runs on this thread, if one does."""
    if watchers:
        watcher = running()
        if watcher is not None:
            watcher.refuse(reason)


def stepping(optimizer: Any) -> None:
    """Tell the capture that runs on this thread, if one does, of an optimizer that makes a step."""
    watcher = running()
    if watcher is not None:
        watcher.steps(optimizer)


def made(module: Any) -> None:
    """Tell the capture that runs on this thread, if one does, of a new module."""
    watcher = running()
    if watcher is not None:
        watcher.new_module(module)


def moved(told: bool = True, owner: Any = None, name: str | None = None, value: Any = None) -> None:
    """Count a change of what captured programs depend on; one that is made within a capture ends it, where it would not be told of itself.

    owner, name, value: of the module that is changed, and the attribute that it gets.
    """
    epoch[0] += 1
    if watchers and told:
        watcher = running()
        if watcher is not None and (owner is None or not watcher.repeats(owner, name, value)):
            watcher.refuse("it changes a module, an optimizer or their hooks")
