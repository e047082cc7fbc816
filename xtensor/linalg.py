"""Linear algebra: `xtensor.linalg`, the names of `torch.linalg`."""

from __future__ import annotations

from .ops.cumulative import cross_along as cross
from .ops.decompositions import (
    LinAlgError,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lu,
    lu_factor,
    qr,
    svd,
    svdvals,
)
from .ops.linear_algebra import (
    cond,
    det,
    inv,
    lstsq,
    matrix_exp,
    matrix_norm,
    matrix_power,
    matrix_rank,
    multi_dot,
    pinv,
    slogdet,
    solve,
    solve_triangular,
    vecdot,
)
from .ops.linear_algebra import linalg_norm as norm
from .ops.matmul import matmul
from .ops.norms import vector_norm

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "lu",
    "lu_factor",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "vecdot",
    "vector_norm",
]
