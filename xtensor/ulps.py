"""Errors in units in the last place: how far a result is from what it should be, in steps of its own dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["is_floating", "largest_ulps", "spacing", "ulps"]


def spacing(expected: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The distance between neighbours of `dtype` at these values.

    Below the smallest normal number it is that number itself, since devices may take what is smaller for 0.
    """
    info = ml_dtypes.finfo(dtype)
    smallest, eps = float(info.smallest_normal), float(info.eps)
    size = np.minimum(np.abs(expected), float(info.max))
    _, exponent = np.frexp(np.where(np.isfinite(size), size, 1.0))
    step = np.ldexp(np.asarray(eps, expected.dtype), exponent - 1)
    return np.where(size < smallest, np.asarray(smallest, expected.dtype), step)


def ulps(actual: Any, expected: Any, norm: bool = False) -> np.ndarray:
    """The error of every element of `actual`, in units in the last place of its dtype at the expected value.

    actual: an array of the dtype that is judged. expected: the right values, in float64, longdouble or complex128.
    norm: measure at the largest expected value instead, as is usual where sums may cancel.
    Of what is no floating-point number the error is 0 where equal and inf where not; so it is of NaN and of infinities.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        raise ValueError(f"a result of shape {actual.shape}, expected {expected.shape}")
    if actual.dtype.kind == "c" or (expected.dtype.kind == "c" and is_floating(actual.dtype)):
        errors = [
            # The parts of a complex number share its size: one of them may cancel.
            _real(part(actual), part(expected), size_of(expected, norm))
            for part in (np.real, np.imag)
        ]
        return np.maximum(*errors)
    if not is_floating(actual.dtype):
        return np.where(actual == expected, 0.0, np.inf)
    return _real(actual, expected, size_of(expected, True) if norm else None)


def is_floating(dtype: np.dtype) -> bool:
    """Whether a NumPy dtype is a real floating-point one, those of `ml_dtypes` included."""
    return dtype.kind == "f" or (dtype.kind == "V" and dtype.names is None) or "float" in dtype.name


def size_of(expected: np.ndarray, largest: bool) -> np.ndarray:
    """The absolute values, or the largest finite one of them for all."""
    size = np.abs(expected)
    if not largest or size.size == 0:
        return size
    finite = size[np.isfinite(size)]
    return np.broadcast_to(finite.max() if finite.size else size.dtype.type(1), size.shape)


def _real(actual: np.ndarray, expected: np.ndarray, size: np.ndarray | None) -> np.ndarray:
    wide = expected if expected.dtype.kind == "f" and expected.dtype.itemsize >= 8 else expected.astype(float)
    got = actual.astype(wide.dtype)
    most = float(ml_dtypes.finfo(actual.dtype).max)
    with np.errstate(all="ignore"):
        # What lies beyond the dtype's range is rightly infinite, and nearly right as its largest number.
        beyond = np.isfinite(wide) & (np.abs(wide) > most)
        rounded = beyond & (np.isinf(got) & (np.sign(got) == np.sign(wide)))
        target = np.where(beyond, np.copysign(np.asarray(most, wide.dtype), wide), wide)
        error = np.abs(got - target) / spacing(
            target if size is None else size.astype(wide.dtype), actual.dtype
        )
    same = (got == wide) | (np.isnan(got) & np.isnan(wide)) | rounded
    error = np.where(same, 0.0, error)
    # inf where inf was not expected, or NaN.
    return np.where(np.isnan(error), np.inf, error).astype(float)


def largest_ulps(actual: Any, expected: Any, norm: bool = False) -> float:
    """The largest error, see `ulps`; 0 of an empty array."""
    found = ulps(actual, expected, norm)
    return float(found.max()) if found.size else 0.0
