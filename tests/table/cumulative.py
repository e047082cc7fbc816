"""Rows of `xtensor/ops/reduce/cumulative.py`."""

import numpy as np

from . import OUTS, Dtype, Row, Sample, T

ALONG = [
    Sample(T(2, 3), 1),
    Sample(T(2, 3), 0),
    Sample(T(2, 1, 3), -1),
    Sample(T(), 0),
    Sample(T(0), 0),
    Sample(T(2, 0), 1),
]
ZEROS = Sample(T(values=[[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], smooth=False), 1)
TIES = Sample(T(values=[[1.0, 1.0, np.nan, 2.0], [2.0, 2.0, 1.0, 3.0]], smooth=False), 1)
# Not an integer `out`: PyTorch sums in its dtype, and we refuse to lose the fraction.
CASTS = tuple(kind for kind in OUTS if kind != "int32")
REAL = ("int64", "bool", "bfloat16")


def along(function):
    return lambda a, dim, dtype=None: function(a, axis=dim if a.ndim else None).reshape(a.shape)


ROWS = [
    Row(
        "cross",
        [
            Sample(T(2, 3), T(2, 3)),
            Sample(T(3, 2), T(3, 2), 0),
            Sample(T(3), T(2, 3), -1),
            Sample(T(2, 2), T(2, 2)),
        ],
        numpy=lambda a, b, dim=-1: np.cross(a, b, axis=dim),
        others=("int64", "complex64"),
        covers=("linalg_cross",),
    ),
    Row("cummax", [*ALONG, TIES], others=REAL),
    Row("cummin", [*ALONG, TIES], others=REAL),
    Row(
        "cumprod",
        [*ALONG, ZEROS, Sample(T(2, 3), 1, dtype=Dtype("float64"))],
        numpy=along(np.cumprod),
        outs=CASTS,
    ),
    Row("cumsum", [*ALONG, Sample(T(2, 3), 1, dtype=Dtype("float64"))], numpy=along(np.cumsum), outs=CASTS),
    Row(
        "cumulative_trapezoid",
        [Sample(T(2, 3)), Sample(T(2, 3), T(3)), Sample(T(2, 3), dx=0.5, dim=0)],
        others=("int64",),
    ),
    Row(
        "diff",
        [
            Sample(T(2, 3)),
            Sample(T(2, 4), 2),
            Sample(T(2, 3), dim=0),
            Sample(T(2, 3), 1, -1, T(2, 1), T(2, 2)),
            Sample(T(0)),
            Sample(T()),
        ],
        numpy=lambda a, n=1, dim=-1, prepend=None, append=None: np.diff(
            a, n, dim, *([prepend, append] if prepend is not None else [])
        ),
    ),
    Row(
        "logcumsumexp",
        [
            *ALONG,
            Sample(T(values=[[1.0, 2.0, -3.0], [1e3, -1e3, 5.0]], smooth=False), 1),
            # PyTorch's gradient is NaN where all that went before is -inf.
            Sample(T(values=[[-np.inf, 1.0, 2.0]], grad=False), 1),
        ],
        numpy=lambda a, dim: np.logaddexp.accumulate(a, axis=dim) if a.ndim else a,
        others=("bfloat16",),
    ),
    Row(
        "trapezoid",
        [Sample(T(2, 3)), Sample(T(2, 3), T(3)), Sample(T(2, 3), dx=0.5, dim=0), Sample(T(0))],
        others=("int64",),
    ),
]
