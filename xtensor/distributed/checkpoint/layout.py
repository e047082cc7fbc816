"""What a checkpoint holds, as its index says it: tensors in boxes, each box somewhere in a file; and all else."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...tensor import Tensor, array_of

__all__ = ["Box", "flattened", "own_boxes", "put_back"]

SEPARATOR = "\x1f"
"""Between the keys of nested dictionaries, in the keys of the index."""

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""Where a part of a tensor begins, and its sizes."""


def flattened(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves of nested dictionaries and lists with their paths."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from flattened(each, (*path, key))
    elif isinstance(value, (list, tuple)) and any(isinstance(v, (Tensor, dict, list)) for v in value):
        for i, each in enumerate(value):
            yield from flattened(each, (*path, i))
    else:
        yield path, value


def put_back(state: Any, path: tuple[Any, ...], value: Any) -> None:
    """Set a leaf of nested dictionaries and lists."""
    for key in path[:-1]:
        state = state[key]
    state[path[-1]] = value


def name_of(path: tuple[Any, ...]) -> str:
    """The key of a leaf in the index."""
    return SEPARATOR.join(map(str, path))


def stateful(state: dict[str, Any]) -> dict[str, Any]:
    """The state with what has a `state_dict` replaced by it."""
    return {k: v.state_dict() if hasattr(v, "state_dict") else v for k, v in state.items()}


def own_boxes(tensor: Tensor, first: bool) -> list[tuple[Box, Any]]:
    """The parts of a tensor that this process writes, as arrays; `first` is whether it writes what all have."""
    array = array_of(tensor.detach())
    if tensor.device.sharding is None:
        return [(((0,) * array.ndim, tuple(array.shape)), array)] if first else []
    return [
        (box_of(shard.index, array.shape), shard.data)
        for shard in array.addressable_shards
        if shard.replica_id == 0
    ]


def box_of(index: tuple[slice, ...], shape: tuple[int, ...]) -> Box:
    """The box that slices of an array of this shape mean."""
    spans = [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
    return tuple([a for a, _ in spans]), tuple([b - a for a, b in spans])


def read_box(entry: dict[str, Any], box: Box, read: Any) -> np.ndarray[Any, Any]:
    """The values of a part of a tensor, put together of the boxes that were written; KeyError where some are missing."""
    dtype = np.dtype(entry["dtype"])
    starts, sizes = box
    found = np.empty(sizes, dtype)
    filled = 0
    for part in entry["parts"]:
        low = [max(a, b) for a, b in zip(starts, part["start"], strict=True)]
        high = [
            min(a + n, b + m) for a, n, b, m in zip(starts, sizes, part["start"], part["size"], strict=True)
        ]
        if any(a >= b for a, b in zip(low, high, strict=True)):
            continue
        raw = read(part["file"], part["offset"], math.prod(part["size"]) * dtype.itemsize)
        values = raw.view(dtype).reshape(part["size"])
        source = tuple([slice(a - b, c - b) for a, c, b in zip(low, high, part["start"], strict=True)])
        target = tuple([slice(a - b, c - b) for a, c, b in zip(low, high, starts, strict=True)])
        found[target] = values[source]
        filled += math.prod(b - a for a, b in zip(low, high, strict=True))
    if filled != math.prod(sizes):
        raise KeyError(f"the checkpoint has {filled} of {math.prod(sizes)} elements")
    return found
