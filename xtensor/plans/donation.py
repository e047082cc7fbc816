"""Which saved arrays a plan may take over: reference counts prove that nothing but the graph can see them any more.

An array that several nodes saved is an argument several times; it is donated once, and the plan's function is given it once.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np

from ..operators.nodes import OpNode
from ..storage import Storage
from ..xla.memory import SMALL

__all__ = ["donating", "matching", "owned"]


def owned(nodes: list[Any], args: list[Any]) -> dict[int, tuple[int, ...]]:
    """The arguments that nothing but these nodes can see, tensors and caller having let go of them, and where each is again."""
    holders: dict[int, list[Any]] = {}
    for node in nodes:
        for entry in node.saved if isinstance(node, OpNode) and node.saved is not None else ():
            if type(entry) is tuple and type(entry[0]) is Storage and entry[0].array is entry[2]:
                holders.setdefault(id(entry[2]), []).append(entry)
    places: dict[int, list[int]] = {}
    for i in range(len(args)):
        if id(args[i]) in holders:
            places.setdefault(id(args[i]), []).append(i)
    entry = None
    return {
        at[0]: tuple(at[1:])
        for key, at in places.items()
        if len(at) == len(holders[key]) and is_free(holders[key], args, at[0])
    }


def is_free(entries: list[Any], args: list[Any], at: int) -> bool:
    """Whether the saved entries of an array, its storage and the arguments are all that refers to it."""
    storage = entries[0][0]
    if storage.shared or any(e[0] is not storage for e in entries):
        return False
    extra = len(entries) - 1
    return (
        getrefcount(storage) == REFERENCES[0] + extra and getrefcount(args[at]) == REFERENCES[1] + 2 * extra
    )


def references() -> tuple[int, int]:
    """What `is_free` counts for a storage and an array with one entry and one argument."""
    storage = Storage(object())
    entries, args = [(storage, 0, storage.array)], [storage.array]
    del storage
    storage = entries[0][0]
    return getrefcount(storage), getrefcount(args[0])


REFERENCES = references()


def matching(
    free: dict[int, tuple[int, ...]], args: list[Any], leaves: list[Any]
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """For as many gradients as there are, a free argument of the same shape and dtype that is worth it."""
    room: dict[Any, int] = {}
    for leaf in leaves:
        (aval,) = leaf._xt_metadata
        form = (tuple(aval.shape), np.dtype(getattr(aval.dtype, "numpy", aval.dtype)))
        room[form] = room.get(form, 0) + 1
    found = []
    for i, others in free.items():
        form = (args[i].shape, args[i].dtype)
        if args[i].nbytes >= SMALL and room.get(form):
            room[form] -= 1
            found.append((i, others))
    return tuple(found)


def donating(run: Callable[..., Any], donated: tuple[tuple[int, tuple[int, ...]], ...]) -> Callable[..., Any]:
    """The function, given each array that is donated only once."""
    if not donated:
        return run

    def backward(*given: Any) -> Any:
        every = list(given)
        for i, others in donated:
            for j in others:
                every[j] = given[i]
        return run(*every)

    backward.__name__ = backward.__qualname__ = run.__name__
    return backward
