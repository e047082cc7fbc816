"""Rows of `xtensor/ops/pointwise/clamping.py`."""

import numpy as np

from . import Row, Sample, T, binary, unary

REAL = ("int64", "bool", "bfloat16")
EDGES = T(values=[-1.0, -0.5, 0.0, 0.5, 1.0, np.nan], smooth=False)
TIES = Sample(
    T(values=[1.0, 2.0, np.nan, 0.0], smooth=False), T(values=[1.0, 3.0, 1.0, np.nan], smooth=False)
)


def clipped(a, min=None, max=None):
    low = a if min is None else np.maximum(a, min)
    return low if max is None else np.minimum(low, max)


def paired(function):
    return dict(samples=[*binary(number=None, special=False), TIES], numpy=function, others=REAL)


ROWS = [
    Row(
        "clamp",
        [
            Sample(T(2, 3), -0.5, 0.5),
            Sample(EDGES, -0.5, 0.5),
            Sample(T(2, 3), min=0),
            Sample(T(2, 3), max=0.5),
            Sample(T(2, 3), T(3), T(2, 1)),
            Sample(T(), -0.5, 0.5),
            Sample(T(0), -0.5, 0.5),
            Sample(EDGES, 0.5, -0.5),
            Sample(T(2, 3)),
        ],
        numpy=clipped,
        others=REAL,
    ),
    Row(
        "clamp_max",
        [Sample(T(2, 3), 0.5), Sample(EDGES, 0.5), Sample(T(2, 3), T(3)), Sample(T(), 0), Sample(T(0), 0)],
        numpy=np.minimum,
        others=REAL,
    ),
    Row(
        "clamp_min",
        [Sample(T(2, 3), 0.5), Sample(EDGES, 0.5), Sample(T(2, 3), T(3)), Sample(T(), 0), Sample(T(0), 0)],
        numpy=np.maximum,
        others=REAL,
    ),
    Row("copysign", binary(), numpy=np.copysign, others=REAL),
    Row("fmax", **paired(np.fmax)),
    Row("fmin", **paired(np.fmin)),
    Row(
        "heaviside",
        [*binary(number=None, special=False), Sample(EDGES, T(6))],
        numpy=lambda a, b: np.nan_to_num(np.heaviside(a, b)),
        others=("int64",),
        grad=False,
    ),
    Row("maximum", **paired(np.maximum)),
    Row("minimum", **paired(np.minimum)),
    Row(
        "nan_to_num",
        [*unary(), Sample(T(values=[np.nan, np.inf, -np.inf, 1.0], smooth=False), 1.0, 2.0, -3.0)],
        numpy=lambda a, nan=0.0, posinf=None, neginf=None: np.nan_to_num(
            a, nan=nan, posinf=posinf, neginf=neginf
        ),
        others=REAL,
    ),
    Row("nextafter", binary(number=None), numpy=np.nextafter, others=()),
]
