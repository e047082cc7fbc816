"""Rows of `xtensor/ops/shape/joining.py`."""

import numpy as np

from . import Row, Sample, T

LISTS = [
    Sample([T(2, 3), T(2, 3)]),
    Sample([T(2, 3), T(2, 3, dtype="float64")]),
    Sample([T(2, 1, 3)]),
    Sample([T(2, 3), T(3)]),
]
VECTORS = [Sample([T(3), T(3)]), Sample([T(), T(1)])]


def on_list(function):
    return lambda *tensors: function(list(tensors))


ROWS = [
    Row(
        "atleast_1d",
        [Sample(T(2, 3)), Sample(T()), Sample(T(), T(3)), Sample([T(), T(3)])],
        numpy=np.atleast_1d,
    ),
    Row(
        "atleast_2d",
        [Sample(T(2, 3)), Sample(T()), Sample(T(), T(3)), Sample([T(), T(3)])],
        numpy=np.atleast_2d,
    ),
    Row(
        "atleast_3d",
        [Sample(T(2, 3)), Sample(T()), Sample(T(), T(3)), Sample([T(), T(3)])],
        numpy=np.atleast_3d,
    ),
    Row("block_diag", [Sample(T(2, 3), T(3), T()), Sample(T(2, 3)), Sample(T(2, 1, 3))]),
    Row(
        "broadcast_tensors",
        [Sample(T(2, 1, 3), T(2, 3)), Sample(T(), T(3)), Sample(T(2), T(3))],
        numpy=np.broadcast_arrays,
    ),
    Row("cartesian_prod", [Sample(T(3), T(2)), Sample(T(3)), Sample(T(3), T(0)), Sample(T(2, 3))]),
    Row(
        "cat",
        [
            Sample([T(2, 3), T(2, 3)], 1),
            Sample([T(2, 3), T(2, 3)]),
            Sample([T(2, 3), T(0)], 0),
            Sample([T(2, 3), T(2, 3, dtype="float64")], -1),
            Sample([T(2, 1, 3)], 1),
            Sample([T(), T()], 0),
            Sample([T(2, 3), T(2, 2)], 0),
        ],
    ),
    Row("column_stack", [*LISTS, *VECTORS], numpy=np.column_stack),
    Row("combinations", [Sample(T(3)), Sample(T(3), 3, True), Sample(T(2, 3)), Sample(T(0))]),
    Row("dstack", [*LISTS, *VECTORS], numpy=np.dstack),
    Row("hstack", [*LISTS, *VECTORS], numpy=np.hstack),
    Row(
        "kron",
        [Sample(T(2, 3), T(3)), Sample(T(2, 3), T(2, 1, 3)), Sample(T(), T(2, 3)), Sample(T(0), T(3))],
        numpy=np.kron,
    ),
    Row("vstack", [*LISTS, *VECTORS], numpy=np.vstack),
    Row(
        "stack",
        [
            Sample([T(2, 3), T(2, 3)], 1),
            Sample([T(2, 3), T(2, 3)]),
            Sample([T(), T()], -1),
            Sample([T(2, 3)], -2),
            Sample([T(0), T(0)]),
            Sample([T(2, 3), T(3)]),
        ],
        numpy=lambda tensors, dim=0: np.stack(tensors, dim),
    ),
]
