"""Rows of `xtensor/ops/reduce/sorting.py`."""

import numpy as np

from . import Row, Sample, T

REAL = ("int64", "bfloat16")
X, CUBE = T(2, 3, unique=True), T(2, 1, 3, unique=True)
TIES = T(values=[[1.0, 0.0, 1.0, np.nan], [2.0, 2.0, -np.inf, 2.0]], smooth=False)
EDGES = T(values=[-1.0, 0.0, 0.0, 2.0], grad=False)
WANTED = T(values=[[-2.0, 0.0, 1.0], [2.0, 3.0, np.nan]], grad=False)


def ordered(a, dim=-1, descending=False, stable=None):
    if a.ndim == 0:
        return a, np.zeros((), np.int64)
    order = np.argsort(-a if descending else a, axis=dim, kind="stable")
    return np.take_along_axis(a, order, dim), order


SORTS = [
    Sample(X, 1),
    Sample(X, 0, True),
    Sample(CUBE),
    Sample(T(), 0),
    Sample(T(0), 0),
    Sample(TIES, stable=True),
]

ROWS = [
    Row("argsort", SORTS, numpy=lambda *a, **k: ordered(*a, **k)[1], others=REAL, strides=False),
    Row(
        "bucketize",
        [
            Sample(WANTED, EDGES),
            Sample(WANTED, EDGES, right=True),
            Sample(WANTED, EDGES, out_int32=True),
            Sample(0.5, EDGES),
        ],
        others=("int64",),
        grad=False,
    ),
    Row(
        "isin",
        [
            Sample(T(values=[[1, 2], [3, 4]], dtype="int64"), T(values=[2, 4, 7], dtype="int64")),
            Sample(T(values=[1.0, 2.0]), T(values=[2.0]), invert=True),
            Sample(T(values=[1.0, 2.0]), 2.0),
            Sample(T(0), T(0)),
        ],
        numpy=lambda a, b, invert=False: np.isin(a, b, invert=invert),
        others=(),
    ),
    Row(
        "kthvalue",
        [
            Sample(X, 2),
            Sample(X, 1, 0),
            Sample(CUBE, 3, -1, True),
            Sample(T(), 1),
            Sample(T(0), 1),
            Sample(X, 4),
            Sample(TIES, 4),
        ],
        others=REAL,
    ),
    Row("msort", [Sample(X), Sample(CUBE)], numpy=lambda a: np.sort(a, 0), others=REAL, strides=False),
    Row(
        "searchsorted",
        [
            Sample(EDGES, WANTED),
            Sample(EDGES, WANTED, right=True),
            Sample(EDGES, 0.0, side="left"),
            Sample(
                T(values=[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], grad=False), T(values=[[1.0], [3.5]], grad=False)
            ),
            Sample(T(values=[2.0, -1.0, 0.0], grad=False), WANTED, sorter=T(values=[1, 2, 0], dtype="int64")),
        ],
        others=("int64",),
        grad=False,
    ),
    Row("sort", SORTS, numpy=ordered, others=REAL, strides=False),
    Row(
        "topk",
        [
            Sample(X, 2),
            Sample(X, 1, 0, False),
            Sample(CUBE, 3),
            Sample(T(), 1),
            Sample(X, 4),
            Sample(T(0), 0),
        ],
        others=REAL,
    ),
]
