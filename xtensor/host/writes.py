"""Numbers, and values that are on the host already, written to tensors of the CPU: by NumPy, into memory that the storage alone knows.

Loops fill tables so (`counts[a, b] += 1`, `made[i] = row.sum()`, `dp[i] = dp[i - 1] + 1`), and a program for each turn costs ten times
as long. From the first such write on the storage holds its values on the host (`HostValues.own`), and whoever asks for its array has one
made of that memory, from then on the array's. Nothing waits for a value here: what is still being computed is written by a program.
"""

from __future__ import annotations

import weakref
from math import isfinite
from typing import Any

import numpy as np

from ..storage import HostValues, Storage, births, promise
from ..tensor import ARRAY, Tensor, View, part_of, plain_in
from ..xla.threads import others
from .at_hand import at_hand
from .numbers import BOOL, FLOAT, HOME, NORMAL, RANGES, THERE, memory_of, stays

__all__ = ["is_small", "number_room", "host_room", "values_for", "write_host"]

SMALL = 1 << 16
"""Bytes that are taken to the host for the first write: as many are copied in the time of a program's call."""


class Account:
    """What is known of a storage's writes: how many a program made since it last came to the host, how many that takes, and how many were made
    there since.

    Coming costs a copy, and going, when a program asks for the array, some forty microseconds; a write saves ten. So who reads what was
    written after every few writes stays with programs, and is tried again half as often each time.
    """

    __slots__ = ("due", "least", "made", "written")

    def __init__(self, nbytes: int) -> None:
        self.due = self.least = (nbytes - 1) // SMALL
        self.made = self.written = 0

    def refuses(self) -> bool:
        """Count a write that is a program's; False where enough were."""
        if self.made >= self.due:
            return False
        self.made += 1
        return True

    def came(self) -> None:
        """The storage is on the host from now on."""
        self.made = self.written = 0

    def went(self) -> None:
        """A program asked for the array."""
        self.due = self.least if self.written >= ENOUGH else min(max(2 * self.due, ENOUGH), RARELY)


ENOUGH = 5
"""Writes that pay for coming and going."""
RARELY = 4096
"""Writes by programs before a storage comes once more, at most."""
accounts: weakref.WeakKeyDictionary[Storage, Account] = weakref.WeakKeyDictionary()


def is_small(storage: Storage) -> bool:
    """Whether what the host has is written there: whole rows of large tensors are a program's, as is what `Account` says; then it is counted."""
    raw = storage.raw
    if type(raw) is HostValues:
        return raw.own is not None
    if type(raw) is not ARRAY or raw.nbytes > SMALL:
        return False
    account = accounts.get(storage)
    return account is None or not account.refuses()


def host_room(tensor: Tensor) -> np.ndarray[Any, Any] | None:
    """The memory of a tensor's storage, flat, to be written by `write_host`; None where the host does not write."""
    storage, view = tensor._xt_storage, tensor._xt_view
    raw = storage.raw
    if others or births.open or not stays(HOME) or (view is not None and not plain_in(view, raw)):
        return None
    if type(raw) is HostValues and raw.own is not None:
        return raw.memory.reshape(-1)
    if type(raw) not in THERE:
        return None
    account = accounts.get(storage)
    if account is None:
        account = accounts[storage] = Account(storage.nbytes())
    if account.refuses():
        return None
    values = memory_of(storage)
    if values is None:
        return None
    memory = aligned(np.asarray(values))
    if not memory.size or not promise(storage, HostValues(memory, HOME, account)):
        return None
    account.came()
    return memory.reshape(-1)


LINE = 64
"""What the address of memory is a multiple of that XLA takes as it is."""


def aligned(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy, in memory that an array may be made of without another."""
    if values.nbytes <= HostValues.FEW:
        return values.copy()
    space = np.empty(values.nbytes + LINE, np.uint8)
    start = -space.ctypes.data % LINE
    memory = space[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    memory[...] = values
    return memory


def number_room(tensor: Tensor, number: Any) -> np.ndarray[Any, Any] | None:
    """As `host_room`, for a number that the host writes as a program does."""
    view = tensor._xt_view
    dtype = tensor._xt_storage.raw.dtype if view is None else view.dtype.numpy
    return host_room(tensor) if is_written(number, dtype) else None


def is_written(number: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a Python number becomes the same number of a dtype here and in a program: one that it holds, or rounds to a normal one."""
    kind = type(number)
    if dtype in NORMAL:
        if kind is int:
            return abs(number) <= (1 << 24 if dtype == FLOAT else 1 << 53)
        least, most = NORMAL[dtype]
        return kind is float and (not number or least <= abs(number) <= most or not isfinite(number))
    if dtype not in RANGES or kind is not (bool if dtype == BOOL else int):
        return False
    least, most = RANGES[dtype]
    return least <= number <= most


def values_for(source: Tensor, target: Tensor) -> np.ndarray[Any, Any] | None:
    """The values of a tensor of the target's sizes and dtype, where the host has them."""
    values = at_hand(source)
    if values is None:
        return None
    view, raw = target._xt_view, target._xt_storage.raw
    if view is None:
        return values if values.shape == raw.shape and values.dtype == raw.dtype else None
    return values if values.shape == view.sizes and values.dtype == view.dtype.numpy else None


def write_host(memory: np.ndarray[Any, Any], storage: Storage, view: View | None, values: Any) -> None:
    """Write a number, or values of the view's sizes and dtype, where a view shows elements of a storage, in the memory that `host_room` gave."""
    storage.writes += 1
    storage.raw.own.written += 1
    if view is None:
        memory.reshape(storage.raw.shape)[...] = values
    elif view.sizes:
        part_of(memory, view)[...] = values
    else:
        memory[view.offset] = values
