"""Rows of `xtensor/ops/reduce/statistics.py`."""

import numpy as np

from . import Row, Sample, T

REAL = ("int64", "bfloat16")
X, CUBE = T(2, 5, unique=True), T(2, 1, 3, unique=True)
NANS = T(values=[[1.0, np.nan, 2.0, 0.0, 5.0], [3.0, 1.0, 2.0, 5.0, 4.0]], smooth=False)
COUNTED = T(values=[3, 1, 1, 0, 5], dtype="int64")
REPEATED = T(values=[[3, 1, 1], [3, 1, 1], [0, 2, 2]], dtype="int64")
MEDIANS = [Sample(X, 1), Sample(X), Sample(CUBE, -1, True), Sample(NANS, 1), Sample(T()), Sample(T(), 0)]
QUANTILES = [
    Sample(X, 0.3),
    Sample(X, 0.5, 1),
    Sample(X, T(values=[0.0, 0.25, 1.0], grad=False), 1, True),
    Sample(X, 0.3, 1, interpolation="lower"),
    Sample(X, 0.3, 1, interpolation="higher"),
    Sample(X, 0.3, 1, interpolation="nearest"),
    Sample(X, 0.3, 1, interpolation="midpoint"),
    Sample(NANS.but(grad=False), 0.6, 1),  # whose the gradient of a NaN is, PyTorch decides otherwise
]

ROWS = [
    Row(
        "bincount",
        [
            Sample(COUNTED),
            Sample(COUNTED, T(5, grad=False)),
            Sample(COUNTED, minlength=8),
            Sample(T(0, dtype="int64")),
        ],
        numpy=np.bincount,
        others=(),
        meta=False,
    ),
    Row(
        "histc",
        [Sample(T(2, 5), 4, -1, 1), Sample(T(2, 5), 3), Sample(T(0), 3), Sample(T(values=[1.0, 1.0]), 2)],
        others=(),
        grad=False,
    ),
    Row("median", MEDIANS, others=REAL, covers=("median_all", "median_dim")),
    Row(
        "mode",
        [
            Sample(T(values=[[1.0, 2.0, 2.0, 3.0], [5.0, 5.0, 1.0, 1.0]], smooth=False)),
            Sample(T(2, 0)),
            Sample(CUBE, 0),
            Sample(T()),
        ],
        others=REAL,
    ),
    Row("nanmedian", MEDIANS, others=REAL, covers=("nanmedian_all", "nanmedian_dim")),
    Row("nanquantile", QUANTILES, others=(), strides=False),
    Row("quantile", QUANTILES, numpy=None, others=(), covers=("quantiles",), strides=False),
    Row(
        "unique",
        [
            Sample(REPEATED),
            Sample(REPEATED, return_inverse=True, return_counts=True),
            Sample(REPEATED, dim=0),
            Sample(REPEATED, return_inverse=True, return_counts=True, dim=1),
            Sample(T(0)),
        ],
        others=(),
        meta=False,
        strides=False,
    ),
    Row(
        "unique_consecutive",
        [
            Sample(REPEATED),
            Sample(REPEATED, return_inverse=True, return_counts=True),
            Sample(REPEATED, dim=0),
            Sample(T(0)),
        ],
        others=(),
        meta=False,
    ),
]
