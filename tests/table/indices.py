"""Rows of `xtensor/ops/index/indices.py`."""

from . import OTHERS, Row, Sample, T

X = T(values=[[0.0, 1.5, -2.0], [3.0, 0.0, 0.0]])
PLACES = T(values=[[0, 5], [3, 7]], dtype="int64")
FEW = T(values=[0, 7], dtype="uint8")
ROWS_OF, COLUMNS = T(values=[0, 1, 4], dtype="int64"), T(values=[-9, 2, 1], dtype="int64")
MASK = T(values=[True, True, False], dtype="bool")

ROWS = [
    Row(
        "nonzero_static",
        [Sample(X, size=4), Sample(X, size=2, fill_value=7), Sample(T(), size=2), Sample(X, size=-1)],
    ),
    Row(
        "unravel_index",
        [
            Sample(PLACES, (2, 4)),
            Sample(PLACES, 8),
            Sample(PLACES, (2, -4)),
            Sample(T(2), (2,)),
            Sample(FEW, (2, 4)),
        ],
    ),
    Row("broadcast_shapes", [Sample((2,), (3,)), Sample((-1,), (3,))]),
    Row(
        "_unsafe_masked_index",
        [Sample(X, MASK, [ROWS_OF, COLUMNS], 0.5)],
        others=OTHERS[:1],
        layouts=False,
    ),
    Row(
        "_unsafe_masked_index_put_accumulate",
        [Sample(X, MASK, [ROWS_OF, COLUMNS], T(3))],
        others=OTHERS[:1],
        layouts=False,
    ),
    Row(
        "_chunk_cat",
        [
            Sample([T(3, 2), T(4, 1)], 0, 2),
            Sample([T(3, 2), T(3, 3)], 1, 2),
            Sample([T(3, 2), T(3, 2)], 0, 0),
        ],
        others=OTHERS,
        grad=False,
        layouts=False,
    ),
]
