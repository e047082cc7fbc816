"""Numbers among the arguments that change from call to call: in a capture they are values of the program, where they only enter arithmetic."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax.core import ShapedArray

from .. import dtypes
from ..tensor import Tensor, wrap
from .reads import Read, reader
from .watch import Source, Trace

__all__ = ["Number", "Operands", "Slot", "is_number", "key_of", "named_numbers", "with_numbers"]

KINDS = (int, float)
LARGEST = 2**53
"""Integers beyond are compared by value: a double does not hold them."""


class Slot:
    """Stands for a number of a kind among the arguments that are compared."""

    __slots__ = ("kind", "name")

    def __init__(self, name: str, kind: type) -> None:
        self.name = name
        self.kind = kind


def named_numbers(
    names: dict[str, int], slots: dict[Any, Slot], args: Any, kwargs: Any
) -> tuple[list[Any], dict[str, Any], list[tuple[Any, Any]]]:
    """The arguments with slots in the places of the named numbers, and these with their places. names: with their positions."""
    given, options, found = list(args), dict(kwargs), []
    for name, at in names.items():
        if at < len(given):
            where: Any = at
            holder: Any = given
        elif name in options:
            where, holder = name, options
        else:
            continue
        value = holder[where]
        if is_number(value):
            key = name, type(value)
            holder[where] = slots.setdefault(key, Slot(*key))
            found.append((where, value))
    return given, options, found


def with_numbers(
    trace: Trace, args: Any, kwargs: Any, numbers: list[tuple[Any, Any]], first: int
) -> tuple[Any, Any]:
    """The arguments of a capture, with values of the program in the places of numbers. first: the place of the first at a call."""
    given, options = list(args), dict(kwargs)
    for count, (where, value) in enumerate(numbers):
        double = trace.bind(Source("number", first + count), ShapedArray((), jnp.float64))
        made = Number(trace, double if type(value) is float else double.astype(jnp.int64), type(value))
        if isinstance(where, int):
            given[where] = made
        else:
            options[where] = made
    trace.numbered = bool(numbers)
    return tuple(given), options


def key_of(read: Read) -> Any:
    """What tells apart where something is read."""
    kind, where, _ = read
    return kind, id(where[0]), where[1]


def is_number(value: Any) -> bool:
    """Whether a value can be one of the program's."""
    return type(value) in KINDS and -LARGEST <= value <= LARGEST


class Operands:
    """Numbers that the function reads by a name or an attribute, as values of the program: read again at every call."""

    def __init__(self, trace: Trace, reads: dict[Any, Read]) -> None:
        self.trace = trace
        self.reads = reads
        self.names = {where[1] for kind, where, _ in reads.values() if kind != "attr"}
        self.made: dict[Any, Number] = {}

    def has(self, kind: str, where: Any, name: str) -> bool:
        """Whether what is read there is a value of the program."""
        return bool(self.reads) and (kind, id(where), name) in self.reads

    def at(self, kind: str, where: Any, name: str) -> Number | None:
        """The value of the program in the place of what is read there."""
        return self._number((kind, id(where), name)) if self.has(kind, where, name) else None

    def named(self, name: str, value: Any) -> Any:
        """The value in the place of a variable's."""
        for key, (kind, where, _) in self.reads.items():
            if kind != "attr" and where[1] == name and reader(kind, where)() is value:
                return self._number(key)
        return value

    def _number(self, key: Any) -> Number:
        found = self.made.get(key)
        if found is None:
            kind, where, _ = self.reads[key]
            read = reader(kind, where)
            number = type(read())
            value = self.trace.host(read, (), jnp.float64 if number is float else jnp.int64)
            found = self.made[key] = Number(self.trace, value, number)
            self.trace.numbered = True
        return found

    def attributes(self) -> set[tuple[int, str]]:
        """The attributes among them, by their objects' identities."""
        return {(place, name) for kind, place, name in self.made if kind == "attr"}

    def checks(self) -> list[Read]:
        """What is asked of them at every call: that they are numbers of their kinds."""
        return [
            ("kind", (reader(*self.reads[key][:2]), key[2]), number.kind) for key, number in self.made.items()
        ]


