"""Samples put together into batches."""

from __future__ import annotations

import collections.abc
import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...ops.create.ingest import as_tensor
from ...ops.create.ingest import tensor as make_tensor
from ...ops.shape.joining import stack
from ...tensor import Tensor
from .late import late, stacked

__all__ = ["collate", "default_collate", "default_convert"]

REFUSED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def rebuilt(like: Any, make: Callable[[], dict[Any, Any]]) -> Any:
    """A mapping of the class of `like` with other values; a plain dictionary where the class cannot be made so."""
    values = make()
    try:
        if isinstance(like, collections.abc.MutableMapping):
            clone = copy.copy(like)
            clone.update(values)
            return clone
        return type(like)(values)
    except TypeError:
        return values


def resequenced(like: Any, values: list[Any]) -> Any:
    """A sequence of the class of `like` with other values; a list where the class cannot be made so."""
    try:
        if isinstance(like, collections.abc.MutableSequence):
            clone = copy.copy(like)
            for i, value in enumerate(values):
                clone[i] = value
            return clone
        kind: Any = type(like)
        return kind(values)
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """NumPy arrays as Tensors, inside containers too; everything else as it is."""
    kind: Any = type(data)
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return rebuilt(data, lambda: {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        values = [default_convert(d) for d in data]
        return kind(*values) if hasattr(data, "_fields") else values
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return resequenced(data, [default_convert(d) for d in data])
    return data


CollateMap = dict[Any, Callable[..., Any]]


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Samples of one structure as one of the same structure; the map says what is done at its leaves, by type."""
    first = batch[0]
    kind: Any = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(first, known):
                return function(batch, collate_fn_map=collate_fn_map)

    def inner(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, collections.abc.Mapping):
        return rebuilt(first, lambda: {key: inner([d[key] for d in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*[inner(samples) for samples in zip(*batch, strict=False)])
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        values = [inner(samples) for samples in zip(*batch, strict=True)]
        return values if isinstance(first, tuple) else resequenced(first, values)
    raise TypeError(REFUSED.format(kind))


def on_host(collated: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """In worker processes NumPy puts together what needs no operator: XLA need not start there."""

    @functools.wraps(collated)
    def first_on_host(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
        made = stacked(batch) if late() else None
        return collated(batch, collate_fn_map=collate_fn_map) if made is None else made

    return first_on_host


@on_host
def collate_tensors(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return stack(list(batch), 0)


@on_host
def collate_arrays(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    if batch[0].dtype.kind in "SUO":
        raise TypeError(REFUSED.format(batch[0].dtype))
    try:
        return as_tensor(np.stack(batch))
    except ValueError:  # sizes differ: the error is `stack`'s
        return stack([as_tensor(array) for array in batch], 0)


@on_host
def collate_scalars(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return as_tensor(np.asarray(batch))


@on_host
def collate_floats(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return make_tensor(batch, dtype=dtypes.float64)


@on_host
def collate_ints(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return make_tensor(batch)


def collate_strings(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensors,
    np.ndarray: collate_arrays,
    (np.bool_, np.number): collate_scalars,
    float: collate_floats,
    int: collate_ints,
    str: collate_strings,
    bytes: collate_strings,
}


def default_collate(batch: Sequence[Any]) -> Any:
    """Tensors, arrays and numbers stacked along a new first dimension, inside containers too; strings in a list."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
