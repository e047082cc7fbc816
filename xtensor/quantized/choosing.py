"""Scales and zero points for ranges of numbers, chosen within a program: 0 is met exactly."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

__all__ = ["chosen"]

LEAST = 6.1e-5
"""The smallest scale: quotients by smaller ones would leave float32's range of full precision."""


def chosen(low: Any, high: Any, least: int, most: int, symmetric: bool = False) -> tuple[Any, Any]:
    """Scales, float64, and zero points, int32, for ranges: of integers from `least` to `most`.

    Where `symmetric`, a range on both sides of 0 is made as wide on either.
    """
    low = jnp.minimum(jnp.asarray(low).astype(jnp.float64), 0)
    high = jnp.maximum(jnp.asarray(high).astype(jnp.float64), 0)
    both = (low < 0) & (high > 0)
    if symmetric:
        half = (most - least) // 2
        below, above = -(half + 1), half
        widest = jnp.maximum(jnp.abs(low / below), jnp.abs(high / above))
        low = jnp.where(both, (widest * below).astype(jnp.float32).astype(jnp.float64), low)
        high = jnp.where(both, (widest * above).astype(jnp.float32).astype(jnp.float64), high)
    span = most - least
    scale = (high - low) / span
    short = scale.astype(jnp.float32)
    scale = jnp.where((short == 0) | jnp.isinf(1 / short), 0.1, scale)
    small = scale < LEAST
    factor = LEAST / scale
    wide_low = jnp.where(high == 0, -LEAST * span, jnp.where(low == 0, low, low * factor))
    wide_high = jnp.where(low == 0, LEAST * span, jnp.where(high == 0, high, high * factor))
    low, high = jnp.where(small, wide_low, low), jnp.where(small, wide_high, high)
    scale = jnp.where(small, LEAST, scale)
    from_low, from_high = least - low / scale, most - high / scale
    error_low = abs(least) - jnp.abs(low / scale)
    error_high = abs(most) - jnp.abs(high / scale)
    point = jnp.where(error_low < error_high, from_low, from_high)
    if symmetric:
        point = jnp.where(both, (least + most) / 2, point)
    return scale, jnp.clip(jnp.rint(point), least, most).astype(jnp.int32)


def moved(held: Any, new: Any, constant: Any) -> Any:
    """A moving average, that begins with what comes first."""
    new = new.astype(held.dtype)
    return jnp.where(jnp.isinf(held), new, held + constant.astype(jnp.float32) * (new - held))
