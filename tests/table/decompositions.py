"""Rows of `xtensor/ops/linalg/decompositions.py`, on matrices whose eigenvalues and singular values lie apart."""

import numpy as np

from . import Row, Sample, T

# Compared in value: the phases of vectors are LAPACK's in both. Their gradients are tested in tests of linalg.
PLAIN = dict(others=(), strides=False)
SYMMETRIC = T(values=[[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 1.0]], smooth=False)
A = T(values=[[3.0, 1.0, 0.5], [-1.0, 4.0, 1.0], [0.5, -0.5, 2.0]])


def rebuilds(args, kwargs, result):
    """The factors make the matrix; the phases of vectors are free, so nothing else is compared."""
    a = args[0].numpy()
    if len(result) == 2:
        values, vectors = (r.numpy() for r in result)
        np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-5)
        return
    u, s, v = (r.numpy() for r in result)
    k = len(s)
    made = [(u[:, :k] * s) @ w[:k] for w in (v, v.T)]
    assert any(m.shape == a.shape and np.allclose(m, a, atol=1e-5) for m in made)


# Columns that are all alike have many decompositions: which one LAPACK gives depends on the processor.
UNLIKE_COLUMNS = ("transposed", "sliced")
FREE = dict(random=True, check=rebuilds, layouts=False, grad=False, **PLAIN)

ROWS = [
    Row(
        "linalg_cholesky_ex",
        [Sample(SYMMETRIC), Sample(SYMMETRIC, upper=True), Sample(T(0, 0)), Sample(T(2, 3))],
        reference="linalg.cholesky_ex",
        **PLAIN,
    ),
    Row("linalg_eig", [Sample(A)], reference="linalg.eig", **FREE),
    Row(
        "linalg_eigh",
        [Sample(SYMMETRIC), Sample(SYMMETRIC, "U")],
        reference="linalg.eigh",
        **FREE,
    ),
    Row(
        "linalg_qr",
        [Sample(A), Sample(T(3, 2)), Sample(T(2, 3), "complete")],
        reference="linalg.qr",
        layouts=UNLIKE_COLUMNS,
        **PLAIN,
    ),
    Row("linalg_svd", [Sample(A), Sample(T(2, 3), False)], reference="linalg.svd", **FREE),
]
