"""Comparisons of open sizes in a user's code: decided where they hold for all sizes, or for none, and refused otherwise.

JAX says that two sizes differ where it cannot tell (its own tables need an answer), so that `if x.shape[0] == 4:` would go the other way for
good. While a module is traced, such a question of code outside of libraries raises, as `x.shape[0] > 4` does.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jax import export

from ..xla.symbolic import Inconclusive
from .pure import INSIDE

__all__ = ["strict_sizes", "undecided"]


class _Asked(threading.local):
    strict: Callable[[Any, Any], bool] | None = None


_asked = _Asked()


def undecided(size: Any, other: Any) -> bool:
    """Refuse to answer."""
    raise Inconclusive(f"{size} == {other} holds for some sizes, and not for others")


@contextlib.contextmanager
def strict_sizes(answer: Callable[[Any, Any], bool] = undecided) -> Iterator[None]:
    """A block in which, on this thread, code outside of libraries gets `answer(size, other)` where nothing decides whether sizes are equal."""
    before, _asked.strict = _asked.strict, answer
    try:
        yield
    finally:
        _asked.strict = before


def of_user() -> bool:
    """Whether the code that asks, two frames further out, is none of a library's."""
    if _asked.strict is None:
        return False
    name = str(sys._getframe(2).f_globals.get("__name__", ""))
    return name.partition(".")[0] not in INSIDE


def alike(size: Any, other: Any) -> bool:
    """Whether two sizes are equal. Open sizes are more than one, as PyTorch takes them."""
    difference = size - other
    if not export.is_symbolic_dim(difference):
        return bool(difference == 0)
    if not export.is_symbolic_dim(other) and other < 2 and str(size).isidentifier():
        return False
    for differs in (lambda: difference >= 1, lambda: difference <= -1):
        with contextlib.suppress(Inconclusive):
            if differs():
                return False
    return (_asked.strict or undecided)(size, other)


def install() -> None:
    """Put the question before JAX's own answers."""
    kind: Any = type(export.symbolic_shape("a")[0])
    plain, hashed = kind.__eq__, kind.__hash__

    def is_size(value: Any) -> bool:
        return isinstance(value, (int, np.integer)) or export.is_symbolic_dim(value)

    def equal(self: Any, other: Any) -> Any:
        return alike(self, other) if of_user() and is_size(other) else plain(self, other)

    def differs(self: Any, other: Any) -> Any:
        return not (alike(self, other) if of_user() and is_size(other) else plain(self, other))

    def hash_of(self: Any) -> int:
        if of_user():
            raise TypeError(f"unhashable type: the size {self}, which is open")
        return hashed(self)

    def truth(self: Any) -> bool:
        return not alike(self, 0) if of_user() else True

    kind.__eq__, kind.__ne__, kind.__hash__, kind.__bool__ = equal, differs, hash_of, truth


install()
