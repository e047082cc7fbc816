"""Rows of `xtensor/ops/conversion.py`."""

import numpy as np

from . import Row, Sample, T, unary

ROWS = [
    Row("clone", unary(), numpy=np.copy, covers=()),
    Row(
        "fill",
        [Sample(T(2, 3), 1.5), Sample(T(2, 3), T()), Sample(T(), 2), Sample(T(0), 1)],
        numpy=lambda a, v: np.full_like(a, v),
    ),
    Row(
        "is_nonzero",
        [Sample(T(1)), Sample(T()), Sample(T(2, 3)), Sample(T(0))],
        numpy=lambda a: bool(a),
        meta=False,
    ),
    Row("zero_", unary(), reference="Tensor.zero_", numpy=np.zeros_like, grad=False),
]
