"""Results that are unique up to a sign, a phase or the order of equal elements: compared by what they rebuild."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import xtensor

from .compare import Difference, same
from .convert import leaves, numpy_of

__all__ = ["REBUILT", "TIES"]

LOOSE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-9, "complex128": 1e-9}


def close(left: np.ndarray, right: np.ndarray, what: str, dtype: str) -> None:
    """Raise unless two arrays are near in the size of their largest element."""
    scale = max(1.0, float(np.abs(right).max(initial=0)))
    apart = float(np.abs(left - right).max(initial=0)) if left.shape == right.shape else np.inf
    if not apart <= LOOSE[dtype] * scale:
        raise Difference(f"{what}: apart by {apart:.3g}")


def factors(actual: Any, expected: Any) -> tuple[list[np.ndarray], list[np.ndarray], str]:
    """The arrays of both results, after their shapes and dtypes were found equal."""
    left, right = leaves(actual, xtensor.Tensor), leaves(expected, torch.Tensor)
    kinds = [[(str(t.dtype).rpartition(".")[2], tuple(t.shape)) for t in side] for side in (left, right)]
    if kinds[0] != kinds[1]:
        raise Difference(f"{kinds[0]}, expected {kinds[1]}")
    return [numpy_of(t) for t in left], [numpy_of(t) for t in right], kinds[1][0][0]


def mh(array: np.ndarray) -> np.ndarray:
    return np.swapaxes(array, -1, -2).conj()


def orthonormal(array: np.ndarray, dtype: str) -> None:
    """Raise unless the columns are orthonormal."""
    close(
        mh(array) @ array,
        np.broadcast_to(np.eye(array.shape[-1]), (*array.shape[:-2], *[array.shape[-1]] * 2)),
        "orthonormal columns",
        dtype,
    )


def svd(last_transposed: bool) -> Callable[..., None]:
    """U S V: singular values, orthonormal factors, and the product."""

    def check(actual: Any, expected: Any, sample: Any) -> None:
        (u, s, v), (u2, s2, v2), dtype = factors(actual, expected)
        close(s, s2, "singular values", dtype)
        if u.size == 0 or v.size == 0 or not (u2.any() and v2.any()):
            return same(actual, expected)
        k = s.shape[-1]

        def product(u: np.ndarray, s: np.ndarray, v: np.ndarray) -> np.ndarray:
            vh = v if last_transposed else mh(v)
            return (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]

        orthonormal(u, dtype)
        orthonormal(mh(v) if last_transposed else v, dtype)
        close(product(u, s, v), product(u2, s2, v2), "U S Vh", dtype)

    return check


def eig(actual: Any, expected: Any, sample: Any) -> None:
    """Eigenvalues as a set, and A V = V L."""
    (values, vectors), (values2, _), dtype = factors(actual, expected)
    eigvals_close(values, values2, dtype)
    matrix = numpy_of(sample.input)
    close(matrix @ vectors, vectors * values[..., None, :], "A V = V L", dtype)
    if vectors.size:
        close(np.linalg.norm(vectors, axis=-2), np.ones_like(values, float), "norms of eigenvectors", dtype)


def eigvals_close(left: np.ndarray, right: np.ndarray, dtype: str) -> None:
    """Raise unless every eigenvalue of one side is one of the other's."""
    apart = np.abs(left[..., :, None] - right[..., None, :])
    if apart.size:
        scale = max(1.0, float(np.abs(right).max()))
        if max(apart.min(-1).max(), apart.min(-2).max()) > LOOSE[dtype] * scale:
            raise Difference("eigenvalues")


def eigvals(actual: Any, expected: Any, sample: Any) -> None:
    (values,), (values2,), dtype = factors(actual, expected)
    eigvals_close(values, values2, dtype)


