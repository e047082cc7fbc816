"""Values that are on the host: nothing runs and nothing is waited for to have them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import capture, devices, geometry
from ...host_numbers import HostNumber
from ...shared_storage import HostMemory
from ...tensor import ARRAY, Tensor, asks_grad, host_array, on_host
from ...xla.levels import tracing
from ...xla.pending import Pending
from ...xla.threads import others

__all__ = ["at_hand", "in_memory"]


def at_hand(tensor: Any, wait: bool = False) -> np.ndarray[Any, Any] | None:
    """The values of a tensor of the CPU that nobody differentiates, not to be written; None where they are not there, or not to be looked at.

    wait: for a program that makes them.
    """
    if type(tensor) is not Tensor or asks_grad(tensor) or capture.watchers or tracing.recorder is not None:
        return None
    storage, view = tensor._xt_storage, tensor._xt_view
    raw = storage.raw
    if wait and type(raw) is Pending:
        raw = storage.array
    if type(raw) is HostMemory:
        return in_memory(raw, view)
    if type(raw) is HostNumber:
        if view is not None and (view.neg or view.dtype.numpy != raw.dtype):
            return None
        value = np.array(raw.value, raw.dtype)
        return value if view is None else np.broadcast_to(value, view.sizes)
    # An array that a write has taken away is not to be asked, and another thread's write may take it any time.
    if type(raw) is not ARRAY or others or raw.is_deleted() or not (wait or raw.is_ready()):
        return None
    if view is None:
        place = devices.of_array(raw)
        return host_array(tensor) if place.type == "cpu" and place.sharding is None else None
    return host_array(tensor) if on_host(view, raw) else None


def in_memory(held: HostMemory, view: Any) -> np.ndarray[Any, Any] | None:
    """NumPy's memory as a view sees it."""
    if view is None:
        return held.memory
    if view.conj or view.neg or view.dtype.numpy != held.dtype:
        return None
    if view.strides == geometry.contiguous_strides(view.sizes):
        return held.memory.reshape(-1)[view.offset : view.offset + math.prod(view.sizes)].reshape(view.sizes)
    size = held.dtype.itemsize
    strides = tuple([s * size for s in view.strides])
    return np.ndarray(view.sizes, held.dtype, held.memory, view.offset * size, strides)
