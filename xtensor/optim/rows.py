"""Rows of sparse gradients as optimizers take them: one for each place, as many as one of few numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import devices
from ..operators.write import covers, rewrite
from ..tensor import Tensor, array_of, wrap
from ..xla.x64 import call, jit

__all__ = ["RowUpdate", "rows_of"]


class RowUpdate:
    """A function of a parameter's or state's array and rows that gives the array with those rows changed, in place where it can be."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.copying, self.donating = jit(function), jit(function, donate_argnums=0)

    def __call__(self, target: Tensor, *args: Any) -> None:
        """Change the target."""
        if covers(target):
            # Zeros may be one array for several states: it is given up where nobody else holds it.
            sole = target._xt_storage.sole_owner()
            rewrite(target, "step", self.donating if sole else self.copying, *args)
        else:
            target.copy_(wrap(call(self.copying, array_of(target), *args)))


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
