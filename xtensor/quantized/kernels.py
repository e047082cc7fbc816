"""Kernels of quantised tensors: between real numbers and integers."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..xla.cache import bounded
from ..xla.x64 import jit

__all__ = ["dequantising", "quantising"]


def along(values: Any, axis: int | None, ndim: int) -> Any:
    """Parameters in float32, as they broadcast: of each channel along its axis."""
    values = jnp.asarray(values).astype(jnp.float32)
    return values if axis is None else values.reshape([-1 if i == axis else 1 for i in range(ndim)])


def saturated(values: Any, dtype: Any) -> Any:
    """Rounded floating values as integers: the nearest that there is. What is no number becomes the largest, of 32 bits the smallest."""
    limits = np.iinfo(dtype)
    lost = limits.min if np.dtype(dtype).itemsize == 4 else limits.max
    kept = jnp.clip(values, np.float32(limits.min), np.float32(limits.max)).astype(dtype)
    return jnp.where(jnp.isnan(values), jnp.asarray(lost, dtype), kept)


@bounded(64)
def quantising(dtype: str, axis: int | None) -> Any:
    """A program from real numbers, scales and zero points to integers."""

    def quantise(values: Any, scale: Any, zero_point: Any) -> Any:
        inverse = np.float32(1) / along(scale, axis, values.ndim)
        point = along(zero_point, axis, values.ndim)
        # What is at the zero point of scale 0 is no number times infinity.
        return saturated(jnp.rint(values * inverse + point), np.dtype(dtype))

    return jit(quantise)


@bounded(16)
def dequantising(axis: int | None) -> Any:
    """A program from integers, scales and zero points to real numbers."""

    def dequantise(values: Any, scale: Any, zero_point: Any) -> Any:
        scale, point = along(scale, axis, values.ndim), along(zero_point, axis, values.ndim)
        return (values.astype(jnp.float32) - point) * scale

    return jit(dequantise)
