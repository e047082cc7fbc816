"""Linear algebra: `xtensor.linalg`, the names of `torch.linalg`."""

# ruff: noqa: F401  # a public face: everything is imported to be found here

from .operators.functions.deferred import settle
from .ops.linalg.decompositions import (
    LinAlgError,
    cholesky,
    cholesky_ex,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from .ops.linalg.ldl_factors import ldl_factor, ldl_factor_ex, ldl_solve
from .ops.linalg.least_squares import lstsq, matrix_rank, pinv
from .ops.linalg.linear_algebra import (
    inv,
    inv_ex,
    matrix_exp,
    matrix_power,
    multi_dot,
    solve,
    solve_ex,
    solve_triangular,
    vecdot,
)
from .ops.linalg.linear_algebra import linalg_det as det
from .ops.linalg.linear_algebra import linalg_slogdet as slogdet
from .ops.linalg.lu_factors import linalg_lu as lu
from .ops.linalg.lu_factors import linalg_lu_solve as lu_solve
from .ops.linalg.lu_factors import lu_factor, lu_factor_ex
from .ops.linalg.matmul import matmul
from .ops.linalg.matrix_norms import cond, matrix_norm
from .ops.linalg.matrix_norms import linalg_norm as norm
from .ops.linalg.reflectors import householder_product
from .ops.linalg.tensor_systems import diagonal, tensorinv, tensorsolve, vander
from .ops.reduce.cumulative import cross_along as cross
from .ops.reduce.norms import vector_norm

settle(__name__, globals())
