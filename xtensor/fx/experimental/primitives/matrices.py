"""Primitives that take matrices apart."""

from __future__ import annotations

from typing import Any

from ....tensor import Tensor
from .table import op, rule

__all__: list[str] = []


@rule("cholesky")
def cholesky(equation: Any, x: Tensor) -> Tensor:
    return op("linalg_cholesky", x)


@rule("triangular_solve")
def triangular_solve(equation: Any, a: Tensor, b: Tensor) -> Tensor:
    params = equation.params
    upper = not params["lower"]
    if params["transpose_a"]:
        a, upper = op("transpose", op("conj_physical", a) if params["conjugate_a"] else a, -2, -1), not upper
    return op("linalg_solve_triangular", a, b, upper=upper, left=params["left_side"], unitriangular=params["unit_diagonal"])  # fmt: skip


@rule("lu")
def lu(equation: Any, x: Tensor) -> Any:
    found, pivots = op("linalg_lu_factor_ex", x)[:2]
    return [found, op("sub", pivots, 1), order_of_rows(found, pivots)]


def order_of_rows(factors: Tensor, pivots: Tensor) -> Tensor:
    """Which row of a matrix is in each place, after the exchanges that its factors tell of."""
    return op("argmax", op("lu_unpack", factors, pivots, False, True)[0], -2)


@rule("lu_pivots_to_permutation")
def permutation(equation: Any, pivots: Tensor) -> Tensor:
    size = equation.params["permutation_size"]
    factors = op("full", [*pivots.shape[:-1], size, pivots.shape[-1]], 0.0)
    return order_of_rows(factors, op("add", pivots, 1))


@rule("qr")
def qr(equation: Any, x: Tensor) -> Any:
    return list(op("linalg_qr", x, "complete" if equation.params["full_matrices"] else "reduced"))


@rule("eigh")
def eigh(equation: Any, x: Tensor) -> Any:
    values, vectors = op("linalg_eigh", x, "L" if equation.params["lower"] else "U")
    return [vectors, values]


@rule("svd")
def svd(equation: Any, x: Tensor) -> Any:
    if not equation.params["compute_uv"]:
        return [op("linalg_svdvals", x)]
    u, s, vh = op("linalg_svd", x, full_matrices=equation.params["full_matrices"])
    return [s, u, vh]
