"""What stands for PyTorch's names that are not here: it can be asked for, and says what it is when it is used."""

from __future__ import annotations

import builtins
import enum
import re
import types
from typing import Any, NoReturn

from .absent import sentence
from .names import Described

__all__ = ["AbsentClass", "AbsentName", "stand_in"]

# Whether something absent is there, or is such a thing: it is not.
QUESTION = re.compile(r"_?(is|has)_\w+$|\w+_(available|enabled|supported)$")


def refuse(path: str) -> NoReturn:
    """Say that a name is not here, to who uses it."""
    raise NotImplementedError(sentence(f"torch.{path}"))


class AbsentName:
    """A function or value of PyTorch's that is not here: it is passed around, and a call raises."""

    def __init__(self, path: str) -> None:
        home, _, name = path.rpartition(".")
        self.__dict__.update(
            _path=path, __name__=name, __qualname__=name, __module__=f"torch.{home}".rstrip("."), __doc__=None
        )

    def __call__(self, *args: Any, **options: Any) -> Any:
        if QUESTION.match(self.__name__):
            return False
        refuse(self._path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{self!r} has no attribute {name!r}", name=name, obj=self)
        return AbsentName(f"{self._path}.{name}")

    def __repr__(self) -> str:
        return f"torch.{self._path}"

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __reduce__(self) -> tuple[Any, ...]:
        return AbsentName, (self._path,)


class AbsentClass(type):
    """The type of PyTorch's classes that are not here: nothing is an instance, and none can be made."""

    _path: str

    def __call__(cls, *args: Any, **options: Any) -> Any:
        refuse(cls._path)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{cls!r} has no attribute {name!r}", name=name, obj=cls)
        return AbsentName(f"{cls._path}.{name}")

    def __getitem__(cls, parameters: Any) -> Any:
        return cls


def stand_in(module: str, name: str, of: Described) -> Any:
    """The object that `torch.<module>.<name>` is while it is not here."""
    path = f"{module}.{name}".lstrip(".")
    if of.kind == "value" and of.literal is not ...:
        return of.literal
    if of.kind != "class":
        return AbsentName(path)
    home = f"torch.{module}".rstrip(".")
    if of.members:
        return enum.Enum(name, {member: n for n, member in enumerate(of.members)}, module=home)
    if of.base:
        return type(name, (getattr(builtins, of.base),), {"__module__": home})
    return AbsentClass(name, (), {"_path": path, "__module__": home, "__doc__": None})


class AbsentModule(types.ModuleType):
    """A module of PyTorch's that is not here, of names that say so; the alias gives them."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.{name}")
        self.__dict__["__path__"] = []
