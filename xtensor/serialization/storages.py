"""Storages on their way out of a file: known by size and type first, read when they are touched."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from .. import devices, dtypes
from ..ops.tensor.typed_storages import TypedStorage
from ..storage import MetaArray, Storage, UntypedStorage, yet_to_read
from ..tensor import Tensor, make_view, tensor_over
from ..xla.x64 import call

__all__ = ["FileStorage", "LoadedStorage", "fill", "named", "named_by", "unread_of"]


class FileStorage:
    """Bytes in a file as the array of a LazyStorage.

    fetch: the bytes, fresh or (`mapped`) in the file's mapping. tensors: those that cover the storage, weakly.
    """

    __slots__ = ("device", "dtype", "fetch", "mapped", "shape", "swapped", "tensors")

    def __init__(
        self,
        fetch: Callable[[], np.ndarray[Any, Any]],
        nbytes: int,
        dtype: dtypes.dtype,
        device: devices.device,
        swapped: bool = False,
        mapped: bool = False,
    ) -> None:
        self.fetch, self.dtype, self.device = fetch, dtype.numpy, device
        self.shape: tuple[int, ...] = (nbytes // dtype.itemsize,)
        self.swapped, self.mapped = swapped, mapped
        self.tensors: list[weakref.ref[Tensor]] = []

    def read(self) -> tuple[Any, bool]:
        """The array on its device; what lies in the mapping is shared with the file."""
        if self.device.type == "meta":
            return MetaArray(self.shape, self.dtype), False
        return place(self.host(), self.device), self.mapped

    def on(self, device: devices.device) -> FileStorage:
        """The same bytes, to be read to another device."""
        return FileStorage(
            self.fetch, self.nbytes, dtypes.FROM_NUMPY[self.dtype], device, self.swapped, self.mapped
        )

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def host(self) -> np.ndarray[Any, Any]:
        """The values, in the machine's byte order."""
        raw = self.fetch()
        if self.dtype == np.bool_:
            # XLA knows no other truth than 1.
            values = raw.view(np.bool_) if raw.max(initial=0) <= 1 else raw != 0
        else:
            values = raw.view(self.dtype)
            if self.swapped and self.dtype.itemsize > 1:
                values = values.byteswap()
        return values.reshape(self.shape)

    def retype(self, dtype: dtypes.dtype) -> bool:
        """Take the bytes as elements of this type, where they divide into them."""
        if self.tensors or self.nbytes % dtype.itemsize:
            return False
        self.dtype, self.shape = dtype.numpy, (self.nbytes // dtype.itemsize,)
        return True

    def claim(self, tensor: Tensor, sizes: tuple[int, ...]) -> None:
        """`tensor` covers the storage in row-major order: the first such gives the array its shape."""
        if not self.tensors:
            self.shape = sizes
        if self.shape == sizes:
            self.tensors.append(weakref.ref(tensor))


def place(values: np.ndarray[Any, Any], device: devices.device) -> Any:
    """`values`, which nobody will write to, on a device: on a CPU without a copy where they are aligned."""
    return call(jax.device_put, values, devices.jax_device(device))


class LoadedStorage(UntypedStorage):
    """A storage as a file's pickle names it: of bytes."""

    __slots__ = ()
    dtype = dtypes.uint8


def named(storage: Storage, dtype: dtypes.dtype | None) -> LoadedStorage | TypedStorage:
    """A storage for what is rebuilt from it, and for who saved it itself."""
    if dtype is None:
        return LoadedStorage(storage)
    count = storage.nbytes() // dtype.itemsize
    return TypedStorage._of(tensor_over(storage, make_view(storage, storage, dtype, (count,), (1,), 0)))


def named_by(loaded: LoadedStorage | TypedStorage) -> Storage:
    """The storage that was named."""
    return (loaded._row if isinstance(loaded, TypedStorage) else loaded)._xt_storage


def unread_of(storage: Storage) -> FileStorage | None:
    """What is still to be read of a storage, or None."""
    unread = yet_to_read(storage)
    return unread if isinstance(unread, FileStorage) else None


def fill(storage: Storage) -> None:
    """Read the storage now; the first tensor that covers it takes its sizes from the array, which is the fast way."""
    unread = unread_of(storage)
    if unread is None:
        return
    assert storage.array is not None
    for reference in unread.tensors:
        tensor = reference()
        if tensor is None or tensor._xt_storage is not storage or tensor._xt_view is None:
            continue
        if tensor._xt_view.base is None and tensor._xt_view.counter is storage:
            storage.cover = weakref.ref(tensor)
            tensor._xt_view = None
            return
