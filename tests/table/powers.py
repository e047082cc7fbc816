"""Rows of `xtensor/ops/pointwise/powers.py`."""

import numpy as np

from . import Row, Sample, T, binary, unary

POSITIVE = dict(low=0.2, high=2.0)
SUBNORMAL = Sample(T(values=[0.0, -0.0, 1e-45, -1e-40, 1.17e-38, 1.18e-38], grad=False))

ROWS = [
    Row("float_power", binary(**POSITIVE, special=False), numpy=np.float_power),
    Row("frexp", [*unary(special=False), SUBNORMAL], numpy=np.frexp, strides=False),
    Row(
        "ldexp",
        [Sample(T(2, 3), T(3, dtype="int64")), Sample(T(), T()), Sample(T(0), T(0))],
        numpy=lambda a, b: a * 2.0**b,
        differences=True,  # PyTorch takes 2 to the power of a negative integer for 0
    ),
    Row(
        "pow",
        [
            *binary(**POSITIVE),
            Sample(T(2, 3), 2),
            Sample(T(2, 3, values=[-1.0, 0.0, 2.0], smooth=False), 3),
            Sample(T(values=[0.0, 1.0], smooth=False), 0),
            Sample(2.5, T(2, 3)),
        ],
        numpy=np.power,
    ),
]
