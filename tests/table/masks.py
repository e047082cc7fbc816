"""Rows of `xtensor/ops/index/masks.py`."""

import numpy as np

from . import Row, Sample, T


def mask(*shape):
    return T(*shape, dtype="bool")


def filled(a, m, v):
    return np.where(m, np.asarray(v, a.dtype), a)


ZEROS = Sample(T(values=[[1.0, 0.0, 2.0], [0.0, 0.0, np.nan]]))

ROWS = [
    Row("argwhere", [ZEROS, Sample(T(2, 3)), Sample(T()), Sample(T(0))], numpy=np.argwhere, meta=False),
    Row(
        "masked_fill",
        [
            Sample(T(2, 3), mask(2, 3), 1.5),
            Sample(T(2, 3), mask(3), T()),
            Sample(T(), mask(), 2),
            Sample(T(0), mask(0), 2),
            Sample(T(2, 3), T(2, 3), 1.5),
        ],
        numpy=filled,
    ),
    Row(
        "masked_scatter",
        [Sample(T(2, 3), mask(2, 3), T(6)), Sample(T(2, 3), mask(3), T(2, 3)), Sample(T(0), mask(0), T(0))],
    ),
    Row(
        "nonzero",
        [ZEROS, Sample(T(2, 3)), Sample(T()), Sample(T(0)), Sample(*ZEROS.args, as_tuple=True)],
        numpy=lambda a, as_tuple=False: np.nonzero(a) if as_tuple else np.argwhere(a),
        meta=False,
    ),
    Row(
        "where",
        [
            Sample(mask(2, 3), T(2, 3), T(2, 3)),
            Sample(mask(3), T(2, 1), T(2, 3)),
            Sample(mask(2, 3), T(2, 3), 1.5),
            Sample(mask(2, 3), 2, T(2, 3)),
            Sample(mask(), T(), T()),
            Sample(mask(0), T(0), T(0)),
            Sample(mask(2, 3), 1.0, 2.0),
            Sample(mask(2, 3), T(2, 3), T(2, 3, dtype="float64")),
        ],
        numpy=np.where,
        without=("method",),  # its first argument is the second of the function: tests/ops/test_indexing.py
    ),
]
