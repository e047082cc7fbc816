"""Integers and booleans of no dimensions on the CPU: computed by Python where their values are there already.

Loops are made of them (`for i in ix: data[i : i + n]`), and a program costs ten times the addition. Integers are exact, so nobody
can tell who added: the result has the program's value, dtype, device and geometry, and its array is made when one is asked for.
Nothing waits for a value here: where it is not there yet, or arrays are traced, the program runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import capture, devices, dtypes
from .storage import LazyStorage, births
from .tensor import ARRAY, Tensor, make_view
from .xla.cache import BoundedCache
from .xla.levels import tracing

__all__ = ["Exact", "HostInteger", "exactly", "held"]

new = object.__new__
FROM_NUMPY = dtypes.FROM_NUMPY
BOOL = np.dtype(bool)

RANGES: dict[Any, tuple[int, int]] = {
    BOOL: (0, 1),
    **{np.dtype(t): (int(np.iinfo(t).min), int(np.iinfo(t).max)) for t in ("i1", "i2", "i4", "i8", "u1")},
}
"""The dtypes that are answered here, with their least and greatest numbers; operators know fewer of the other unsigned ones."""

Exact = Callable[..., Any]
"""What an operator gives of Python's integers: an int is brought into the dtype's range, a bool is a bool."""


class Arrays(BoundedCache[tuple[Any, int], Any]):
    """Arrays of numbers that came before, on the first CPU: immutable, so that storages share them."""

    __slots__ = ()

    def __missing__(self, key: tuple[Any, int]) -> Any:
        dtype, value = key
        array = self[key] = devices.put(np.array(value, dtype), HOME, copy=False)
        return array


ARRAYS = Arrays(4096)
HOME = devices.device("cpu")


class HostInteger:
    """What a LazyStorage holds whose array is one known number."""

    __slots__ = ("device", "dtype", "value")
    shape = ()

    def __init__(self, value: int, dtype: np.dtype[Any], device: devices.device) -> None:
        self.value, self.dtype, self.device = value, dtype, device

    def read(self) -> tuple[Any, bool]:
        """The array on its device; others may hold it."""
        if self.device is HOME:
            return ARRAYS[self.dtype, self.value], True
        return devices.put(np.array(self.value, self.dtype), self.device, copy=False), True

    def on(self, device: devices.device) -> HostInteger:
        """The same number for another device."""
        return HostInteger(self.value, self.dtype, device)


def number(value: int, dtype: np.dtype[Any]) -> Tensor:
    """A tensor of no dimensions on the CPU that holds a number of a dtype."""
    storage = new(LazyStorage)
    held = storage.raw = new(HostInteger)
    held.value, held.dtype, held.device = value, dtype, HOME
    storage.version = storage.address = 0
    storage.writes = births.now
    storage.shared = False
    storage.cover = None
    made = new(Tensor)
    made._xt_storage = storage
    made._xt_view = make_view(storage, storage, FROM_NUMPY[dtype], (), (), 0)
    made._xt_edge = made._xt_meta = None
    return made


def held(tensor: Tensor) -> bool:
    """Whether a tensor shows the number that its storage holds, where it holds one."""
    view, raw = tensor._xt_view, tensor._xt_storage.raw
    return type(raw) is HostInteger and (view is None or (not view.sizes and view.dtype.numpy == raw.dtype))


def exactly(exact: Exact, values: tuple[Any, ...]) -> Tensor | None:
    """The result of an operator's call, given its `exact` function and one value per parameter; None where its program is to run.

    Tensors must be of one dtype, which an int takes where it fits, and a bool where it is bool.
    """
    dtype: Any = None
    plain = True
    numbers: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is Tensor:
            view, raw = value._xt_view, value._xt_storage.raw
            if type(raw) is HostInteger:
                if raw.device is not HOME or not held(value):
                    return None
                own, value = raw.dtype, raw.value
            elif type(raw) is not ARRAY or (raw.shape if view is None else view.sizes):
                return None
            else:
                own = raw.dtype
                if own not in RANGES or (view is not None and view.dtype.numpy != own):
                    return None
                if devices.of_array(raw) is not HOME or not raw.is_ready():
                    return None
                value = np.asarray(raw).item(0 if view is None else view.offset)
            if dtype is None:
                dtype = own
            elif dtype != own:
                return None
        elif kind is int or kind is bool:
            plain = False
        else:
            return None
        numbers.append(value)
    if dtype is None or capture.watchers or tracing.recorder is not None:
        return None
    least, most = RANGES[dtype]
    if not plain:
        for value in values:
            if type(value) is not Tensor:
                if not least <= value <= most or (type(value) is bool) is not (dtype == BOOL):
                    return None
    try:
        result = exact(*numbers)
    except ZeroDivisionError:
        return None
    if type(result) is bool:
        return number(result, BOOL)
    if dtype == BOOL:
        return None
    if not least <= result <= most:
        result = (result - least) % (most - least + 1) + least
    return number(result, dtype)
