"""Products, decompositions, Fourier transforms and distances, with NumPy's function where there is one."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import scipy.linalg

from ..dtypes import float32
from .cases import FLOATS, INTEGERS, Cases, case, drawn, fixed

__all__ = ["CASES"]

SINGLES = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
PRODUCTS = (*FLOATS, *INTEGERS, *COMPLEX)
# Solutions and factors carry the matrix' condition; these are well conditioned.
solved = functools.partial(case, dtypes=SINGLES, bound=512)
N = 37
LAPACK: Any = scipy.linalg.lapack  # not all of it is in SciPy's stubs
_RNG = np.random.default_rng(0)
SQUARE = fixed(_RNG.uniform(-1, 1, (3, N, N)) + N / 4 * np.eye(N))
ONE_SQUARE = fixed(SQUARE.values[0])
POSITIVE_DEFINITE = fixed(SQUARE.values @ SQUARE.values.swapaxes(-1, -2) / N)
SYMMETRIC = fixed(np.diag(np.arange(1.0, N + 1)) + 0.01 * (SQUARE.values[0] + SQUARE.values[0].T))
LOWER = fixed(np.tril(SQUARE.values))
TALL = fixed(_RNG.uniform(-1, 1, (61, N)))
EIGHTHS = np.arange(80 * 64).reshape(80, 64) % 17 / 8 - 1
REFLECTORS, TAU = LAPACK.dgeqrf(TALL.values)[:2]
LU, PIVOTS = scipy.linalg.lu_factor(SQUARE.values[0])


def itself(a: np.ndarray, *_: Any) -> np.ndarray:
    """What the product of the factors is."""
    return a


A, B = drawn(61, 129), drawn(129, 43)
BATCH, OTHER = drawn(3, 31, 67), drawn(3, 67, 29)
V, W = drawn(4_099), drawn(4_099)

CASES: Cases = {
    "matmul": [
        case(A, B, numpy=np.matmul, dtypes=PRODUCTS),
        case(BATCH, OTHER, numpy=np.matmul),
        case(drawn(517, 1031), drawn(1031, 263), numpy=np.matmul),
        case(drawn(33, 4_099), V, numpy=np.matmul),
    ],
    "mm": case(A, B, numpy=np.matmul, dtypes=PRODUCTS),
    "mv": case(A, drawn(129), numpy=np.matmul),
    "bmm": case(BATCH, OTHER, numpy=np.matmul),
    "dot": case(drawn(4_099, low=0.2), drawn(4_099, low=0.2), numpy=np.dot),
    "vdot": case(drawn(4_099, low=0.2), drawn(4_099, low=0.2), numpy=np.vdot, dtypes=(*FLOATS, *COMPLEX)),
    "inner": case(A, drawn(43, 129), numpy=np.inner),
    "outer": case(drawn(67), drawn(129), numpy=np.outer),
    "linear": case(A, drawn(43, 129), drawn(43), numpy=lambda x, w, b: x @ w.T + b),
    "bilinear": case(
        *(drawn(17, 29), drawn(17, 31), drawn(7, 29, 31), drawn(7)),
        numpy=lambda x, y, w, b: np.einsum("ni,kij,nj->nk", x, w, y) + b,
    ),
    "addmm": case(
        drawn(61, 43), A, B, beta=0.5, alpha=2, numpy=lambda x, a, b, beta, alpha: beta * x + alpha * (a @ b)
    ),
    "addmv": case(drawn(61), A, drawn(129), numpy=lambda x, a, b: x + a @ b),
    "baddbmm": case(drawn(3, 31, 29), BATCH, OTHER, numpy=lambda x, a, b: x + a @ b),
    "addbmm": case(drawn(31, 29), BATCH, OTHER, numpy=lambda x, a, b: x + (a @ b).sum(0)),
    "addr": case(drawn(67, 129), drawn(67), drawn(129), numpy=lambda x, a, b: x + np.outer(a, b)),
    "einsum": case([A, B], "ij,jk->ki", numpy=lambda ab, e: np.einsum(e, *ab)),
    "tensordot": case(
        drawn(7, 31, 13),
        drawn(13, 31, 9),
        (1, 2),
        (1, 0),
        numpy=lambda a, b, i, j: np.tensordot(a, b, (i, j)),
    ),
    "kron": case(drawn(7, 13), drawn(11, 5), numpy=np.kron),
    "grouped_mm": case(BATCH, OTHER, None, numpy=lambda a, b, _: a @ b, dtypes=("bfloat16", "float32")),
    "scaled_mm": case(
        fixed(EIGHTHS[:48].astype(ml_dtypes.float8_e4m3fn)),
        fixed(EIGHTHS[48:].T.astype(ml_dtypes.float8_e4m3fn)),
        [fixed(np.float32(0.5))],
        [fixed(np.float32(0.25))],
        *(None, [0], [0], float32),
        numpy=lambda a, b, scale_a, scale_b, *_: a @ b * scale_a[0] * scale_b[0],
        dtypes=("float32",),
    ),
    "linalg_vecdot": case(drawn(31, 129), drawn(31, 129), numpy=lambda a, b: (a * b).sum(-1)),
    "trace": case(drawn(129, 131), numpy=np.trace, dtypes=(*FLOATS, *INTEGERS)),
    # -- solutions and factors
    "linalg_det": solved(SQUARE, numpy=np.linalg.det),
    "linalg_slogdet": solved(SQUARE, numpy=np.linalg.slogdet),
    "linalg_inv_ex": solved(SQUARE, numpy=lambda a: (np.linalg.inv(a),)),
    "linalg_solve_ex": solved(SQUARE, drawn(3, N, 5), numpy=lambda a, b: (np.linalg.solve(a, b),)),
    "linalg_solve_triangular": solved(
        *(LOWER, drawn(3, N, 5)), upper=False, numpy=lambda a, b, upper: np.linalg.solve(np.tril(a), b)
    ),
    "linalg_cholesky_ex": solved(POSITIVE_DEFINITE, numpy=lambda a: (np.linalg.cholesky(a),)),
    "linalg_qr": solved(TALL, numpy=itself, read=np.matmul),
    "linalg_eigh": solved(SYMMETRIC, numpy=itself, read=lambda w, v: v * w @ v.T),
    "linalg_eig": solved(ONE_SQUARE, numpy=itself, read=lambda w, v: v * w @ np.linalg.inv(v)),
    "linalg_svd": solved(TALL, False, numpy=itself, read=lambda u, s, v: u * s @ v),
    "linalg_pinv": solved(TALL, None, 1e-6, False, numpy=lambda a, *_: np.linalg.pinv(a)),
    "matrix_exp": solved(fixed(SQUARE.values / N), numpy=lambda a: scipy.linalg.expm(a)),
    "linalg_ldl_factor_ex": solved(SYMMETRIC),
    "linalg_ldl_solve": solved(
        fixed(np.tril(SYMMETRIC.values, -1) / 40 + np.diag(np.arange(1.0, N + 1))),
        fixed(np.arange(1, N + 1, dtype=np.int32)),
        drawn(N, 5),
    ),
    "linalg_householder_product": solved(
        *(fixed(REFLECTORS), fixed(TAU)), numpy=lambda a, tau: LAPACK.dorgqr(a, tau)[0]
    ),
    "ormqr": solved(fixed(REFLECTORS), fixed(TAU), drawn(61, 5)),
    "geqrf": solved(TALL, numpy=lambda a: LAPACK.dgeqrf(a)[:2]),
    "linalg_lu": solved(ONE_SQUARE, numpy=lambda a: scipy.linalg.lu(a)),
    "linalg_lu_factor_ex": solved(
        ONE_SQUARE, numpy=lambda a: (scipy.linalg.lu_factor(a)[0], scipy.linalg.lu_factor(a)[1] + 1)
    ),
    "linalg_lu_solve": solved(
        *(fixed(LU), fixed((PIVOTS + 1).astype(np.int32)), drawn(N, 5)),
        numpy=lambda lu, pivots, b: scipy.linalg.lu_solve((lu, pivots - 1), b),
    ),
    "lu_unpack_factors": solved(fixed(LU), fixed((PIVOTS + 1).astype(np.int32)), True, True),
    # -- distances
    "dist": [case(V, W, p, numpy=lambda a, b, p: np.sum(np.abs(a - b) ** p) ** (1 / p)) for p in (1, 2, 3)],
    "renorm": case(drawn(29, 149), 2.0, 0, 1.0),
    "cosine_similarity": case(
        *(drawn(29, 149), drawn(29, 149)),
        numpy=lambda a, b: (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1)),
    ),
    "pairwise_distance": case(
        drawn(29, 149),
        drawn(29, 149),
        numpy=lambda a, b: np.sqrt(((a - b + 1e-6) ** 2).sum(-1)),
        dtypes=SINGLES,
    ),
    "cdist": case(
        *(drawn(31, 67), drawn(43, 67)),
        numpy=lambda a, b: np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1)),
        dtypes=SINGLES,
        bound=256,
    ),
    "pdist": case(drawn(31, 67), dtypes=SINGLES, bound=256),
    "cosine_embedding_loss": case(
        drawn(29, 149), drawn(29, 149), fixed(np.where(np.arange(29) % 2, 1.0, -1.0))
    ),
}

# -- Fourier transforms
SIGNAL = drawn(5, 331)
for _name in "fft ifft rfft ihfft".split():
    CASES[f"fft_{_name}"] = case(SIGNAL, numpy=getattr(np.fft, _name), dtypes=SINGLES)
for _name in "irfft hfft".split():
    CASES[f"fft_{_name}"] = case(SIGNAL, numpy=getattr(np.fft, _name), dtypes=COMPLEX)
for _name in "fftn ifftn rfftn".split():
    CASES[f"fft_{_name}"] = case(drawn(17, 67), numpy=getattr(np.fft, _name), dtypes=SINGLES)
CASES["fft_irfftn"] = case(drawn(17, 67), numpy=np.fft.irfftn, dtypes=COMPLEX)
CASES["fft_hfftn"] = case(drawn(17, 67), dtypes=COMPLEX)
CASES["fft_ihfftn"] = case(drawn(17, 67), dtypes=SINGLES)
CASES["stft_frames"] = case(
    drawn(2, 1031), drawn(64, low=0.1, high=1.0), 64, 16, 64, None, True, dtypes=SINGLES
)
CASES["istft_signal"] = case(
    drawn(2, 33, 61), drawn(64, low=0.1, high=1.0), 64, 16, 64, None, False, dtypes=COMPLEX
)