def eigh(actual: Any, expected: Any, sample: Any) -> None:
    """Eigenvalues, orthonormal vectors, and V L Vh."""
    (values, vectors), (values2, vectors2), dtype = factors(actual, expected)
    close(values, values2, "eigenvalues", dtype)
    orthonormal(vectors, dtype)
    close(
        (vectors * values[..., None, :]) @ mh(vectors),
        (vectors2 * values2[..., None, :]) @ mh(vectors2),
        "V L Vh",
        dtype,
    )


def qr(actual: Any, expected: Any, sample: Any) -> None:
    """Orthonormal Q and the product."""
    (q, r), (q2, r2), dtype = factors(actual, expected)
    orthonormal(q, dtype)
    close(q @ r, q2 @ r2, "Q R", dtype)
    close(np.tril(r, -1), np.zeros_like(r), "R below its diagonal", dtype)


def low_rank(actual: Any, expected: Any, sample: Any) -> None:
    """Drawn projections: orthonormal factors and the same product."""
    (u, s, v), (u2, s2, v2), dtype = factors(actual, expected)
    close(s, s2, "singular values", dtype)
    close((u * s[..., None, :]) @ mh(v), (u2 * s2[..., None, :]) @ mh(v2), "U S Vh", dtype)


def ordered(position: int, values: bool) -> Callable[..., None]:
    """Indices of elements put in order, which may name equal elements in any order unless that is asked to be stable.

    position: of `dim` among the arguments after the input. values: whether the result has them beside the indices.
    """

    def check(actual: Any, expected: Any, sample: Any) -> None:
        if sample.kwargs.get("stable"):
            return same(actual, expected)
        if values:
            same(actual[0], expected[0])
            actual, expected = actual[1], expected[1]
        (index,), (index2,), _ = factors(actual, expected)
        source = numpy_of(sample.input)
        if source.ndim == 0:
            return same(actual, expected)
        dim = sample.args[position] if len(sample.args) > position else sample.kwargs.get("dim", -1)
        left, right = (np.take_along_axis(source, at, dim) for at in (index, index2))
        if not np.array_equal(left, right, equal_nan=source.dtype.kind in "fc"):
            raise Difference("the elements that the indices name")
        if any(
            len(np.unique(line)) < len(line)
            for line in np.moveaxis(index, dim, -1).reshape(-1, index.shape[dim])
        ):
            raise Difference("an index stands twice")

    return check


def chosen(position: int) -> Callable[..., None]:
    """A value along a dimension and an index at which it stands: any of those of equal elements."""

    def check(actual: Any, expected: Any, sample: Any) -> None:
        if isinstance(expected, torch.Tensor) or sample.input.dim() == 0:
            return same(actual, expected)
        same(actual[0], expected[0])
        (value, index), _, _ = factors(actual, expected)
        arguments = [*sample.args, *[None] * 3]
        dim = sample.kwargs.get("dim", -1 if arguments[position] is None else arguments[position])
        if index.ndim < sample.input.dim():
            value, index = np.expand_dims(value, dim), np.expand_dims(index, dim)
        found = np.take_along_axis(numpy_of(sample.input), index, dim)
        if not np.array_equal(found, value, equal_nan=value.dtype.kind in "fc"):
            raise Difference("the elements that the indices name")

    return check


# Their gradients go to whichever of equal elements the indices name.
TIES = {
    "sort": ordered(0, True),
    "argsort": ordered(0, False),
    "msort": lambda actual, expected, sample: same(actual, expected),
    "topk": ordered(1, True),
    "kthvalue": chosen(1),
    "median": chosen(0),
    "nanmedian": chosen(0),
    "mode": chosen(0),
}

REBUILT: dict[str, Callable[[Any, Any, Any], None]] = {
    "svd": svd(False),
    "linalg.svd": svd(True),
    "svd_lowrank": low_rank,
    "pca_lowrank": low_rank,
    "linalg.eig": eig,
    "linalg.eigvals": eigvals,
    "linalg.eigh": eigh,
    "qr": qr,
    "linalg.qr": qr,
    **TIES,
}
