"""Rows of `xtensor/ops/reduce/slopes.py`."""

from . import Row, Sample, T

POINTS = T(values=[0.0, 0.5, 2.0, 2.5], grad=False)

ROWS = [
    Row(
        "gradient",
        [
            Sample(T(3, 4)),
            Sample(T(4), spacing=0.5),
            Sample(T(3, 4), dim=1, spacing=(POINTS,), edge_order=2),
            Sample(T(3, 4), spacing=(2.0, 0.5)),
            Sample(T(4), spacing=(POINTS,)),
            Sample(T(5), edge_order=2),
            Sample(T(1)),
            Sample(T(4), edge_order=3),
            Sample(T(3, 4), spacing=(1.0,)),
        ],
        others=("float64", "int64", "complex64"),
        strides=False,
    ),
]
