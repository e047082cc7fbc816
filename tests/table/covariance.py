"""Rows of `xtensor/ops/reduce/covariance.py`."""

from . import Row, Sample, T

TIMES = T(values=[1, 2, 1, 3], dtype="int64")
WORTH = T(values=[0.5, 1.0, 2.0, 0.25], grad=False)
OTHERS = ("int64", "bool", "complex64")

ROWS = [
    Row(
        "corrcoef",
        [Sample(T(3, 4)), Sample(T(4)), Sample(T(2, 2, 2))],
        others=OTHERS,
        strides=False,
        tolerance=4,
    ),
    Row(
        "cov",
        [
            Sample(T(3, 4)),
            Sample(T(4), correction=0),
            Sample(T(3, 4), fweights=TIMES),
            Sample(T(3, 4), aweights=WORTH),
            Sample(T(3, 4), correction=2, fweights=TIMES, aweights=WORTH),
            Sample(T(2, 2, 2)),
            Sample(T(3, 4), fweights=WORTH),
            Sample(T(3, 3), fweights=TIMES),
        ],
        others=OTHERS,
        strides=False,
        tolerance=4,
    ),
]
