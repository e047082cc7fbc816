"""Rows of `xtensor/ops/reduce/histograms.py`."""

from . import Row, Sample, T

EDGES = T(values=[-1.0, 0.0, 0.5, 1.0], grad=False)
HELD = T(values=[-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, -3.0])
PLAIN = dict(grad=False, others=("float64", "int64"), strides=False)

ROWS = [
    Row(
        "histogram",
        [
            Sample(T(12), 4),
            Sample(HELD, EDGES),
            Sample(T(3, 4), 5, range=(-1.0, 1.0)),
            Sample(T(12), 3, weight=T(12), density=True),
            Sample(T(12), EDGES, density=True),
            Sample(T(12), 0),
            Sample(T(12), 4, range=(1.0, -1.0)),
        ],
        covers=("histogram_edges", "histogram_counts"),
        outs=("empty", "right"),
        **PLAIN,
    ),
    Row(
        "histogramdd",
        [
            Sample(T(12, 2), [3, 4]),
            Sample(T(2, 6, 2), 2, weight=T(2, 6)),
            Sample(T(12, 2), [EDGES, EDGES]),
            Sample(T(12, 2), [3, 2], range=[-1.0, 1.0, -2.0, 2.0], density=True),
            Sample(T(12, 2), [3, 4, 5]),
            Sample(T(12), [3]),
        ],
        without=("out",),
        **PLAIN,
    ),
]
