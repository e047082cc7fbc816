"""Rows of `xtensor/ops/linalg/low_rank.py`: random vectors are drawn, so factors are put together again."""

import numpy as np

from . import Row, Sample, T

LOW = T(
    values=np.outer([1.0, 2.0, 3.0, 4.0], [1.0, -1.0, 2.0]) + np.outer([1.0, 0.0, -1.0, 2.0], [0.0, 1.0, 1.0])
)
SYMMETRIC = T(values=np.diag([9.0, 7.0, 5.0, 4.0, 3.0, 2.0, 1.0]) + 0.1, grad=False)
FREE = dict(random=True, grad=False, layouts=False, strides=False, others=("float64",), meta=False)
COMPLEX = FREE | dict(others=("float64", "complex64", "int64"))


def rebuilds(args, kwargs, result):
    u, s, v = (r.resolve_conj().numpy() for r in result)
    a = args[0].numpy()
    if kwargs.get("center", True) is True and "center" in kwargs:
        a = a - a.mean(0)
    np.testing.assert_allclose((u * s) @ v.conj().T, a, atol=1e-4)


def solves(args, kwargs, result):
    values, vectors = (r.numpy() for r in result)
    np.testing.assert_allclose(args[0].numpy() @ vectors, vectors * values, atol=1e-3)


ROWS = [
    Row("lobpcg", [Sample(SYMMETRIC, 2), Sample(SYMMETRIC, 1, largest=False)], check=solves, **FREE),
    Row(
        "pca_lowrank",
        [Sample(LOW, 2, center=False), Sample(LOW, q=2, center=True)],
        check=rebuilds,
        **COMPLEX,
    ),
    Row("svd_lowrank", [Sample(LOW, 2), Sample(LOW, q=3)], check=rebuilds, **COMPLEX),
]
