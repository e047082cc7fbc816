"""Rows of `xtensor/ops/linalg/linear_algebra.py`, on matrices that are far from singular."""

import numpy as np

from . import Row, Sample, T

PLAIN = dict(others=("complex64",))
A = T(values=[[3.0, 1.0, 0.5], [-1.0, 4.0, 1.0], [0.5, -0.5, 2.0]])
BATCH = T(values=[[[3.0, 1.0], [-1.0, 4.0]], [[2.0, 0.5], [1.0, -3.0]]])
LOWER = T(values=[[2.0, 0.0], [0.5, 1.5]])
SQUARES = [Sample(A), Sample(BATCH), Sample(T(0, 0)), Sample(T(2, 3)), Sample(T(3))]


def from_lower(factor, upper=False):
    return factor.T @ factor if upper else factor @ factor.T


ROWS = [
    Row(
        "cholesky_inverse",
        [Sample(LOWER), Sample(LOWER.but(values=[[2.0, 0.5], [0.0, 1.5]]), True)],
        numpy=lambda a, upper=False: np.linalg.inv(from_lower(a, upper)),
        others=(),
        differences=True,  # PyTorch gives the unread triangle a gradient
        strides=False,
    ),
    Row(
        "cholesky_solve",
        [Sample(T(2, 3), LOWER), Sample(T(2, 1), LOWER.but(values=[[2.0, 0.5], [0.0, 1.5]]), True)],
        numpy=lambda b, a, upper=False: np.linalg.solve(from_lower(a, upper), b),
        others=(),
        differences=True,  # PyTorch gives the unread triangle a gradient
        strides=False,
    ),
    Row("inverse", SQUARES, numpy=np.linalg.inv, strides=False, covers=("linalg_inv_ex",), **PLAIN),
    Row("det", SQUARES, numpy=np.linalg.det, **PLAIN),
    Row("slogdet", SQUARES, numpy=np.linalg.slogdet, **PLAIN),
    Row("linalg_det", SQUARES, reference="linalg.det", numpy=np.linalg.det, **PLAIN),
    Row("linalg_slogdet", SQUARES, reference="linalg.slogdet", numpy=np.linalg.slogdet, **PLAIN),
    Row(
        "linalg_solve_ex",
        [
            Sample(A, T(3, 2)),
            Sample(A, T(3)),
            Sample(BATCH, T(2, 2, 1)),
            Sample(A, T(2, 3), left=False),
            Sample(A, T(2, 2)),
        ],
        reference="linalg.solve_ex",
        strides=False,
        **PLAIN,
    ),
    Row(
        "linalg_solve_triangular",
        [Sample(LOWER, T(2, 3), upper=False), Sample(LOWER, T(3, 2), upper=False, left=False)],
        reference="linalg.solve_triangular",
        others=(),
        strides=False,
    ),
    Row(
        "linalg_vecdot", [Sample(T(2, 3), T(2, 3)), Sample(T(2, 3), T(3))], reference="linalg.vecdot", **PLAIN
    ),
    Row(
        "logdet",
        [Sample(A), Sample(T(0, 0)), Sample(T(2, 3))],
        numpy=lambda a: np.log(np.linalg.det(a)),
        others=(),
    ),
    Row("matrix_exp", SQUARES[:3], strides=False, **PLAIN),
    Row(
        "matrix_power",
        [Sample(A, 3), Sample(A.but(grad=False), 0), Sample(A, -2), Sample(A, 1), Sample(T(2, 3), 2)],
        numpy=np.linalg.matrix_power,
        strides=False,
        **PLAIN,
    ),
]
