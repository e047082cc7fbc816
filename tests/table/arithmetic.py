"""Rows of `xtensor/ops/pointwise/arithmetic.py`."""

import numpy as np

from . import Row, Sample, T, binary, unary

NONZERO = dict(low=0.5, high=3.0)
TERNARY = [
    Sample(T(2, 3), T(2, 3), T(2, 3, low=0.5), value=2),
    Sample(T(2, 3), T(2, 1), T(1, 3, low=0.5)),
    Sample(T(), T(), T(low=0.5), value=0.5),
    Sample(T(0), T(0), T(0)),
]

ROWS = [
    Row("abs", unary(), numpy=np.abs),
    Row("absolute", unary(), numpy=np.abs),
    Row("add", [*binary(), Sample(T(2, 3), T(3), alpha=2)], numpy=lambda a, b, alpha=1: a + alpha * b),
    Row("addcdiv", TERNARY, numpy=lambda a, b, c, value=1: a + value * b / c),
    Row("addcmul", TERNARY, numpy=lambda a, b, c, value=1: a + value * b * c),
    Row(
        "div",
        [
            *binary(**NONZERO),
            Sample(T(2, 3), T(2, 3, **NONZERO), rounding_mode="floor"),
            Sample(T(2, 3), T(2, 3, **NONZERO), rounding_mode="trunc"),
        ],
        numpy=lambda a, b, rounding_mode=None: {None: lambda x: x, "floor": np.floor, "trunc": np.trunc}[
            rounding_mode
        ](a / b),
    ),
    Row("floor_divide", binary(**NONZERO, special=False), numpy=np.floor_divide),
    Row("fmod", binary(**NONZERO, special=False), numpy=np.fmod),
    Row(
        "lerp",
        [
            Sample(T(2, 3), T(2, 3), 0.3),
            Sample(T(2, 3), T(3), T(2, 3)),
            Sample(T(), T(), T(values=0.7)),
            Sample(T(0), T(0), 0.5),
        ],
        numpy=lambda a, b, w: a + w * (b - a),
    ),
    Row("mul", binary(), numpy=np.multiply),
    Row("neg", unary(), numpy=np.negative),
    Row("positive", unary(), numpy=np.positive),
    Row("remainder", binary(**NONZERO, special=False), numpy=np.remainder),
    Row("rsub", [*binary(), Sample(T(2, 3), T(3), alpha=2)], numpy=lambda a, b, alpha=1: b - alpha * a),
    Row("sgn", unary(), numpy=lambda a: np.nan_to_num(np.sign(a))),
    Row("sign", unary(), numpy=lambda a: np.nan_to_num(np.sign(a))),
    Row("signbit", unary(), numpy=np.signbit),
    Row("sub", [*binary(), Sample(T(2, 3), T(3), alpha=2)], numpy=lambda a, b, alpha=1: a - alpha * b),
    Row("true_divide", binary(**NONZERO), numpy=np.true_divide),
]
