"""Rows of `xtensor/ops/pointwise/activation_functions.py`."""

import numpy as np

from . import Row, Sample, T, unary
from .activations import HALF, KINKS

PLAIN = [*unary(special=False), Sample(KINKS)]
SCALE, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717

ROWS = [
    Row(
        "celu",
        [*PLAIN, Sample(KINKS, 0.5)],
        numpy=lambda a, alpha=1.0: np.maximum(a, 0) + np.minimum(alpha * np.expm1(a / alpha), 0),
        others=HALF,
    ),
    Row(
        "prelu",
        [
            Sample(T(2, 3), T(3)),
            Sample(T(2, 3), T(1)),
            Sample(T(2, 2, 3), T(2)),
            Sample(T(), T(1)),
            Sample(T(0, 3), T(3)),
            Sample(T(values=[[-1.0, 0.0, 1.0]], smooth=False), T(3)),
        ],
        numpy=lambda a, w: np.where(
            a > 0,
            a,
            a * (w.reshape(-1, *(1,) * (a.ndim - 2)) if a.ndim > 1 else w.reshape(()) if a.ndim == 0 else w),
        ),
        others=("bfloat16",),
        covers=("prelu_kernel",),
    ),
    Row(
        "rrelu",
        [*PLAIN, Sample(KINKS, 0.1, 0.2)],
        numpy=lambda a, low=0.125, high=1 / 3: np.where(a > 0, a, a * (low + high) / 2),
        others=HALF,
        strides=False,
    ),
    Row(
        "selu",
        PLAIN,
        numpy=lambda a: SCALE * np.where(a > 0, a, ALPHA * np.expm1(np.minimum(a, 0))),
        others=HALF,
    ),
    Row(
        "threshold",
        [Sample(s.args[0], 0.5, 2.0) for s in PLAIN],
        numpy=lambda a, t, v: np.where(a <= t, v, a),
        others=HALF,
        reference="nn.functional.threshold",
    ),
]
