"""Numbers of no dimensions on the CPU: computed by Python where their values are there already.

Loops are made of them (`for i in ix: data[i : i + n]`, `if row[0] > best`), and a program costs ten times the addition. Integers are
exact, and sums, differences, products and comparisons of two floats are rounded once, so nobody can tell who computed: the result has
the program's value, dtype, device and geometry, and its array is made when one is asked for. Nothing waits for a value here: where it
is not there yet, or arrays are traced, or gradients are followed, the program runs. So it does for floats that are not normal, which
XLA's programs take for zero.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from .. import capture, devices, dtypes
from ..engine import modes
from ..storage import HostValues, LazyStorage, Storage, births
from ..tensor import ARRAY, Tensor, View, asks_grad, make_view, plain_in
from ..xla import segments
from ..xla.cache import BoundedCache
from ..xla.levels import tracing
from ..xla.pending import Pending
from ..xla.threads import others
from .elements import element

__all__ = [
    "THERE",
    "BOOL",
    "Exact",
    "HostNumber",
    "exactly",
    "held",
    "known_number",
    "made_of",
    "memory_of",
    "numbers_at",
    "stays",
]

new = object.__new__
FROM_NUMPY = dtypes.FROM_NUMPY
BOOL, FLOAT = np.dtype(bool), np.dtype(np.float32)

RANGES: dict[Any, tuple[int, int]] = {
    BOOL: (0, 1),
    **{np.dtype(t): (int(np.iinfo(t).min), int(np.iinfo(t).max)) for t in ("i1", "i2", "i4", "i8", "u1")},
}
"""The integers that are answered here, with their least and greatest numbers; operators know fewer of the other unsigned ones."""

NORMAL: dict[Any, tuple[float, float]] = {
    np.dtype(t): (float(np.finfo(t).tiny), float(np.finfo(t).max)) for t in ("f4", "f8")
}
"""The floats, with the least and the greatest magnitude of their normal numbers."""


class Exact(NamedTuple):
    """What an operator gives of Python's numbers: an int is brought into the dtype's range, a bool is a bool.

    floats: whether of two floats as well, given that it rounds once, of double precision; rounding that to single precision changes
    no sum, difference or product (S. Figueroa, When is double rounding innocuous?, 1995).
    """

    of: Callable[..., Any]
    floats: bool = False


class Arrays(BoundedCache[tuple[Any, int], Any]):
    """Arrays of integers that came before, on the first CPU: immutable, so that storages share them."""

    __slots__ = ()

    def __missing__(self, key: tuple[Any, int]) -> Any:
        array = self[key] = devices.put(np.array(key[1], key[0]), HOME, copy=False)
        return array


ARRAYS = Arrays(4096)
HOME = devices.device("cpu")


def stays(place: devices.device) -> bool:
    """Whether new values of the host's may wait there until a program takes them: on the first CPU, in the default modes."""
    return (
        place is HOME
        and modes.state.mode <= modes.NO_GRAD
        and not (modes.state.transforms or capture.watchers)
        and tracing.recorder is None
    )


OWN = frozenset((Storage, LazyStorage))
"""The classes of storages whose arrays nobody else writes."""


def memory_of(storage: Storage) -> np.ndarray[Any, Any] | None:
    """The elements of a storage on the first CPU, not to be written; None where they are not there yet."""
    raw = storage.raw
    if type(raw) is HostValues:
        return raw.memory if raw.device is HOME else None
    return np.asarray(raw) if is_there(storage, raw) else None


def is_there(storage: Storage, raw: Any) -> bool:
    """Whether what a storage holds is an array on the first CPU that is computed."""
    # An array that a write has taken away is not to be asked, and another thread's write may take it any time.
    if type(raw) is not ARRAY or type(storage) not in OWN or others or raw.is_deleted():
        return False
    return devices.of_array(raw) is HOME and raw.is_ready()


def is_there_still(storage: Storage, raw: Any, writes: int) -> bool:
    """`is_there`, asked again and again of a storage that loops go through; what was there stays so until it is written."""
    seen = _seen[0]() is storage and _seen[1] == writes
    if seen and type(raw) is ARRAY and type(storage) in OWN and not others:
        return True
    if not is_there(storage, raw):
        return False
    _seen[:] = weakref.ref(storage), writes
    return True


