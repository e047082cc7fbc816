"""Rows of `xtensor/ops/pointwise/comparison.py`."""

import numpy as np

from . import Row, Sample, T, binary, unary

BITS = dict(dtype="int64", others=("int32", "uint8", "bool", "float32"))
INTEGERS = [
    Sample(T(2, 3), T(2, 3)),
    Sample(T(2, 3), T(3)),
    Sample(T(), T()),
    Sample(T(0), T(0)),
]
SHIFTS = [
    Sample(T(2, 3, low=0.0, high=9.0), T(2, 3, low=0.0)),
    Sample(T(2, 3), T(low=0.0)),
    Sample(T(2, 3), 2),
    Sample(T(), T(low=0.0)),
    Sample(T(0), T(0)),
]
TIES = Sample(T(values=[1.0, 2.0, np.nan, np.inf, 0.0]), T(values=[1.0, 3.0, np.nan, np.inf, -0.0]))
CLOSE = Sample(T(values=[1.0, 2.0, np.inf, 3.0]), T(values=[1.00001, 2.1, np.inf, np.nan]))


def compared(function):
    return dict(samples=[*binary(), TIES], numpy=function)


ROWS = [
    Row("allclose", [Sample(T(2, 3), T(2, 3)), CLOSE, Sample(T(0), T(0))], numpy=np.allclose, meta=False),
    Row("bitwise_and", [*INTEGERS, Sample(T(2, 3), 5)], numpy=np.bitwise_and, **BITS),
    Row("bitwise_left_shift", SHIFTS, numpy=np.left_shift, **BITS),
    Row("bitwise_not", unary(special=False), numpy=np.bitwise_not, **BITS),
    Row("bitwise_or", [*INTEGERS, Sample(T(2, 3), 5)], numpy=np.bitwise_or, **BITS),
    Row("bitwise_right_shift", SHIFTS, numpy=np.right_shift, **BITS),
    Row("bitwise_xor", [*INTEGERS, Sample(T(2, 3), 5)], numpy=np.bitwise_xor, **BITS),
    Row("eq", **compared(np.equal)),
    Row(
        "equal",
        [TIES, Sample(T(2, 3), T(2, 3)), Sample(T(0), T(0)), Sample(T(2), T(3))],
        numpy=np.array_equal,
        meta=False,
        covers=("_equal",),
    ),
    Row("gcd", INTEGERS, numpy=np.gcd, **BITS),
    Row("ge", **compared(np.greater_equal)),
    Row("gt", **compared(np.greater)),
    Row(
        "isclose",
        [*binary(number=None, special=False), CLOSE, Sample(*TIES.args, equal_nan=True)],
        numpy=np.isclose,
    ),
    Row("isfinite", unary(), numpy=np.isfinite),
    Row("isinf", unary(), numpy=np.isinf),
    Row("isnan", unary(), numpy=np.isnan),
    Row("isneginf", unary(), numpy=np.isneginf, others=("int64", "bool", "bfloat16")),
    Row("isposinf", unary(), numpy=np.isposinf, others=("int64", "bool", "bfloat16")),
    Row("isreal", unary(), numpy=np.isreal),
    Row("lcm", INTEGERS, numpy=np.lcm, **BITS),
    Row("le", **compared(np.less_equal)),
    Row("logical_and", binary(number=None), numpy=np.logical_and),
    Row("logical_not", unary(), numpy=np.logical_not),
    Row("logical_or", binary(number=None), numpy=np.logical_or),
    Row("logical_xor", binary(number=None), numpy=np.logical_xor),
    Row("lt", **compared(np.less)),
    Row("ne", **compared(np.not_equal)),
]
