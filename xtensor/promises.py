"""Tensors whose arrays are pending: a storage holds what pends in the place of its array, and reads it when somebody needs it."""

from __future__ import annotations

from typing import Any

from . import dtypes, lowering
from .storage import LazyStorage, Storage
from .tensor import Tensor, array_of, make_view, recipe_of, tensor_over, wrap
from .xla.number_arrays import operand
from .xla.pending import Deferred, Pending
from .xla.threads import others
from .xla.x64 import call

__all__ = ["array_or_pending", "promise", "wrap_pending"]


def wrap_pending(pending: Pending, sizes: Any = None, strides: Any = None) -> Tensor:
    """A tensor over a new storage whose array is pending; with sizes and strides, its elements are seen so."""
    if sizes is None:
        return wrap(pending)
    storage = LazyStorage(pending)
    return tensor_over(
        storage, make_view(storage, storage, dtypes.FROM_NUMPY[pending.dtype], sizes, strides, 0)
    )


def promise(storage: Storage, pending: Pending) -> bool:
    """Put a pending array in the place of a storage's own; whether that can be."""
    if others or not (type(storage) is Storage or type(storage.raw) is Pending):
        return False
    # No call from here on: a signal finds the old value or the new one.
    storage.raw = pending
    storage.__class__ = LazyStorage
    storage.writes += 1
    storage.shared = False
    return True


def array_or_pending(tensor: Tensor) -> Any:
    """The values of a tensor as an array, a pending one where they are still to come."""
    view, storage = tensor._xt_view, tensor._xt_storage
    if type(storage) is LazyStorage:
        array = storage.operand
        if type(array) is Pending:
            if view is None:
                return array
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