_seen: list[Any] = [lambda: None, -1]


def numbers_at(storage: Storage, view: View, offsets: Iterable[int]) -> list[Any] | None:
    """The numbers that views of no dimensions, otherwise as `view`, will show; None where they are not there yet, or not looked at."""
    dtype = storage.raw.dtype
    if (dtype not in RANGES and dtype not in NORMAL) or not plain_in(view, storage.raw):
        return None
    if capture.watchers or tracing.recorder is not None:
        return None
    memory = memory_of(storage)
    return None if memory is None else list(map(memory.item, offsets))


THERE = frozenset((ARRAY, HostValues))
"""What a storage holds whose values are not pending, and no transform's."""


class HostNumber:
    """What a LazyStorage holds whose array is one known number."""

    __slots__ = ("device", "dtype", "value")
    shape = ()

    def __init__(self, value: Any, dtype: np.dtype[Any], device: devices.device) -> None:
        self.value, self.dtype, self.device = value, dtype, device

    def read(self) -> tuple[Any, bool]:
        """The array on its device, and whether others may hold it."""
        if self.device is HOME and self.dtype in RANGES:
            return ARRAYS[self.dtype, self.value], True
        return devices.put(np.array(self.value, self.dtype), self.device, copy=False), False

    def on(self, device: devices.device) -> HostNumber:
        """The same number for another device."""
        return HostNumber(self.value, self.dtype, device)


def number(value: Any, dtype: np.dtype[Any], whole: bool = False) -> Tensor:
    """A tensor of no dimensions on the CPU that holds a number of a dtype.

    whole: whether it is to be a tensor that covers its storage, which programs take as it is; one with a view is asked for its number.
    """
    storage = new(LazyStorage)
    raw = storage.raw = new(HostNumber)
    raw.value, raw.dtype, raw.device = value, dtype, HOME
    storage.version = storage.address = 0
    storage.writes = births.now
    storage.shared = False
    storage.cover = None
    made = new(Tensor)
    made._xt_storage = storage
    made._xt_view = None if whole else make_view(storage, storage, FROM_NUMPY[dtype], (), (), 0)
    made._xt_edge = made._xt_meta = None
    return made


def made_of(value: Any, dtype: np.dtype[Any], place: devices.device) -> Tensor | None:
    """A new tensor of a Python number; None where an array is to be made of it at once."""
    if place is not HOME or capture.watchers or tracing.recorder is not None:
        return None
    if dtype in NORMAL:
        value = float(value)
        least, most = NORMAL[dtype]
        if value and not least <= abs(value) <= most:
            return None
        return number(single(value) if dtype == FLOAT else value, dtype, True)
    if dtype not in RANGES or (type(value) is bool) is not (dtype == BOOL):
        return None
    least, most = RANGES[dtype]
    return number(value, dtype, True) if least <= value <= most else None


def single(value: float) -> float:
    """A normal number rounded to single precision."""
    return float(np.float32(value))


def held(tensor: Tensor) -> bool:
    """Whether a tensor shows the number that its storage holds, where it holds one."""
    view, raw = tensor._xt_view, tensor._xt_storage.raw
    if type(raw) is not HostNumber:
        return False
    return view is None or not (view.sizes or view.neg or view.dtype.numpy != raw.dtype)


def known_number(tensor: Tensor) -> Any:
    """The number that a tensor of no dimensions shows, where it is known or lies in the host's memory; None of all else.

    A program that makes it is waited for.
    """
    view, storage = tensor._xt_view, tensor._xt_storage
    raw = storage.raw
    kind = type(raw)
    if view is not None and view.number_at == storage.writes and kind in THERE:
        return view.number
    if kind is HostNumber:
        return raw.value if held(tensor) else None
    if type(storage) not in OWN:
        raw = storage.array  # of memory that NumPy sees, what that holds now
        kind = type(raw)
    elif kind is Pending:
        raw = storage.array
        kind = type(raw)
    segments.state.reads += kind is ARRAY
    if view is None:
        if kind is not ARRAY or raw.shape:
            return None
        found = element(raw, 0, raw.dtype)
        return np.asarray(raw).item() if found is None else found
    if view.sizes or view.conj or view.neg or view.dtype.numpy != raw.dtype:
        return None
    if kind is ARRAY:
        found = element(raw, view.offset, view.dtype.numpy)
        if found is None and devices.of_array(raw).type == "cpu":
            return np.asarray(raw).item(view.offset)
        return found
    return raw.memory.item(view.offset) if kind is HostValues else None


