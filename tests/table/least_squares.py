"""Rows of `xtensor/ops/linalg/least_squares.py`."""

import numpy as np

from . import Row, Sample, T

A = T(values=[[3.0, 1.0, 0.5], [-1.0, 4.0, 1.0], [0.5, -0.5, 2.0]])

ROWS = [
    Row(
        "pinverse",
        [Sample(T(2, 3)), Sample(T(3, 2)), Sample(A)],
        numpy=np.linalg.pinv,
        others=(),
        layouts=False,
        covers=("linalg_pinv",),
        strides=False,
    ),
]
