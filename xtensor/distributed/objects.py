"""Collectives on Python's objects: they are pickled, and travel through the store."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from .collectives import source_in
from .group import ProcessGroup, chosen

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"]


def put(found: ProcessGroup, call: str, name: str, value: Any) -> None:
    found.store.set(f"{call}/{name}", pickle.dumps(value))


def take(found: ProcessGroup, call: str, name: str) -> Any:
    found.store.wait([f"{call}/{name}"], found.timeout)
    return pickle.loads(found.store.get(f"{call}/{name}"))


def done(found: ProcessGroup, call: str, names: Sequence[str]) -> None:
    """Let the keys of a call go once everybody has read them."""
    if found.store.add(f"{call}/readers", 1) == found.size():
        for name in (*names, "readers"):
            found.store.delete_key(f"{call}/{name}")


def begun(group: Any) -> tuple[ProcessGroup, str]:
    found = chosen(group)
    return found, f"objects/{found.next_call()}"


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Give all processes the objects of all, in the order of the ranks."""
    found, call = begun(group)
    put(found, call, str(found.rank()), obj)
    names = [str(rank) for rank in range(found.size())]
    object_list[:] = [take(found, call, name) for name in names]
    done(found, call, names)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Give rank `dst` (0 if not said) the objects of all, in `object_gather_list`, which the others leave out."""
    found, call = begun(group)
    target = source_in(found, 0 if dst is None and group_dst is None else dst, group_dst, "dst")
    mine = found.rank() == target
    if mine and not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    if not mine and object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must NOT be specified on non-destination ranks.")
    put(found, call, str(found.rank()), obj)
    names = [str(rank) for rank in range(found.size())]
    if mine:
        assert object_gather_list is not None
        object_gather_list[:] = [take(found, call, name) for name in names]
    done(found, call, names)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Give all processes the objects of rank `src` (0 if not said)."""
    found, call = begun(group)
    source = source_in(found, 0 if src is None and group_src is None else src, group_src, "src")
    if found.rank() == source:
        put(found, call, "all", list(object_list))
    else:
        object_list[:] = take(found, call, "all")
    done(found, call, ["all"])


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Put into the first place of a list this process's object of those of rank `src` (0 if not said)."""
    found, call = begun(group)
    source = source_in(found, 0 if src is None and group_src is None else src, group_src, "src")
    names = [str(rank) for rank in range(found.size())]
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if found.rank() == source:
        if scatter_object_input_list is None or len(scatter_object_input_list) != found.size():
            raise ValueError(
                "source rank must provide non-None scatter_object_input_list, one object for each process"
            )
        for name, value in zip(names, scatter_object_input_list, strict=True):
            put(found, call, name, value)
    scatter_object_output_list[0] = take(found, call, str(found.rank()))
    done(found, call, names)
