"""Whether two results agree: structure, dtypes, shapes, values within rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import xtensor

from .convert import described, leaves, numpy_of

__all__ = ["Difference", "drawn_alike", "same"]

# What PyTorch's own tests allow: relative and absolute.
TOLERANCE = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
}
EPS = {
    "float16": 9.8e-4,
    "bfloat16": 7.9e-3,
    "float32": 1.2e-7,
    "complex64": 1.2e-7,
    "float64": 2.3e-16,
    "complex128": 2.3e-16,
}


class Difference(AssertionError):
    """Two results that do not agree."""


Reference = Callable[[], Any]


def same(actual: Any, expected: Any, reference: Reference | None = None, where: str = "result") -> None:
    """Raise `Difference` unless our result is PyTorch's; `reference` computes PyTorch's in double precision."""
    structure(actual, expected, where)
    pairs = list(zip(leaves(actual, xtensor.Tensor), leaves(expected, torch.Tensor), strict=True))
    for index, (a, b) in enumerate(pairs):
        place = where if len(pairs) == 1 else f"{where}[{index}]"
        if described(a) != described(b):
            raise Difference(f"{place}: {described(a)}, expected {described(b)}")
    precise: list[Any] | None = None
    for index, (a, b) in enumerate(pairs):
        place = where if len(pairs) == 1 else f"{where}[{index}]"
        left, right = numpy_of(a), numpy_of(b)
        wrong = unequal(left, right, str(b.dtype).rpartition(".")[2])
        if not wrong.any():
            continue
        if reference is not None and right.dtype.kind in "fc":
            if precise is None:
                precise = double(reference)
            if index < len(precise) and precise[index].shape == right.shape:
                if near(left, right, precise[index], str(b.dtype).rpartition(".")[2]):
                    continue
        raise Difference(f"{place}: {shown(left, right, wrong)}")


def double(reference: Reference) -> list[np.ndarray]:
    """The tensors of the result in double precision; none where PyTorch cannot."""
    try:
        return [numpy_of(leaf) for leaf in leaves(reference(), torch.Tensor)]
    except Exception:
        return []


def structure(actual: Any, expected: Any, where: str) -> None:
    """Raise unless the nesting, the field names and the plain values are the same."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(actual, xtensor.Tensor):
            raise Difference(f"{where}: {type(actual).__name__}, expected a Tensor")
        return
    if isinstance(expected, list | tuple):
        if not isinstance(actual, list | tuple) or isinstance(actual, list) != isinstance(expected, list):
            raise Difference(f"{where}: {type(actual).__name__}, expected {type(expected).__name__}")
        if len(actual) != len(expected):
            raise Difference(f"{where}: {len(actual)} items, expected {len(expected)}")
        fields = getattr(type(expected), "_fields", None)
        if fields is None and type(expected).__module__ == "torch.return_types":
            fields = type(expected).__match_args__
        for name in fields or ():
            if not hasattr(actual, name):
                raise Difference(f"{where}: no field {name!r}")
        for index, (a, b) in enumerate(zip(actual, expected, strict=True)):
            structure(a, b, f"{where}[{index}]")
        return
    if isinstance(expected, float | complex) and isinstance(actual, float | complex):
        if type(actual) is not type(expected) or not np.isclose(
            actual, expected, rtol=1e-5, atol=1e-8, equal_nan=True
        ):
            raise Difference(f"{where}: {actual!r}, expected {expected!r}")
        return
    if isinstance(expected, torch.dtype | torch.device | torch.layout):
        if str(actual).replace("xtensor", "torch") != str(expected):
            raise Difference(f"{where}: {actual}, expected {expected}")
        return
    if type(actual) is not type(expected) or actual != expected:
        raise Difference(f"{where}: {actual!r}, expected {expected!r}")


def unequal(left: np.ndarray, right: np.ndarray, dtype: str) -> np.ndarray:
    """Where two arrays differ by more than the dtype's tolerance."""
    if right.dtype.kind not in "fc":
        return np.asarray(left != right)
    rtol, atol = TOLERANCE[dtype]
    with np.errstate(all="ignore"):
        return np.asarray(~np.isclose(left, right, rtol=rtol, atol=atol, equal_nan=True))


def near(left: np.ndarray, right: np.ndarray, exact: np.ndarray, dtype: str) -> bool:
    """Whether ours is about as near to the exact values as PyTorch's, and non-finite where PyTorch's is."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(right) & np.isfinite(exact)
        odd = ~finite & ~np.isclose(left, right, equal_nan=True) & ~np.isclose(left, exact, equal_nan=True)
        if odd.any() or not np.isfinite(left[finite]).all():
            return False
        if not finite.any():
            return True
        theirs = np.abs(right[finite] - exact[finite])
        mine = np.abs(left[finite] - exact[finite])
        scale = np.abs(exact[finite]).max()
        return bool(mine.max() <= max(4 * theirs.max(), 8 * EPS[dtype] * scale))


def shown(left: np.ndarray, right: np.ndarray, wrong: np.ndarray) -> str:
    """The first differing element, and how many there are."""
    first = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    at = f" at {list(first)}" if first else ""
    return (
        f"{left[first]!r}, expected {right[first]!r}{at} ({int(wrong.sum())} of {wrong.size} differ)".replace(
            "np.", ""
        )
    )


def drawn_alike(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    """Raise unless two sets of drawn numbers may come from one distribution (Kolmogorov and Smirnov, two samples)."""
    left = np.sort(np.concatenate([np.asarray(a, np.float64).ravel() for a in map(real, ours)]))
    right = np.sort(np.concatenate([np.asarray(a, np.float64).ravel() for a in map(real, theirs)]))
    if left.size < 40:
        return
    both = np.concatenate([left, right])
    apart = np.abs(
        np.searchsorted(left, both, side="right") / left.size
        - np.searchsorted(right, both, side="right") / right.size
    ).max()
    # The distance passed once in 10^5 by two samples of one distribution.
    limit = np.sqrt(-np.log(0.5e-5) / 2 * (left.size + right.size) / (left.size * right.size))
    if apart > limit:
        raise Difference(
            f"drawn from another distribution: distance {apart:.3f} over {limit:.3f}, means "
            f"{left.mean():.4g} and {right.mean():.4g}"
        )


def real(array: np.ndarray) -> np.ndarray:
    return np.stack([array.real, array.imag]) if array.dtype.kind == "c" else array
