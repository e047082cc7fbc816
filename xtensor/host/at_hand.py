"""Values that are on the host: nothing runs and nothing is waited for to have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import capture, devices
from ..shared_storage import HostMemory
from ..storage import HostValues
from ..tensor import ARRAY, Tensor, asks_grad, part_of, plain_in
from ..xla import segments
from ..xla.levels import tracing
from ..xla.pending import Pending
from ..xla.threads import others
from .numbers import HostNumber

__all__ = ["at_hand", "in_memory"]


def at_hand(tensor: Any, wait: bool = False) -> np.ndarray[Any, Any] | None:
    """The values of a tensor of the CPU that nobody differentiates, not to be written; None where they are not there, or not to be looked at.

    wait: for a program that makes them.
    """
    if type(tensor) is not Tensor or asks_grad(tensor) or capture.watchers or tracing.recorder is not None:
        return None
    storage, view = tensor._xt_storage, tensor._xt_view
    raw = storage.raw
    if type(raw) is Pending:
        raw = storage.array if wait else raw._value
    if type(raw) is HostMemory or type(raw) is HostValues:
        return in_memory(raw, view)
    if type(raw) is HostNumber:
        if view is not None and (view.neg or view.dtype.numpy != raw.dtype):
            return None
        value = np.array(raw.value, raw.dtype)
        return value if view is None else np.broadcast_to(value, view.sizes)
    # An array that a write has taken away is not to be asked, and another thread's write may take it any time.
    if type(raw) is not ARRAY or others or raw.is_deleted() or not (wait or raw.is_ready()):
        return None
    segments.state.reads += wait
    place = devices.of_array(raw)
    if place.type != "cpu" or place.sharding is not None:
        return None
    if view is None:
        return np.asarray(raw)
    return part_of(np.asarray(raw), view) if plain_in(view, raw) else None


def in_memory(held: HostMemory | HostValues, view: Any) -> np.ndarray[Any, Any] | None:
    """The host's memory as a view sees it, which writes to a storage do not change."""
    if view is not None and not plain_in(view, held):
        return None
    values = held.memory if view is None else part_of(held.memory, view)
    return values.copy() if type(held) is HostValues and held.own is not None else values
