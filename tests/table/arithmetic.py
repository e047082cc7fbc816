"""Rows of `xtensor/ops/arithmetic.py`."""

import numpy as np

from . import Row, Sample, T, binary, unary

ROWS = [
    Row("add", [*binary(), Sample(T(2, 3), T(3), alpha=2)], numpy=lambda a, b, alpha=1: a + alpha * b),
    Row("mul", binary(), numpy=np.multiply),
    Row("tanh", unary(), numpy=np.tanh),
]
