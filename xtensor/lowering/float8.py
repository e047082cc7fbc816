"""Conversion to the float8 dtypes as PyTorch's: what is too large for float8_e4m3fn is its largest value, NaN keeps its sign
in float8_e5m2, and float8_e8m0fnu, which has neither zero nor sign, takes the magnitude and 2**-127 for zero.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

__all__ = ["FLOAT8", "host_float8", "to_float8"]

FLOAT8 = frozenset(
    np.dtype(kind)
    for kind in (
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2fnuz,
        ml_dtypes.float8_e8m0fnu,
    )
)
NAN_OF_E5M2 = 0x7F


def to_float8(array: Any, target: Any) -> Any:
    """A real array as one of a float8 dtype, through float32."""
    made = _converted(jnp, array.astype(np.float32), np.dtype(target), lax.bitcast_convert_type)
    if array.dtype == np.float64 and made.dtype == ml_dtypes.float8_e8m0fnu:
        # XLA's conversion to float32 takes what is subnormal there for zero; the least numbers differ at 2**-127.
        size = jnp.abs(array)
        least = lax.bitcast_convert_type((size > 2.0**-127 + 2.0**-150).astype(np.uint8), made.dtype)
        made = jnp.where(size < 2.0**-126, least, made)
    return made


def host_float8(array: np.ndarray[Any, Any], target: Any) -> np.ndarray[Any, Any]:
    """`to_float8` of a NumPy array."""
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.asarray(array.astype(np.float32))
        return np.asarray(_converted(np, wide, np.dtype(target), lambda made, kind: made.view(kind)))


def _converted(xp: Any, wide: Any, target: np.dtype[Any], as_bits: Any) -> Any:
    if target == ml_dtypes.float8_e4m3fn:
        most = np.float32(ml_dtypes.finfo(target).max)
        return xp.where(xp.abs(wide) > most, xp.copysign(most, wide), wide).astype(target)
    if target == ml_dtypes.float8_e5m2:
        bits = as_bits(wide.astype(target), np.uint8)
        sign = (as_bits(wide, np.uint32) >> np.uint32(24)).astype(np.uint8) & np.uint8(0x80)
        return as_bits(xp.where(xp.isnan(wide), sign | np.uint8(NAN_OF_E5M2), bits), target)
    if target == ml_dtypes.float8_e8m0fnu:
        # By the bits: arithmetic and comparisons may take a subnormal number for zero.
        magnitude = as_bits(wide, np.uint32) & np.uint32(0x7FFFFFFF)
        bits = as_bits(as_bits(magnitude, np.float32).astype(target), np.uint8)
        return as_bits(xp.where(magnitude == 0, np.uint8(0), bits), target)
    return wide.astype(target)
