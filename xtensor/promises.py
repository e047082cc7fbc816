"""Tensors whose arrays are pending: a storage holds a promise in the place of its array, and reads it when somebody needs it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import devices, dtypes, geometry, lowering
from .storage import LazyStorage, Storage
from .tensor import Tensor, array_of, make_view, recipe_of, tensor_over
from .xla.number_arrays import operand
from .xla.pending import Deferred, Pending
from .xla.threads import others
from .xla.x64 import call

__all__ = ["Promise", "array_or_pending", "promise", "values_or_pending", "wrap_pending"]


class Promise:
    """What a LazyStorage holds whose array is pending, and the tensor that takes its sizes from the array once it is there."""

    def __init__(self, pending: Pending, tensor: Callable[[], Tensor | None]) -> None:
        self.pending, self.tensor = pending, tensor
        self.shape: tuple[int, ...] = pending.shape
        self.dtype: np.dtype[Any] = pending.dtype
        self.device = devices.of_array(pending)

    def read(self) -> tuple[Any, bool]:
        """The array, which nobody else sees."""
        array = self.pending.value()
        if devices.of_array(array) is not self.device:
            array = devices.put(array, self.device)
        tensor = self.tensor()
        # A reference to the view would be a cycle: through its counter it holds the storage.
        if tensor is not None and tensor._xt_storage.raw is self and (view := tensor._xt_view) is not None:
            if view.base is None and recipe_of(tensor._xt_storage, view).identity:
                tensor._xt_view = None
        return array, False

    def on(self, device: devices.device) -> Promise:
        """The same array, for another device."""
        made = Promise(self.pending, nobody)
        made.device = device
        return made


def wrap_pending(pending: Pending, sizes: Any = None, strides: Any = None) -> Tensor:
    """A tensor over a new storage whose array is pending; with sizes and strides, its elements are seen so."""
    promise = Promise(pending, nobody)
    storage = LazyStorage(promise)
    whole = sizes is None
    if whole:
        sizes = pending.shape
        strides = geometry.contiguous_strides(sizes)
    view = make_view(storage, storage, dtypes.FROM_NUMPY[pending.dtype], sizes, strides, 0)
    tensor = tensor_over(storage, view)
    if whole:
        promise.tensor = weakref.ref(tensor)
    return tensor


def nobody() -> None:
    """The tensor of a promise that none waits for."""


def promise(storage: Storage, pending: Pending) -> bool:
    """Put a pending array in the place of a storage's own; whether that can be."""
    held = storage.raw
    if others or not (type(storage) is Storage or type(held) is Promise):
        return False
    made = Promise(pending, held.tensor if type(held) is Promise else nobody)
    # No call from here on: a signal finds the old value or the new one.
    storage.raw = made
    storage.__class__ = LazyStorage
    storage.writes += 1
    storage.shared = False
    return True


def values_or_pending(storage: Storage) -> Any:
    """A storage's array, or what it is pending as."""
    if type(storage) is LazyStorage:
        held = storage.raw
        if type(held) is Promise and held.pending.call is not None:
            return held.pending
    return storage.array


def array_or_pending(tensor: Tensor) -> Any:
    """The values of a tensor as an array, a pending one where they are still to come."""
    view, storage = tensor._xt_view, tensor._xt_storage
    if view is not None and type(storage) is LazyStorage:
        array = values_or_pending(storage)
        if type(array) is Pending:
            if view.cached_at == storage.writes:
                return view.cached
            recipe = recipe_of(storage, view)
            if recipe.identity:
                return array
            try:
                view.cached = call(lowering.read_program(recipe), array, operand(view.offset))
            except Deferred as deferred:
                view.cached = deferred.results
            view.cached_at = storage.writes
            return view.cached
    return array_of(tensor)
