"""What was read of Python's world, compared with what it is now: one expression of identities, and numbers by value after it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

__all__ = ["EMPTY", "Comparisons", "Read", "comparison", "contents", "holds", "reader", "same"]

SIMPLE = (bool, int, float, complex, str, bytes, type(None))

Read = tuple[str, tuple[Any, ...], Any]
"""The kind of a read, where it was, and what was there."""
EMPTY: Any = object()
FAST = {
    "global": "a{at}.get(n{at}, MISSING) is v{at}",
    "cell": "a{at}.cell_contents is v{at}",
    "attr": "getattr(a{at}, n{at}) is v{at}",
    "item": "a{at}[n{at}] is v{at}",
    "missing": "not hasattr(a{at}, n{at})",
    "list": "len(a{at}) == len(v{at}) and all(map(is_, a{at}, v{at}))",
    "dict": "len(a{at}) == len(v{at}[0]) and all(map(is_, a{at}, v{at}[0])) and all(map(is_, a{at}.values(), v{at}[1]))",
    "set": "a{at} == v{at}",
    "kind": "type(a{at}()) is v{at}",
}


def same(a: Any, b: Any) -> bool:
    """Whether two values are one, or numbers or strings that no program could tell apart."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind in SIMPLE:
        return a == b and repr(a) == repr(b)
    return kind is tuple and len(a) == len(b) and all(map(same, a, b))


def holds(kind: str, where: tuple[Any, ...], value: Any) -> bool:
    """Whether one read gives what it gave, or an equal number."""
    at = where[0]
    if kind == "global":
        return same(at.get(where[1], EMPTY), value)
    if kind == "cell":
        return same(contents(at), value)
    if kind == "attr":
        return same(getattr(at, where[1], EMPTY), value)
    if kind == "item":
        return same(at[where[1]], value)
    if kind == "missing":
        return not hasattr(at, where[1])
    if kind == "list":
        return len(at) == len(value) and all(map(same, at, value))
    if kind == "dict":
        keys, values = value
        return len(at) == len(keys) and all(map(same, at, keys)) and all(map(same, at.values(), values))
    if kind == "kind":
        return type(at()) is value
    return at == value


def reader(kind: str, where: tuple[Any, ...]) -> Callable[[], Any]:
    """A function that reads again what was read by a name."""
    at = where[0]
    if kind == "global":
        return lambda: at.get(where[1], EMPTY)
    if kind == "cell":
        return lambda: contents(at)
    return lambda: getattr(at, where[1], EMPTY)


def contents(cell: Any) -> Any:
    """What a cell holds."""
    try:
        return cell.cell_contents
    except ValueError:
        return EMPTY


LINES = 400
"""Comparisons in one function at most: Python compiles them together."""


class Comparisons:
    """Comparisons of identities, written out as functions: a loop over them would cost three times as much.

    Each is an expression in which `{0}`, `{1}`, ... stand for objects.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[str, tuple[Any, ...]]] = []

    def add(self, line: str, *objects: Any) -> None:
        """One more."""
        self.lines.append((line, objects))

    def extend(self, other: Comparisons) -> None:
        """All of another's."""
        for line, objects in other.lines:
            self.add(line, *objects)

    def members(self, owner: dict[Any, Any], whole: bool, within: Any = None) -> None:
        """A dictionary (or `within`, if it is part of one) holds the objects that it holds now; with `whole`, and no others."""
        if whole:
            self.add(f"len({{0}}) == {len(owner)}", owner)
        members, owner = owner, owner if within is None else within
        for key, value in members.items():
            if type(key) is str and key.isidentifier():
                self.add(f"{{0}}[{key!r}] is {{1}}", owner, value)
            else:
                self.add("{0}[{1}] is {2}", owner, key, value)

    def made(self) -> list[Callable[[], bool]]:
        """The functions that together say whether all hold; KeyError where a dictionary lacks something."""
        names: dict[str, Any] = {}
        known: dict[int, str] = {}
        lines = []
        for line, objects in self.lines:
            for value in objects:
                if id(value) not in known:
                    known[id(value)] = name = f"o{len(known)}"
                    names[name] = value
            lines.append(line.format(*[known[id(value)] for value in objects]))
        made = []
        for first in range(0, len(lines), LINES):
            text = "def fast():\n    return (" + "\n        and ".join(lines[first : first + LINES]) + ")\n"
            exec(compile(text, "<xtensor guards>", "exec"), names)
            made.append(names["fast"])
        return made


def comparison(checks: list[Read]) -> Callable[[], bool]:
    """A function that says whether all reads would give what they gave."""
    if not checks:
        return lambda: True
    names: dict[str, Any] = {"MISSING": EMPTY, "all": all, "map": map, "is_": operator.is_, "len": len}
    names.update(getattr=getattr, hasattr=hasattr, type=type)
    lines = []
    for at, (kind, where, value) in enumerate(checks):
        names[f"a{at}"], names[f"v{at}"] = where[0], value
        if len(where) > 1:
            names[f"n{at}"] = where[1]
        lines.append(FAST[kind].format(at=at))
    text = "def fast():\n    return (" + "\n        and ".join(lines) + ")\n"
    exec(compile(text, "<xtensor guards>", "exec"), names)
    fast = names["fast"]

    def valid() -> bool:
        try:
            return fast() or all(holds(*check) for check in checks)
        except Exception:
            return False

    return valid
