"""Rows of `xtensor/ops/reduce/norms.py`."""

import numpy as np

from . import Dtype, Row, Sample, T

ORDERS = (2, 1, 0, 3, np.inf, -np.inf, 0.5)

ROWS = [
    Row(
        "dist",
        [
            *[Sample(T(2, 3), T(2, 3), p) for p in ORDERS],
            Sample(T(2, 3), T(3)),
            Sample(T(), T()),
            Sample(T(0), T(0)),
        ],
        numpy=lambda a, b, p=2: np.linalg.norm(np.ravel(a - b), p),
        others=("complex64",),
    ),
    Row(
        "norm",
        [
            Sample(T(2, 3)),
            *[Sample(T(2, 3), p, 1) for p in ORDERS],
            Sample(T(2, 3), dim=(0, 1)),
            Sample(T(2, 3), "fro", 1, True),
            Sample(T(values=[[0.0, 0.0], [3.0, 4.0]], smooth=False), 2, 1),
            Sample(T(), 2),
            Sample(T(2, 3), 1, dtype=Dtype("float64")),
        ],
        others=("complex64", "bfloat16"),
        covers=("linalg_vector_norm",),
    ),
    Row(
        "renorm",
        [Sample(T(2, 3), 2.0, 0, 1.0), Sample(T(2, 3), 1.0, 1, 0.5), Sample(T(2, 1, 3), np.inf, -1, 0.5)],
        others=(),
    ),
]
