"""Rows of `xtensor/ops/shape/view_scatter.py`."""

from . import Row, Sample, T

ROWS = [
    Row(
        "as_strided_scatter",
        [
            Sample(T(2, 3), T(2, 2), (2, 2), (3, 1)),
            Sample(T(2, 3), T(2, 2), (2, 2), (1, 3), 1),
            Sample(T(3), T(), (), (), 2),
        ],
        # PyTorch's own gradcheck refuses its gradient; ours is checked in test_indexing.py.
        grad=False,
        second=False,
        differences=True,
    ),
    Row(
        "diagonal_scatter",
        [
            Sample(T(2, 3), T(2)),
            Sample(T(2, 3), T(2), 1),
            Sample(T(2, 1, 3), T(1, 2), 0, 0, 2),
            Sample(T(2, 3), T(3)),
        ],
    ),
    Row(
        "select_scatter",
        [
            Sample(T(2, 3), T(3), 0, 1),
            Sample(T(2, 3), T(2), -1, -1),
            Sample(T(2, 3), T(2), 0, 1),
            Sample(T(2, 3), T(3), 0, 2),
        ],
    ),
    Row(
        "slice_scatter",
        [
            Sample(T(2, 3), T(2, 2), 1, 1),
            Sample(T(2, 3), T(2, 2), 1, 0, 3, 2),
            Sample(T(2, 3), T(0, 3), 0, 1, 1),
            Sample(T(2, 3), T(2, 3), 1, 1),
        ],
    ),
]
