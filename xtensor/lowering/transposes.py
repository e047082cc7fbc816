"""Dimensions of an array in another order.

XLA's CPU code writes a transposed array element by element in the order of the result, so it reads with the strides of the
operand. Where those are multiples of kilobytes, as of matrices whose sizes are powers of two, what is read lies in few places
of the caches, and every cache line is fetched anew for each of its elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..xla.platforms import on_cpu
from ..xla.symbolic import at_most

__all__ = ["in_strips", "transpose"]

LINE = 64
"""Bytes of a cache line: the width of a strip."""
CONFLICT = 2048
"""Strides that are multiples of so many bytes fall on few places of a cache."""


def transpose(x: Any, order: Sequence[int]) -> Any:
    """The dimensions of `x` in that order."""
    order = tuple(order)
    if not conflicts(x, order):
        return lax.transpose(x, order)
    return on_cpu("transposition", lambda x: as_bits(x, order), lambda x: lax.transpose(x, order), x)


def conflicts(x: Any, order: tuple[int, ...]) -> bool:
    """Whether the result's last dimension walks through `x` by strides that a cache cannot hold many of."""
    last = order[-1]
    stride = prod(x.shape[last + 1 :]) * x.dtype.itemsize
    return at_most(CONFLICT, stride) and stride % CONFLICT == 0 and at_most(LINE, x.shape[last])


def as_bits(x: Any, order: tuple[int, ...]) -> Any:
    """`in_strips` of whatever moves as fast as numbers do: XLA would widen a bfloat16 array for every strip, all of it."""
    if x.dtype.kind != "V" or not jnp.issubdtype(x.dtype, jnp.floating):
        return in_strips(x, order)
    bits = lax.bitcast_convert_type(x, np.dtype(f"uint{8 * x.dtype.itemsize}"))
    return lax.bitcast_convert_type(in_strips(bits, order), x.dtype)


def in_strips(x: Any, order: tuple[int, ...]) -> Any:
    """As many lines of the operand at a time as fill a cache line of the result."""
    last = order[-1]
    size, width = x.shape[last], LINE // x.dtype.itemsize
    whole = size - size % width

    def move(source: Any, result: Any, start: Any) -> Any:
        return lax.dynamic_update_slice_in_dim(result, lax.transpose(source, order), start, len(order) - 1)

    def strip(i: Any, result: Any) -> Any:
        return move(lax.dynamic_slice_in_dim(x, i * width, width, last), result, i * width)

    result = lax.fori_loop(0, whole // width, strip, jnp.zeros([x.shape[d] for d in order], x.dtype))
    return result if whole == size else move(lax.slice_in_dim(x, whole, size, axis=last), result, whole)
