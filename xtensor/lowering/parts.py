"""Lists too long for one program, in parts: what XLA takes to compile a program grows with its operands, and faster than they do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

__all__ = ["PART", "TOGETHER", "alike", "slices"]

TOGETHER = 256
"""The arrays that one program takes at most, where there may be any number: each costs 12 ms to compile, of a thousand 20 to 60 ms."""
PART = 64
"""How many of more than these a program takes."""


def alike(forms: Iterable[Hashable]) -> Iterator[list[int]]:
    """The places of equal forms, `PART` at a time: the programs are as many as there are forms, however long the list."""
    found: dict[Hashable, list[int]] = {}
    for place, form in enumerate(forms):
        found.setdefault(form, []).append(place)
    for places in found.values():
        for part in slices(len(places)):
            yield places[part]


def slices(count: int) -> Iterator[slice]:
    """What parts a list of so many in order."""
    for start in range(0, count, PART):
        yield slice(start, start + PART)
