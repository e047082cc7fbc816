"""What counts as rounding between two processes that made the same call.

A difference is measured in roundings: of the element itself where it is larger than the `SMALL` part of the largest in the
result, of that part otherwise (a sum of terms that cancel is as exact as its terms). Integers, texts, shapes, NaN and
infinities are equal or wrong.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ALLOWED", "Case", "compare"]

EPS = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
EPS |= {"complex64": EPS["float32"], "complex128": EPS["float64"]}

ALLOWED: dict[str, float] = {"pointwise": 8, "view": 0, "reduction": 64, "general": 64, "composite": 64}
"""Roundings by the kind of operator: what moves elements may not round, what adds up thousands may add in another order."""
SMALL: dict[str, float] = {
    "pointwise": 2.0**-10,
    "view": 0,
    "reduction": 2.0**-4,
    "general": 1,
    "composite": 1,
}


class Case(NamedTuple):
    """The largest difference of a call in units of what is allowed, and where it is."""

    error: float
    what: str = ""


def compare(actual: list[Any], expected: list[Any], kind: str) -> Case:
    """The worst of a call's results: pairs of a dtype's name and an array, or texts."""
    if len(actual) != len(expected):
        return Case(math.inf, f"{len(actual)} results instead of {len(expected)}")
    worst = Case(0.0)
    for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
        if type(a) is tuple and type(b) is tuple:
            case = arrays(a[1], b[1], b[0], kind)
        else:
            case = Case(0.0) if repr(a) == repr(b) else Case(math.inf, f"{a} instead of {b}")
        if case.error > worst.error:
            worst = Case(case.error, f"result {i}: {case.what}")
    return worst


def arrays(a: np.ndarray, b: np.ndarray, dtype: str, kind: str) -> Case:
    """Two results of the same call."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return Case(math.inf, f"{a.dtype}{a.shape} instead of {b.dtype}{b.shape}")
    # The sign of a zero is a part of its value, that of a NaN is not.
    if np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
        return Case(0.0)
    if dtype not in EPS:
        return Case(math.inf, f"{int((a != b).sum())} of {a.size} elements differ, which are no floats")
    if a.dtype.kind == "c":
        return max(arrays(a.real, b.real, dtype, kind), arrays(a.imag, b.imag, dtype, kind))
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return Case(math.inf, "NaN or infinity in one of them only")
    a, b = a.astype(np.float64), b.astype(np.float64)
    sizes = np.abs(np.where(finite, b, 0))
    unit = EPS[dtype] * np.maximum(sizes, max(SMALL[kind] * sizes.max(), np.finfo(np.float32).tiny))
    roundings = np.where(finite, np.abs(np.where(finite, a - b, 0)), 0) / unit
    place = np.unravel_index(int(roundings.argmax()), roundings.shape)
    most = float(roundings[place])
    allowed = ALLOWED[kind]
    error = most / allowed if allowed else math.inf
    return Case(
        error, f"{most:.3g} roundings at {[int(i) for i in place]}: {a[place]!r} instead of {b[place]!r}"
    )
