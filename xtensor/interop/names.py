"""What PyTorch's modules and their names are, read from the table `names.txt` when a name is first missed."""

from __future__ import annotations

import ast
import pathlib
import re
from typing import Any, NamedTuple

from ..xla.cache import bounded

__all__ = ["Described", "described", "has_modules", "is_module", "reexporters"]

TABLE = pathlib.Path(__file__).with_name("names.txt")
ENTRY = re.compile(r"(?P<name>\w+)(?::(?P<base>\w+)|\((?P<members>[^)]*)\)|=(?P<literal>.+))?$")


class Described(NamedTuple):
    """A name of PyTorch's: what it is, and the module that it stands in."""

    kind: str  # class, function, value, or from: of the module `home`
    home: str
    base: str = ""  # of a class: the exception of Python's that it is one of
    members: tuple[str, ...] = ()  # of an enumeration
    literal: Any = ...  # of a value that can be written


@bounded(1)
def _sections() -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in TABLE.read_text("utf-8").splitlines():
        if line.startswith("["):
            lines = sections[line[1:-1]] = []
        elif not line.startswith("#"):
            lines.append(line)
    return sections


@bounded(2048)
def _section(module: str) -> dict[str, Described]:
    found: dict[str, Described] = {}
    for line in _sections().get(module, ()):
        kind, *entries = line.split(" ")
        home = entries.pop(0) if kind == "from" else module
        for entry in entries:
            match = ENTRY.match(entry)
            if match is not None:
                members, literal = match["members"], match["literal"]
                found[match["name"]] = Described(
                    kind,
                    home,
                    match["base"] or "",
                    tuple(filter(None, (members or "").split(","))),
                    ... if literal is None else ast.literal_eval(literal),
                )
    return found


@bounded(1)
def _by_home() -> dict[str, list[tuple[str, frozenset[str]]]]:
    homes: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for module, lines in _sections().items():
        for line in lines:
            if line.startswith("from "):
                _, home, *names = line.split(" ")
                homes.setdefault(home, []).append((module, frozenset(names)))
    return homes


def is_module(name: str) -> bool:
    """Whether PyTorch has a module `torch.<name>`."""
    return name in _sections()


@bounded(1)
def _packages() -> frozenset[str]:
    return frozenset(name.rpartition(".")[0] for name in _sections())


def has_modules(name: str) -> bool:
    """Whether `torch.<name>` is a package."""
    return name in _packages()


def described(module: str, name: str) -> Described | None:
    """What `torch.<module>.<name>` is in PyTorch; None where it has no such name."""
    return _section(module).get(name)


def names_in(module: str) -> list[str]:
    """The names of a module."""
    return sorted(_section(module))


def reexporters(home: str, name: str) -> list[str]:
    """The modules that give a name of another module as their own, the shortest path first."""
    found = [module for module, names in _by_home().get(home, ()) if name in names]
    return sorted(found, key=lambda module: (module.count("."), module))