def exactly(exact: Exact, values: tuple[Any, ...]) -> Tensor | None:
    """The result of an operator's call, given its `exact` function and one value per parameter; None where its program is to run.

    Tensors must be of one dtype, which a Python number takes where it fits: an int any but bool, a float a float's, a bool bool.
    """
    dtype: Any = None
    plain = True
    numbers: list[Any] = []
    known: Any = None  # the dtype that was looked at last: hashing one takes as long as adding two numbers
    real = False
    for value in values:
        kind = type(value)
        if kind is Tensor:
            view, storage = value._xt_view, value._xt_storage
            writes = storage.writes  # what another thread writes from here on is not what is seen
            raw = storage.raw
            own = raw.dtype
            if own is not known:
                known, real = own, own in NORMAL
            if view is not None and view.number_at == writes and type(raw) in THERE:
                if real and not exact.floats:
                    return None
                found = view.number
            elif type(raw) is HostNumber:
                if raw.device is not HOME or not held(value):
                    return None
                found = raw.value
            else:
                if type(raw) is Pending and raw._value is not None:  # it has come
                    raw = storage.array
                if type(raw) not in THERE or (raw.shape if view is None else view.sizes):
                    return None
                if not (exact.floats if real else own in RANGES):
                    return None
                if view is not None and (
                    view.neg or (view.dtype.numpy is not own and view.dtype.numpy != own)
                ):
                    return None
                offset = 0 if view is None else view.offset
                if type(raw) is HostValues:
                    if raw.device is not HOME:
                        return None
                    found = raw.memory.item(offset)
                else:
                    if not (is_there(storage, raw) if view is None else is_there_still(storage, raw, writes)):
                        return None
                    found = element(raw, offset, own)
                    if found is None:
                        return None
                if view is not None and type(storage) in OWN:
                    view.number, view.number_at = found, writes
            if dtype is None:
                dtype = own
            elif own is not dtype and own != dtype:
                return None
            if real and asks_grad(value):
                return None
            numbers.append(found)
        elif kind is int or kind is bool or kind is float:
            plain = False
            numbers.append(value)
        else:
            return None
    if dtype is None or capture.watchers or tracing.recorder is not None:
        return None
    if real:
        return of_floats(exact, values, numbers, dtype, plain) if exact.floats else None
    least, most = RANGES[dtype]
    if not plain:
        for value in values:
            kind = type(value)
            if kind is not Tensor:
                if kind is float or not least <= value <= most or (kind is bool) is not (dtype == BOOL):
                    return None
    try:
        result = exact.of(*numbers)
    except ZeroDivisionError:
        return None
    if type(result) is bool:
        return number(result, BOOL)
    if dtype == BOOL:
        return None
    if not least <= result <= most:
        result = (result - least) % (most - least + 1) + least
    return number(result, dtype)


def of_floats(
    exact: Exact, values: tuple[Any, ...], numbers: list[Any], dtype: np.dtype[Any], plain: bool
) -> Tensor | None:
    """`exactly` of floats and, unless plain, of Python's numbers beside them."""
    least, most = NORMAL[dtype]
    short = dtype == FLOAT
    for value in numbers:
        if value and not least <= abs(value) <= most:
            return None
    for at, value in () if plain else enumerate(numbers):
        if type(values[at]) is Tensor:
            continue
        if at > 1:  # `alpha`
            if type(value) is not int or value != 1:
                return None
            continue
        if type(value) is bool:
            return None
        numbers[at] = single(value) if short else float(value)
        if type(value) is int and value != numbers[at]:
            return None
    result = exact.of(*numbers)
    if type(result) is bool:
        return number(result, BOOL)
    if result and not least <= abs(result) <= most:
        return None
    return number(single(result) if short else result, dtype)
