"""Rows of `xtensor/ops/linalg/matrices.py`."""

import numpy as np

from . import Row, Sample, T
from .decompositions import FREE, PLAIN, SYMMETRIC, UNLIKE_COLUMNS, A

ROWS = [
    Row(
        "cholesky",
        [Sample(SYMMETRIC), Sample(SYMMETRIC, True)],
        numpy=lambda a, upper=False: np.linalg.cholesky(a).T if upper else np.linalg.cholesky(a),
        **PLAIN,
    ),
    Row("qr", [Sample(A), Sample(T(3, 2)), Sample(T(3, 2), False)], layouts=UNLIKE_COLUMNS, **PLAIN),
    Row("svd", [Sample(A), Sample(T(2, 3))], **FREE),
]
