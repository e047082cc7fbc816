"""Rows of `xtensor/ops/index/scatter.py`."""

import numpy as np

from . import Row, Sample, T


def at(values):
    return T(values=values, dtype="int64")


BOTH = at([[0, 1, 1], [1, 0, 0]])
SCATTERED = [
    Sample(T(2, 3), 0, BOTH, T(2, 3)),
    Sample(T(2, 3), 1, at([[2], [0]]), T(2, 2)),
    Sample(T(), 0, at(0), T()),
    Sample(T(2, 3), 0, at([[2]]), T(1, 1)),
]


def reduced(reduce):
    return [
        Sample(T(2, 3), 0, BOTH, T(2, 3), reduce),
        Sample(T(2, 3), 1, at([[2, 2], [0, 1]]), T(2, 2), reduce, include_self=False),
    ]


ROWS = [
    Row(
        "gather",
        [
            Sample(T(2, 3), 0, BOTH),
            Sample(T(2, 3), 1, at([[2], [0]])),
            Sample(T(), 0, at(0)),
            Sample(T(2, 3), 0, at(np.zeros((0, 3)))),
            Sample(T(2, 3), 0, at([[2]])),
        ],
    ),
    Row(
        "scatter",
        [
            Sample(T(2, 3), 1, at([[2, 0, 1], [0, 1, 2]]), T(2, 3)),
            Sample(T(2, 3), 1, at([[2], [0]]), 1.5),
            Sample(T(2, 3), 0, at([[1]]), T(2, 3), reduce="add"),
            Sample(T(), 0, at(0), T()),
            Sample(T(2, 3), 0, at([[2]]), T(1, 1)),
        ],
        others=("int64", "bool", "complex64"),
    ),
    Row("scatter_add", SCATTERED, others=("int64", "complex64", "bfloat16")),
    Row(
        "scatter_reduce",
        [*reduced("sum"), *reduced("prod"), *reduced("mean"), *reduced("amax"), *reduced("amin")],
        others=("int64",),
    ),
    Row(
        "take_along_dim",
        [
            Sample(T(2, 3), at([[2], [0]]), 1),
            Sample(T(2, 3), at([3, 0])),
            Sample(T(2, 3), at([[0, 0, 1]]), 0),
        ],
        numpy=lambda a, i, d=None: np.take_along_axis(
            a, np.broadcast_to(i, (2, *i.shape[1:])) if d == 1 else i, d
        ),
    ),
]
