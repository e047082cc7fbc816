"""Reductions and scans: over each dimension and over all, and NumPy's function of the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from .cases import FLOATS, INTEGERS, Cases, case, drawn, fixed

__all__ = ["CASES"]

SHAPE = (29, 149)
ANY = FLOATS + INTEGERS
POSITIVE = drawn(*SHAPE, low=0.25)
NEAR_ONE = drawn(*SHAPE, low=0.99, high=1.01)
ORDERED = fixed(
    np.random.default_rng(0).permutation(np.prod(SHAPE)).reshape(SHAPE) / 256
)  # no two are the same
REPEATED = fixed((np.arange(np.prod(SHAPE)).reshape(SHAPE) * 7919 % 31 % 7).astype(float))
CASES: Cases = {}


def over(
    name: str,
    numpy: Callable[..., Any],
    x: Any = POSITIVE,
    dims: tuple[Any, ...] = (0, 1),
    whole: bool = True,
    dtypes: tuple[str, ...] = ANY,
    **kwargs: Any,
) -> None:
    """Cases along each dimension, and over all of them."""
    found = [case(x, dim, numpy=lambda a, axis, **k: numpy(a, axis), dtypes=dtypes, **kwargs) for dim in dims]
    if whole:
        found.append(case(x, numpy=lambda a, **k: numpy(a, None), dtypes=dtypes, **kwargs))
    CASES[name] = found


def both(first: Callable[..., Any], second: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, axis: (first(a, axis), second(a, axis))


def running(function: Any) -> Callable[..., Any]:
    """Running extrema with the index of the last that is as large."""

    def scan(a: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
        values = function.accumulate(a, axis=axis)
        places = np.expand_dims(np.arange(a.shape[axis]), 1 - axis)
        return values, np.maximum.accumulate(np.where(a == values, places, 0), axis=axis)

    return scan


def middle(a: np.ndarray, axis: int | None) -> Any:
    """The lower of two medians."""
    a, dim = (a.reshape(-1), 0) if axis is None else (a, axis)
    at = (a.shape[dim] - 1) // 2
    found = np.take(np.sort(a, dim), at, dim)
    return found if axis is None else (found, np.take(np.argsort(a, dim), at, dim))


def most_frequent(a: np.ndarray, axis: int) -> np.ndarray:
    def one(row: np.ndarray) -> Any:
        values, counts = np.unique(row, return_counts=True)
        return values[counts.argmax()]

    return np.apply_along_axis(one, axis, a)


def ranked(count: int, *, one: bool = False) -> Callable[..., Any]:
    """The largest elements in falling order, or the smallest but some, each with its index."""

    def chosen(a: np.ndarray, k: int, axis: int) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(a, axis)
        places = np.take(order, k - 1, axis) if one else np.take(np.flip(order, axis), range(k), axis)
        full = np.expand_dims(places, axis) if one else places
        values = np.take_along_axis(a, full, axis)
        return (np.squeeze(values, axis) if one else values), places

    return chosen


over("sum", lambda a, axis: np.sum(a, axis))
over("nansum", lambda a, axis: np.nansum(a, axis))
over("mean", lambda a, axis: np.mean(a, axis), dtypes=FLOATS)
over("nanmean", lambda a, axis: np.nanmean(a, axis), dtypes=FLOATS)
over("prod", lambda a, axis: np.prod(a, axis), NEAR_ONE, bound=256, dtypes=FLOATS)
over("var_dims", lambda a, axis: np.var(a, axis, ddof=1), dtypes=FLOATS)
over("std_dims", lambda a, axis: np.std(a, axis, ddof=1), dtypes=FLOATS)
over("var_mean_dims", both(lambda a, axis: np.var(a, axis, ddof=1), np.mean), dtypes=FLOATS)
over("std_mean_dims", both(lambda a, axis: np.std(a, axis, ddof=1), np.mean), dtypes=FLOATS)
over("any", lambda a, axis: np.any(a, axis), REPEATED)
over("all", lambda a, axis: np.all(a, axis), REPEATED)
over("count_nonzero", lambda a, axis: np.count_nonzero(a, axis), REPEATED)
over("logsumexp", lambda a, axis: special.logsumexp(a, axis), drawn(*SHAPE), whole=False)
over("cumsum", np.cumsum, whole=False)
over("cumprod", np.cumprod, NEAR_ONE, whole=False, bound=256, dtypes=FLOATS)
over("logcumsumexp", np.logaddexp.accumulate, drawn(*SHAPE), whole=False, dtypes=FLOATS)
over("cummax", running(np.maximum), REPEATED, whole=False)
over("cummin", running(np.minimum), REPEATED, whole=False)
over("linalg_vector_norm", lambda a, axis: np.sqrt(np.sum(a * a, axis)), whole=False, dtypes=FLOATS)
CASES["linalg_vector_norm"] = [
    case(POSITIVE, p, dim, numpy=lambda a, p, axis: np.sum(a**p, axis) ** (1 / p))
    for p in (1, 2, 3)
    for dim in (0, 1)
]
CASES["linalg_cross"] = [
    case(drawn(1367, 3), drawn(1367, 3), numpy=np.cross),
    case(drawn(3, 1367), drawn(3, 1367), dim=0, numpy=lambda a, b, dim: np.cross(a, b, axis=dim)),
]
over("amax", lambda a, axis: np.max(a, axis), ORDERED)
over("amin", lambda a, axis: np.min(a, axis), ORDERED)
CASES["aminmax"] = [
    case(ORDERED, dim=dim, numpy=lambda a, dim: (np.min(a, dim), np.max(a, dim)), dtypes=ANY)
    for dim in (0, 1, None)
]
over("argmax", np.argmax, REPEATED)
over("argmin", np.argmin, REPEATED)
CASES["max_all"] = case(ORDERED, numpy=np.max, dtypes=ANY)
CASES["min_all"] = case(ORDERED, numpy=np.min, dtypes=ANY)
over("max_dim", both(np.max, np.argmax), REPEATED, whole=False)
over("min_dim", both(np.min, np.argmin), REPEATED, whole=False)
over("sort", lambda a, axis: (np.sort(a, axis), np.argsort(a, axis, kind="stable")), REPEATED, whole=False)
SINGLES = ("float32", "float64")
CASES["topk"] = [case(ORDERED, 5, dim, numpy=ranked(5), dtypes=SINGLES) for dim in (0, 1)]
CASES["kthvalue"] = [case(ORDERED, 5, dim, numpy=ranked(5, one=True), dtypes=SINGLES) for dim in (0, 1)]
for _name in ("median_all", "nanmedian_all"):
    CASES[_name] = case(ORDERED, numpy=lambda a: middle(a, None), dtypes=SINGLES)
for _name in ("median_dim", "nanmedian_dim"):
    over(_name, middle, ORDERED, whole=False, dtypes=SINGLES)
# Of equal elements any index is right.
over("mode", lambda a, axis: (most_frequent(a, axis),), REPEATED, whole=False)
CASES["hash_tensor"] = case(
    drawn(*SHAPE, dtype="int64"), dtypes=("int64",), numpy=lambda a: np.bitwise_xor.reduce(a, None)
)