def binary(compute: Callable[[Any, Any], Any], turned: bool = False, whole: bool = True) -> Any:
    """A method for an operator. whole: integers give an integer."""

    def run(self: Number, other: Any) -> Any:
        self.asked(sys._getframe(1))
        if isinstance(other, Tensor):
            own = self.beside(other)
            return compute(other, own) if turned else compute(own, other)
        if type(other) is Number:
            value, kind = other.value, other.kind
        elif type(other) in (int, float, bool):
            value, kind = other, type(other)
        else:
            return NotImplemented
        divisor = self.value if turned else value
        if not whole and (divisor is self.value or type(other) is Number or not other):
            self.known()  # Python raises for zero
        kind = float if float in (kind, self.kind) or not whole else int
        if kind is int and (type(other) is Number or abs(value) > 1024):
            self.known()  # Python's integers have no end
        dtype = jnp.float64 if kind is float else jnp.int64
        a, b = self.value.astype(dtype), jnp.asarray(value, dtype)
        return Number(self.trace, compute(b, a) if turned else compute(a, b), kind)

    return run


def compared(turned: Callable[[Any, Any], Any]) -> Any:
    """A method for a comparison: with a tensor; the number alone would have to be known."""

    def run(self: Number, other: Any) -> Any:
        self.asked(sys._getframe(1))
        if isinstance(other, Tensor):
            return turned(other, self.beside(other))
        return self.known()

    return run


class Number:
    """A number that is known at a call only."""

    __slots__ = ("kind", "trace", "value")

    def __init__(self, trace: Trace, value: Any, kind: type) -> None:
        self.trace = trace
        self.value = value
        self.kind = kind

    def known(self, *rest: Any) -> Any:
        """Whatever needs to know it ends the capture."""
        self.trace.refuse("a number that changes from call to call is used for more than arithmetic")

    def asked(self, frame: Any) -> None:
        """Only the user's own arithmetic counts: the library's may write in place, or look at a number's class."""
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == __name__.partition(".")[0]:
            self.known()

    def beside(self, tensor: Tensor) -> Tensor:
        """As a tensor of no dimensions that gives a result the dtype that a Python number does."""
        dtype = tensor.dtype
        if dtype.is_complex:
            self.known()
        if dtype.is_floating_point:
            chosen: Any = dtype if tensor.dim() == 0 else dtypes.float64
        elif self.kind is float:
            chosen = dtypes.get_default_dtype()
        else:
            chosen = dtypes.int64 if tensor.dim() or dtype is dtypes.bool else dtype
        return wrap(self.value.astype(chosen.numpy))

    __add__ = binary(lambda a, b: a + b)
    __radd__ = binary(lambda a, b: a + b, True)
    __sub__ = binary(lambda a, b: a - b)
    __rsub__ = binary(lambda a, b: a - b, True)
    __mul__ = binary(lambda a, b: a * b)
    __rmul__ = binary(lambda a, b: a * b, True)
    __truediv__ = binary(lambda a, b: a / b, whole=False)
    __rtruediv__ = binary(lambda a, b: a / b, True, whole=False)
    __lt__ = compared(lambda a, b: a > b)
    __le__ = compared(lambda a, b: a >= b)
    __gt__ = compared(lambda a, b: a < b)
    __ge__ = compared(lambda a, b: a <= b)
    __eq__ = compared(lambda a, b: a == b)
    __ne__ = compared(lambda a, b: a != b)
    __bool__ = __int__ = __float__ = __index__ = __hash__ = __str__ = __repr__ = known  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    __complex__ = __round__ = __format__ = __pow__ = __rpow__ = __mod__ = __rmod__ = __floordiv__ = known
    __rfloordiv__ = __trunc__ = __ceil__ = __floor__ = __divmod__ = __abs__ = __neg__ = __pos__ = known
