"""Rows of `xtensor/ops/linalg/reflectors.py`."""

from . import Row, Sample, T

PLAIN = dict(others=("float64", "complex64"), strides=False)
A = T(values=[[3.0, 1.0, 0.5], [-1.0, 4.0, 1.0], [0.5, -0.5, 2.0]])

ROWS = [
    Row(
        "geqrf",
        [Sample(A), Sample(T(4, 2)), Sample(T(2, 2, 3)), Sample(T(3))],
        grad=False,
        layouts=False,
        **PLAIN,
    ),
    Row(
        "linalg_householder_product",
        [
            Sample(T(3, 2), T(2)),
            Sample(T(2, 3, 3), T(2, 2)),
            Sample(T(2, 3), T(2)),
            Sample(T(3, 2), T(3)),
            Sample(T(3, 0), T(0)),
        ],
        reference="linalg.householder_product",
        **PLAIN,
    ),
    Row("orgqr", [Sample(T(3, 2), T(2)), Sample(T(3, 2), T(3))], **PLAIN),
    Row(
        "ormqr",
        [
            Sample(T(3, 2), T(2), T(3, 2)),
            Sample(T(3, 2), T(2), T(3, 2), True, True),
            Sample(T(3, 2), T(2), T(2, 3), False),
            Sample(T(2, 3, 2), T(2, 2), T(2, 2, 3), False, True),
            Sample(T(3, 2), T(2), T(2, 2)),
            Sample(T(3), T(2), T(3, 2)),
            Sample(T(3, 0), T(0), T(3, 2)),
        ],
        **PLAIN,
    ),
]
