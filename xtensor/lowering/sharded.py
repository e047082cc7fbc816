"""Storages that lie on a mesh in a placement of their own, which every write keeps.

XLA's partitioner chooses how the result of a program lies. Where that is written into a storage that somebody has placed, the next
who reads the storage finds it placed again: nothing of this is on the way of storages that nobody placed.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.core import Tracer

from ..storage import Storage, cell
from ..xla.x64 import call

__all__ = ["ShardedStorage", "follow", "keep", "kept", "lies"]

_slot: Any = Storage.sharing  # type: ignore[attr-defined]


class ShardedStorage(Storage):
    """A storage whose arrays lie as `sharing`, a sharding of JAX's, says; a Storage like any other once it has another rank."""

    __slots__ = ()

    @property
    def array(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        array = cell.__get__(self)
        wanted = _slot.__get__(self)
        if (
            not isinstance(array, jax.Array)
            or isinstance(array, Tracer)
            or (found := array.sharding) is wanted
            or found == wanted
        ):
            return array
        return _placed(self, array, wanted)

    @array.setter
    def array(self, array: Any) -> None:
        cell.__set__(self, array)


def _placed(storage: ShardedStorage, array: Any, wanted: Any) -> Any:
    """The storage's array, moved where it belongs."""
    try:
        array = call(jax.device_put, array, wanted)
    except ValueError:  # resized: what was split has no such dimension any more
        storage.__class__ = Storage  # pyright: ignore[reportAttributeAccessIssue]
        return array
    cell.__set__(storage, array)
    return array


def keep(storage: Storage, sharding: Any) -> None:
    """Have a storage's arrays lie so from now on, whatever is written to it."""
    _ = storage.array  # what is still to be read, is
    _slot.__set__(storage, sharding)
    storage.__class__ = ShardedStorage  # pyright: ignore[reportAttributeAccessIssue]


def kept(storage: Storage) -> Any:
    """The sharding that a storage keeps, or None."""
    return _slot.__get__(storage) if type(storage) is ShardedStorage else None


def lies(storage: Storage) -> Any:
    """The sharding that a storage keeps, also while a function is captured, which puts plain storages in their place; or None."""
    found = getattr(storage, "sharing", None)
    return found if isinstance(found, jax.sharding.NamedSharding) else None


def follow(made: Storage, source: Storage) -> None:
    """Have a new storage lie as one of the same shape does that keeps its placement; any other is left as it is."""
    sharding = kept(source)
    if sharding is not None and made.array.shape == source.array.shape:
        keep(made, sharding)
