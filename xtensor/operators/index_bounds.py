"""Whether the values of an index array lie inside a dimension.

XLA clamps an index that is out of range, or drops the write, in silence; PyTorch raises. So every array of indices is
checked before the program that uses it starts, and a refused write has changed nothing.

Indices from Python or NumPy are checked on the host, for nothing. Of an array on the device the smallest and largest
value are found once: arrays are immutable, so what is known of one stays true while it lives. On a CPU that reads the
array's own memory; on an accelerator it waits for the array, then two numbers come back, as they would have to from
inside the program.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .. import capture, devices, geometry
from ..storage import MetaArray
from ..tensor import Tensor, sizes_of, strides_of
from ..xla.cache import BoundedCache
from ..xla.levels import batches_of, ground
from ..xla.x64 import call, jit

__all__ = [
    "bounds_of",
    "check_bounds",
    "check_has_values",
    "check_values",
    "in_bounds",
    "known_bounds",
    "later",
    "on_cpu",
    "readable",
    "refuse_overlap",
    "remember",
]

_known: BoundedCache[int, tuple[weakref.ref[Any], int, int]] = BoundedCache(4096)


def remember(array: Any, least: int, most: int) -> None:
    """Note the bounds of an index array that its maker knows; they may be wider than its values."""
    _known[id(array)] = (weakref.ref(array), least, most)


def on_cpu(array: Any) -> bool:
    """Whether NumPy can read the array where it is."""
    (*places,) = array.devices()
    return len(places) == 1 and places[0].platform == "cpu"


@jit
def extremes(array: Any) -> Any:
    return jnp.stack([jnp.min(array), jnp.max(array)])


def known_bounds(array: Any) -> tuple[Any, int, int] | None:
    """The entry of an array whose smallest and largest value (the last two) were found before."""
    found = _known.get(id(array))
    return found if found is not None and found[0]() is array else None


def bounds_of(array: Any) -> tuple[int, int]:
    """The smallest and largest value of a non-empty array of integers."""
    array = ground(array)
    found = known_bounds(array)
    if found is not None:
        return found[1], found[2]
    if on_cpu(array):
        values = np.asarray(array)
        least, most = int(values.min()), int(values.max())
    else:
        least, most = call(extremes, array).tolist()
    remember(array, least, most)
    return least, most


def check_has_values(array: Any) -> None:
    """NotImplementedError for a meta tensor's array, where the shape of a result is among the values."""
    if type(array) is MetaArray:
        raise NotImplementedError(
            "the result's size depends on values, which tensors on the meta device do not have"
        )


def later(array: Any, fits: Callable[[Any], bool]) -> None:
    """Have values asked whether they fit that a program being captured will have; those of any other trace are never looked at."""
    watcher = capture.running()
    if watcher is not None:
        watcher.unseen(array, fits)


def readable(array: Any) -> bool:
    """Whether looking at the values of an array costs no transfer from a device."""
    if type(array) is MetaArray or not hasattr(array, "devices") or batches_of(array):
        return False
    array = ground(array)
    if isinstance(array, Tracer):
        return capture.running() is not None and devices.current().type == "cpu"
    places = array.devices()
    return len(places) == 1 and next(iter(places)).platform == "cpu"


def check_values(array: Any, wrong: Callable[[np.ndarray[Any, Any]], Exception | None]) -> None:
    """Raise what `wrong` gives for the values of an array, where looking at them costs no transfer from a device.

    Those of a program that is being captured are looked at when it has them, those of any other trace never.
    """
    if not readable(array):
        return
    array = ground(array)
    if isinstance(array, Tracer):
        later(array, lambda values: wrong(np.asarray(values)) is None)
        return
    error = wrong(np.asarray(array))
    if error is not None:
        raise error


def in_bounds(array: Any, size: int, wrap: bool) -> bool:
    """Whether all values lie in `[0, size)`, or `[-size, size)` where negative ones `wrap`.

    A meta array, and one that only exists while a program is traced, has no values to look at.
    """
    array = ground(array)
    if array.size == 0 or type(array) is MetaArray:
        return True
    if isinstance(array, Tracer):
        later(array, lambda values: in_bounds(values, size, wrap))
        return True
    least, most = (array.min(), array.max()) if isinstance(array, np.ndarray) else bounds_of(array)
    return bool(least >= (-size if wrap else 0) and most < size)


def check_bounds(array: Any, size: int, wrap: bool, error: Callable[[int], Exception]) -> None:
    """Raise `error(value)` for the first value outside `[0, size)`, or `[-size, size)` where negative ones `wrap`."""
    if not in_bounds(array, size, wrap):
        values = np.asarray(ground(array)).reshape(-1)
        outside = values[(values < (-size if wrap else 0)) | (values >= size)]
        if outside.size:
            raise error(int(outside[0]))


def refuse_overlap(target: Tensor, *others: Any) -> None:
    """Refuse operands that share memory with the destination of an indexed write, the same elements included."""
    for other in others:
        if other is target:
            raise RuntimeError(geometry.INPUT_OVERLAP)
        if isinstance(other, Tensor) and other._xt_storage is target._xt_storage:
            geometry.assert_no_overlap(
                (tuple(sizes_of(target)), strides_of(target), target.storage_offset()),
                (tuple(sizes_of(other)), strides_of(other), other.storage_offset()),
                target.dtype.itemsize,
                other.dtype.itemsize,
            )
