"""Dual tensors that share memory: their values with the tensor that they were made of, their tangents with its tangent.

A `DualStorage` has no array of its own. It reads one out of two storages, and what is written to it goes into both.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ... import devices
from ...engine import modes
from ...storage import Storage, cell
from ...tensor import (
    Tensor,
    alias,
    array_of,
    asks_grad,
    make_view,
    sizes_of,
    strides_of,
    tensor_over,
    wrap,
)
from ...xla.levels import KINDS, Dual, Level, batches_of
from ...xla.transformed import paired, parts, program_of
from ...xla.x64 import call
from .crossing import given_tangent, tangent

__all__ = ["dual_over", "tangent_of", "unpacked"]


class Halves:
    """What a DualStorage reads: tensors over the whole of two storages. seen: their arrays when last read, and what they made."""

    __slots__ = ("level", "seen", "tangent", "value")

    def __init__(self, level: Level, value: Tensor, tangent: Tensor) -> None:
        self.level = level
        self.value = value
        self.tangent = tangent
        self.seen: tuple[Any, Any, Any] = (None, None, None)


_slot: Any = Storage.sharing  # type: ignore[attr-defined]
_shared: Any = Storage.shared  # type: ignore[attr-defined]


class DualStorage(Storage):
    """A storage of values with tangents, which lie in two others; after its level has ended, of the values alone."""

    __slots__ = ()

    @property
    def array(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        halves: Halves = _slot.__get__(self)
        value = halves.value._xt_storage.array
        if not halves.level.open:
            return value
        along = halves.tangent._xt_storage.array
        seen = halves.seen
        if seen[0] is not value or seen[1] is not along:
            seen = halves.seen = (value, along, paired(halves.level, value, along))
            cell.__set__(self, seen[2])
        return seen[2]

    @array.setter
    def array(self, array: Any) -> None:
        halves: Halves = _slot.__get__(self)
        if not halves.level.open:
            halves.value._xt_storage.replace(array)
            return
        value, along = parts(halves.level, array)
        halves.value._xt_storage.replace(value)
        other = halves.tangent._xt_storage
        other.replace(call(program_of(jnp.zeros_like), value) if along is None else along)
        other.version += 1

    raw = array  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]

    @property
    def writes(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        halves: Halves = _slot.__get__(self)
        return halves.value._xt_storage.writes + halves.tangent._xt_storage.writes

    @writes.setter
    def writes(self, count: int) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        halves: Halves = _slot.__get__(self)
        halves.value._xt_storage.writes = count - halves.tangent._xt_storage.writes

    @property
    def version(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return _slot.__get__(self).value._xt_storage.version

    @version.setter
    def version(self, count: int) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        _slot.__get__(self).value._xt_storage.version = count

    @property
    def shared(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return True

    @shared.setter
    def shared(self, shared: bool) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        _shared.__set__(self, True)

    @property
    def device(self) -> devices.device:
        return devices.of_array(_slot.__get__(self).value._xt_storage.array)


def _made(halves: Halves) -> DualStorage:
    storage = object.__new__(DualStorage)
    _slot.__set__(storage, halves)
    storage.address = 0
    storage.cover = None
    cell.__set__(storage, None)
    return storage


def _whole(tensor: Tensor) -> Tensor:
    """A tensor like this one, over the same storage."""
    return alias(tensor, tuple(sizes_of(tensor)), tuple(strides_of(tensor)), tensor.storage_offset())


def _geometry(tensor: Tensor) -> Any:
    # Where nothing lies does not matter.
    offset = tensor.storage_offset() if tensor.numel() else 0
    return tuple(sizes_of(tensor)), tuple(strides_of(tensor)), offset


def _lies_as(tensor: Tensor, other: Tensor) -> bool:
    """Whether two tensors have their elements at the same places of storages of the same size."""
    return (
        tensor.dtype is other.dtype
        and tensor._xt_storage is not other._xt_storage
        and tuple(tensor._xt_storage.array.shape) == tuple(other._xt_storage.array.shape)
        and _geometry(tensor) == _geometry(other)
    )


def _plain(tensor: Tensor) -> bool:
    view = tensor._xt_view
    array = tensor._xt_storage.array
    whole = view is None or not (view.conj or view.neg or view.dtype.numpy != array.dtype)
    return whole and hasattr(array, "devices") and not asks_grad(tensor)


def dual_over(tensor: Tensor, tangent: Tensor, level: Level) -> Tensor | None:
    """A tensor with a tangent over the memory of both; None where autograd has a part in it, or the memory is seen otherwise."""
    if type(tensor) is not Tensor or not (_plain(tensor) and _plain(tangent)):
        return None
    view = tensor._xt_view
    if view is not None and batches_of(array_of(tangent)):
        return None  # the tangents of a batch lie nowhere in the memory of one
    value = _whole(tensor)
    if _lies_as(tangent, tensor):
        along = tangent
    elif view is None:
        along = wrap(array_of(tangent.to(tensor.dtype)))
    else:
        # The tangent of what the tensor is a view of, of which this part alone is ever seen.
        zeros = call(program_of(jnp.zeros_like), tensor._xt_storage.array)
        along = alias(wrap(zeros), *_geometry(tensor))
        with modes.no_grad():
            along.copy_(tangent)
    storage = _made(Halves(level, value, along))
    if view is None:
        return tensor_over(storage)
    return tensor_over(
        storage, make_view(storage, storage, view.dtype, view.sizes, view.strides, view.offset)
    )


def unpacked(tensor: Tensor, level: Level) -> tuple[Tensor, Tensor] | None:
    """Value and tangent of a tensor, over its own memory; None where they are to be computed."""
    storage = tensor._xt_storage
    view = tensor._xt_view
    if asks_grad(tensor) or (view is not None and (view.conj or view.neg)):
        return None
    if type(storage) is not DualStorage and not _split(storage, level):
        return None
    halves: Halves = _slot.__get__(storage)
    if halves.level is not level or (view is not None and view.dtype is not halves.value.dtype):
        return None
    own = _geometry(tensor)
    along = halves.tangent if _geometry(halves.tangent) == own else alias(halves.tangent, *own)
    return alias(halves.value, *own), along


def tangent_of(tensor: Tensor, level: Level) -> Tensor | None:
    """The tangent at a level: the very tensor that was given where that still is it, None where it is zero."""
    known = given_tangent(tensor)
    if known is not None:
        return known
    found = unpacked(tensor, level)
    return tangent(tensor, level) if found is None else found[1]


def _split(storage: Storage, level: Level) -> bool:
    """Have a storage that holds values with tangents hold them in two others from now on."""
    array = storage.array
    if type(storage) is not Storage or type(array) is not Dual or array.level is not level:
        return False
    if array.tangent is None or array.outer or {type(array.inner), type(array.tangent)} & KINDS:
        return False
    value, along = wrap(array.inner), wrap(array.tangent)
    value._xt_storage.version, value._xt_storage.writes = storage.version, storage.writes
    halves = Halves(level, value, along)
    halves.seen = (array.inner, array.tangent, array)
    _slot.__set__(storage, halves)
    storage.__class__ = DualStorage  # pyright: ignore[reportAttributeAccessIssue]
    return True
