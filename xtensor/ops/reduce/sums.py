"""Sums over dimensions; of middling sizes on the CPU as products with ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...xla.platforms import on_cpu
from ...xla.symbolic import is_open

__all__ = ["count", "total"]

FLOATS = (np.float32, np.float64)
FEWEST, MOST = 1 << 13, 1 << 20
"""Elements from which, and bytes up to which, products are faster."""
WIDE = 64
"""Elements of a row from which rows are added up by a product."""
WIDTHS = (256, 128, 64, 32, 16)
"""Into rows of how many elements a sum of all is divided."""


def total(x: Any, axes: Sequence[int], keepdims: bool = False) -> Any:
    """The sum over `axes`."""
    axes = tuple(sorted(axes))
    plain = lambda x: jnp.sum(x, axis=axes, keepdims=keepdims)
    made = by_products(x.shape, x.dtype, axes, keepdims) if x.dtype in FLOATS else None
    return plain(x) if made is None else on_cpu("sum", made, plain, x)


def count(x: Any, axes: Sequence[int], keepdims: bool = False) -> Any:
    """How many bools over `axes` are true, as int64. Sums of so few ones are exact as floats."""
    axes = tuple(sorted(axes))
    plain = lambda x: jnp.sum(x, axis=axes, keepdims=keepdims, dtype=jnp.int64)
    made = by_products(x.shape, np.dtype(np.float32), axes, keepdims)
    if made is None:
        return plain(x)
    return on_cpu("sum", lambda x: made(x.astype(np.float32)).astype(np.int64), plain, x)


def by_products(shape: Sequence[Any], dtype: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """The way over products, None where the general one is as fast."""
    if any(map(is_open, shape)) or not FEWEST <= math.prod(shape) <= MOST // np.dtype(dtype).itemsize:
        return None
    made = divided(shape, axes)
    left = tuple([1 if d in axes else n for d, n in enumerate(shape) if keepdims or d not in axes])
    return None if made is None else lambda x: made(x).reshape(left)


def divided(shape: Sequence[int], axes: Sequence[int]) -> Any:
    """How products find a sum, but for its shape: of the last dimensions, then of the others; None where they cannot."""
    ndim, size = len(shape), math.prod(shape)
    if len(axes) == ndim:
        width = next((w for w in WIDTHS if size % w == 0), 1)
        if width < shape[-1] <= size // WIDE:
            width = shape[-1]
        return None if width == 1 else lambda x: jnp.sum(of_rows(x.reshape(-1, width)))
    split = ndim
    while split - 1 in axes:
        split -= 1
    if split < ndim:
        kept, rest = shape[:split], tuple([d for d in axes if d < split])
        return lambda x: jnp.sum(of_rows(x.reshape(math.prod(kept), -1)).reshape(kept), axis=rest)
    first = len(axes)
    if axes != tuple(range(first)) or math.prod(shape[first:]) < WIDE:
        return None
    return lambda x: of_columns(x.reshape(math.prod(shape[:first]), -1))


def of_rows(x: Any) -> Any:
    return lax.dot_general(x, np.ones(x.shape[1], x.dtype), (((1,), (0,)), ((), ())), precision=EXACT)


def of_columns(x: Any) -> Any:
    return lax.dot_general(np.ones(x.shape[0], x.dtype), x, (((0,), (0,)), ((), ())), precision=EXACT)


EXACT = lax.Precision.HIGHEST
