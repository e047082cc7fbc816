"""Primitives that take matrices apart."""

from __future__ import annotations

from typing import Any

from .... import linalg
from ....dtypes import int64
from ....tensor import Tensor
from .table import asked, op, rule

__all__: list[str] = []


@rule("cholesky")
def cholesky(equation: Any, x: Tensor) -> Tensor:
    return op("linalg_cholesky_ex", x)[0]


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
    pivots = op("sub", pivots, 1)
    return [found, pivots, order_of_rows(pivots, x.shape[-2])]


def order_of_rows(pivots: Tensor, size: int) -> Tensor:
    """Which row of a matrix is in each place, after the exchanges that its factors tell of."""
    pivots = pivots.to(int64)
    order = op("expand", op("arange", size), [*pivots.shape[:-1], size])
    for at in range(pivots.shape[-1]):
        place = op("slice", pivots, -1, at, at + 1)
        one, other = op("slice", order, -1, at, at + 1), op("gather", order, -1, place)
        order = asked(
            "slice_scatter", "default", op("scatter", order, -1, place, one), other, -1, at, at + 1, 1
        )
    return order


@rule("lu_pivots_to_permutation")
def permutation(equation: Any, pivots: Tensor) -> Tensor:
    return order_of_rows(pivots, equation.params["permutation_size"])


@rule("qr")
def qr(equation: Any, x: Tensor) -> Any:
    return list(linalg.qr(x, "complete" if equation.params["full_matrices"] else "reduced"))


@rule("eigh")
def eigh(equation: Any, x: Tensor) -> Any:
    values, vectors = op("linalg_eigh", x, "L" if equation.params["lower"] else "U")
    return [vectors, values]


@rule("svd")
def svd(equation: Any, x: Tensor) -> Any:
    if not equation.params["compute_uv"]:
        return [linalg.svdvals(x)]
    u, s, vh = linalg.svd(x, full_matrices=equation.params["full_matrices"])
    return [s, u, vh]
