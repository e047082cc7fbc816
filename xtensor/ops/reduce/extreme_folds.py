"""The largest and the smallest of floats along dimensions, with NaN where there is one, which XLA's folds on CPUs may lose."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from ...xla.platforms import on_cpu

__all__ = ["extreme_fold"]

SMALL = 1024
"""Elements below which XLA folds by itself, and right: from about 2,048 on it has a library do it."""
LARGE = 1 << 16
"""Elements from which a sum is worth its time, to look for NaN only where there may be one."""


def extreme_fold(x: Any, axes: tuple[int, ...], keepdims: bool, largest: bool) -> Any:
    """The largest or smallest elements over `axes`; NaN where there is one."""

    def fold(x: Any) -> Any:
        return (jnp.max if largest else jnp.min)(x, axis=axes, keepdims=keepdims)

    def marked(x: Any) -> Any:
        unknown = jnp.any(jnp.isnan(x), axis=axes, keepdims=keepdims)
        return jnp.where(unknown, jnp.asarray(jnp.nan, x.dtype), fold(x))

    def looked_at(x: Any) -> Any:
        # No sum is a number where an element is none; infinities of both signs are looked at in vain.
        total = jnp.sum(x, axis=axes)
        return lax.cond(jnp.any(jnp.isnan(total)), marked, fold, x)

    # Shorter floats are widened before they are folded, which the library does not take.
    if not jnp.issubdtype(x.dtype, jnp.floating) or x.dtype.itemsize < 4:
        return fold(x)
    known = all(isinstance(size, int) for size in x.shape)
    if known and x.size < SMALL:
        return fold(x)
    return on_cpu("extrema", looked_at if known and x.size >= LARGE else marked, fold, x)
