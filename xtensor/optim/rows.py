"""Rows of sparse gradients as optimizers take them: one for each place, as many as one of few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import devices
from ..tensor import array_of

__all__ = ["rows_of"]


def rows_of(grad: Any) -> tuple[Any, Any]:
    """Where the elements of a sparse gradient lie, a vector for each sparse dimension, and the elements.

    Places outside of the parameter fill up to a rounded number, so that steps which differ by a few rows share their programs.
    """
    whole = grad.coalesce()
    index, values = np.asarray(array_of(whole._indices())), np.asarray(array_of(whole._values()))
    count = rounded(index.shape[1])
    outside = np.full((index.shape[0], count), 2**31 - 1, np.int64)
    outside[:, : index.shape[1]] = index
    filled = np.zeros((count, *values.shape[1:]), values.dtype)
    filled[: len(values)] = values
    place = grad.device
    return tuple([devices.put(row.astype(np.int32), place) for row in outside]), devices.put(filled, place)


def rounded(count: int) -> int:
    """A number of rows, up to a quarter more: the next of four between powers of two."""
    if count <= 8:
        return 8
    step = 1 << (count.bit_length() - 3)
    return -(-count // step) * step
