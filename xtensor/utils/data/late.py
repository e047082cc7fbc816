"""Tensors of worker processes: NumPy's values until an operator touches them, so that most workers never start XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import devices, dtypes, geometry
from ...host.at_hand import in_memory
from ...host.numbers import HostNumber
from ...ops.tensor.export import claimable
from ...shared_storage import HostMemory
from ...storage import HostValues, LazyStorage, MetaArray, Storage, yet_to_read
from ...tensor import Tensor, make_view, new

__all__ = ["host_values", "in_worker", "late", "rebuild_storage", "rows", "stacked"]


class _Here:
    worker = False


def in_worker(now: bool = True) -> None:
    """Say that this process is a worker."""
    _Here.worker = now


def late() -> bool:
    """Whether tensors stay NumPy's values until they are touched: in worker processes."""
    return _Here.worker


def host_values(storage: Storage) -> np.ndarray[Any, Any]:
    """The values of a storage, without XLA where they have not been touched."""
    held = storage.raw
    if type(held) is HostMemory:
        return held.memory
    unread = yet_to_read(storage)
    if isinstance(unread, HostNumber):
        return np.array(unread.value, unread.dtype)
    return unread.kept() if isinstance(unread, HostValues) else np.asarray(storage.array)


def late_storage(values: np.ndarray[Any, Any]) -> Storage:
    return LazyStorage(HostValues(values, devices.device("cpu")))


def late_tensor(values: np.ndarray[Any, Any]) -> Tensor:
    """A CPU tensor with these values, which nobody writes to any more."""
    made = new(Tensor)
    storage = made._xt_storage = late_storage(values)
    sizes = values.shape
    made._xt_edge = made._xt_meta = None
    made._xt_view = make_view(
        storage, storage, dtypes.FROM_NUMPY[values.dtype], sizes, geometry.contiguous_strides(sizes), 0
    )
    return made


def plain_values(tensor: Any) -> np.ndarray[Any, Any] | None:
    """The values of a tensor that knows no graph and is its whole storage, or sees NumPy's memory; None for any other."""
    if type(tensor) is not Tensor or tensor.requires_grad or tensor._xt_storage.is_meta:
        return None
    storage, view = tensor._xt_storage, tensor._xt_view
    if type(storage.raw) is HostMemory or type(storage.raw) is HostValues:
        return in_memory(storage.raw, view)
    if view is not None:
        sizes = tuple(view.sizes)
        whole = view.strides == geometry.contiguous_strides(sizes) and view.offset == 0
        if not whole or view.conj or view.neg or view.base is not None:
            return None
        values = host_values(storage)
        return values if values.shape == sizes and dtypes.FROM_NUMPY[values.dtype] is view.dtype else None
    return host_values(storage)


def stacked(batch: Sequence[Any]) -> Tensor | None:
    """Tensors, NumPy arrays or Python numbers of one kind side by side, or None where that takes an operator."""
    kind = type(batch[0])
    if any(type(sample) is not kind for sample in batch):
        return None
    if kind is float or kind is int:
        try:
            return late_tensor(np.array(batch, np.float64 if kind is float else np.int64))
        except OverflowError:
            return None
    if kind is not Tensor and not issubclass(kind, (np.ndarray, np.generic)):
        return None
    arrays: Any = [plain_values(sample) for sample in batch] if kind is Tensor else batch
    first = arrays[0]
    if any(array is None or array.dtype != first.dtype or array.shape != first.shape for array in arrays):
        return None
    return late_tensor(np.stack(arrays)) if first.dtype in dtypes.FROM_NUMPY else None


def rows(tensor: Tensor, indices: Sequence[int]) -> Tensor | None:
    """Rows of a tensor, or None where that takes an operator."""
    values = plain_values(tensor)
    return None if values is None else late_tensor(values[np.asarray(indices)])


def rebuild_storage(raw: Any, shape: tuple[int, ...], dtype: dtypes.dtype) -> Storage:
    """The storage of a tensor that came from another process, on the CPU."""
    values = np.frombuffer(raw, dtype.numpy).reshape(shape)
    if _Here.worker:
        return late_storage(values)
    storage = claimable(devices.put(values, devices.device("cpu"), copy=False))
    storage.shared = True
    return storage


def is_meta(storage: Storage) -> bool:
    """Whether there are no values."""
    return not isinstance(storage, LazyStorage) and type(storage.array) is MetaArray
