"""Elementary functions that are right to the last digits where XLA's own, for the CPU at least, are not."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

__all__ = ["atanh", "exp2", "log1p"]

# XLA's polynomial for small arguments is 128 ulps off at its end (jaxlib 0.10, -0.45 to -0.35); the sum loses 2.
SUM_BELOW = -0.34
LOG_2 = 0.6931471805599453


def log1p(x: jax.Array) -> jax.Array:
    """`log(1 + x)` of real or complex numbers."""
    if x.dtype != jnp.float64:
        return jnp.log1p(x)
    return jnp.where(x < SUM_BELOW, jnp.log(1 + x), jnp.log1p(x))


def atanh(x: jax.Array) -> jax.Array:
    """The inverse hyperbolic tangent of real or complex numbers, which XLA takes from `log1p` of both signs."""
    if x.dtype != jnp.float64:
        return jnp.arctanh(x)
    size = jnp.abs(x)
    return jnp.copysign(jnp.log1p(2 * size / (1 - size)) / 2, x)


def exp2(x: jax.Array) -> jax.Array:
    """2 to the power of real or complex numbers: exact at whole ones, where XLA rounds the product with log 2."""
    if x.dtype not in (jnp.float32, jnp.float64):
        return jnp.exp2(x)
    bias = 127 if x.dtype == jnp.float32 else 1023
    inside = jnp.clip(x, -2 * bias, 2 * bias)
    whole = jnp.round(inside)
    # In two steps, since one factor has not the range of subnormal results.
    half = jnp.floor(whole / 2)
    return jnp.exp((inside - whole) * LOG_2) * power_of_two(half, bias) * power_of_two(whole - half, bias)


def power_of_two(exponent: jax.Array, bias: int) -> jax.Array:
    """2 to the power of whole numbers within the exponents of their dtype: its bits."""
    kind: Any = jnp.int32 if bias == 127 else jnp.int64
    bits = (exponent.astype(kind) + bias) << (23 if bias == 127 else 52)
    return lax.bitcast_convert_type(bits, exponent.dtype)
