"""Rows of `xtensor/ops/network/pooling.py`."""

from . import Row, Sample, T

HALF = ("bfloat16",)
LINE = T(2, 2, 7, unique=True)
PLANE = T(2, 2, 5, 6, unique=True)
SPACE = T(1, 2, 4, 4, 4, unique=True)


def maxima(x):
    return [
        Sample(x, 2),
        Sample(x, 3, 2, 1),
        Sample(x, 2, 1, 0, 2),
        Sample(x, 3, 2, ceil_mode=True),
        Sample(x, 2, return_indices=True),
    ]


def averages(x):
    return [Sample(x, 2), Sample(x, 3, 2, 1), Sample(x, 3, 2, 1, True, False)]


def indexed(x):
    return [Sample(x, 2), Sample(x, 3, 2, 1)]


def norms(x):
    return [Sample(x.but(low=0.2), 2.0, 2), Sample(x.but(low=0.2), 3.0, 3, 2, True)]


def covered(n):
    return dict(others=HALF, covers=(f"max_pool{n}d_values", f"max_pool{n}d_indexed"))


ROWS = [
    Row("avg_pool1d", averages(LINE), others=HALF),
    Row("avg_pool2d", [*averages(PLANE), Sample(PLANE, 2, divisor_override=3)], others=HALF),
    Row(
        "avg_pool3d",
        [*averages(SPACE), Sample(SPACE, 2, divisor_override=3)],
        others=HALF,
        # PyTorch writes to a strided one as if it were contiguous.
        outs=("empty", "right", "wrong", "float64"),
    ),
    Row("lp_pool1d", norms(LINE), others=()),
    Row("lp_pool2d", norms(PLANE), others=()),
    Row("lp_pool3d", norms(SPACE), others=()),
    Row("max_pool1d", maxima(LINE), reference="nn.functional.max_pool1d", **covered(1)),
    Row(
        "max_pool1d_with_indices", indexed(LINE), reference="nn.functional.max_pool1d_with_indices", others=()
    ),
    Row("max_pool2d", maxima(PLANE), reference="nn.functional.max_pool2d", **covered(2)),
    Row(
        "max_pool2d_with_indices",
        indexed(PLANE),
        reference="nn.functional.max_pool2d_with_indices",
        others=(),
    ),
    Row("max_pool3d", maxima(SPACE), reference="nn.functional.max_pool3d", **covered(3)),
    Row(
        "max_pool3d_with_indices",
        indexed(SPACE),
        reference="nn.functional.max_pool3d_with_indices",
        others=(),
    ),
]
