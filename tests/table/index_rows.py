"""Rows of `xtensor/ops/index/index_rows.py`."""

import numpy as np

from . import Row, Sample, T


def at(*values):
    return T(values=list(values), dtype="int64")


PUT = [Sample(T(2, 3), at(0, -1), T(2)), Sample(T(2, 3), at(1, 1), T(2), True), Sample(T(3), at(3), T(1))]
ROWS_OF = [
    Sample(T(2, 3), 0, at(1, 0), T(2, 3)),
    Sample(T(2, 3), 1, at(2, 0), T(2, 2)),
    Sample(T(), 0, at(0), T(1)),
    Sample(T(2, 3), 0, at(0), T(2, 3)),
]


def reduced(reduce):
    return [
        Sample(T(2, 3), 0, at(1, 1), T(2, 3), reduce),
        Sample(T(2, 3), 1, at(2, 0), T(2, 2), reduce, include_self=False),
    ]


def added(a, dim, index, source, alpha=1):
    made = a.copy()
    np.add.at(made, (slice(None),) * dim + (index,), alpha * source)
    return made


ROWS = [
    Row(
        "index_add",
        [*ROWS_OF, Sample(T(2, 3), 0, at(1, 1), T(2, 3), alpha=2)],
        numpy=lambda a, d, i, s, alpha=1: added(a, d, i, s, alpha) if a.ndim else a + alpha * s[0],
    ),
    Row("index_copy", ROWS_OF),
    Row(
        "index_fill",
        [Sample(T(2, 3), 0, at(1), 1.5), Sample(T(2, 3), -1, at(0, 2), T()), Sample(T(), 0, at(0), 2)],
    ),
    Row(
        "index_reduce",
        [*reduced("prod"), *reduced("mean"), *reduced("amax"), *reduced("amin")],
        others=("int64",),
        grad=True,
    ),
    Row(
        "index_select",
        [
            Sample(T(2, 3), 0, at(1, 0, 1)),
            Sample(T(2, 3), -1, at(2)),
            Sample(T(), 0, at(0)),
            Sample(T(2, 3), 0, at()),
            Sample(T(2, 3), 0, at(2)),
        ],
        numpy=lambda a, d, i: np.take(a, i, d) if a.ndim else a,
    ),
    Row("put", PUT),
    Row(
        "take",
        [
            Sample(T(2, 3), at(0, 5, 1)),
            Sample(T(2, 3), T(values=[[1, -1]], dtype="int64")),
            Sample(T(3), at(3)),
        ],
        numpy=np.take,
    ),
]
