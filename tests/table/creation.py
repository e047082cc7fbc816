"""Rows of `xtensor/ops/create/creation.py`."""

import numpy as np

from . import Dtype, Row, Sample, T

ONCE = dict(others=(), layouts=False, grad=False)
SIZES = [
    Sample(2, 3),
    Sample((2, 3)),
    Sample(()),
    Sample(0),
    Sample(2, 3, dtype=Dtype("int64")),
    Sample(2, -1),
]
LIKE = [Sample(T(2, 3)), Sample(T()), Sample(T(0)), Sample(T(2, 3), dtype=Dtype("int64"))]


FULL = [
    Sample((2, 3), 1.5),
    Sample((2,), 7),
    Sample((), True),
    Sample((2,), 1 + 2j),
    Sample((0,), 1.0),
    Sample((2,), 2, dtype=Dtype("float64")),
]

NEW = [Sample(T(2), 2, 3), Sample(T(2), (2, 3)), Sample(T(2), 2, dtype=Dtype("int32")), Sample(T(2), 2.5)]

ROWS = [
    Row("empty", SIZES, empty=True, **ONCE),
    Row("empty_like", LIKE, empty=True, grad=False),
    Row("empty_permuted", [Sample((2, 3), (1, 0)), Sample((2, 1, 3), (0, 2, 1))], empty=True, **ONCE),
    Row(
        "empty_strided", [Sample((2, 3), (1, 2)), Sample((2, 3), (3, 1)), Sample((), ())], empty=True, **ONCE
    ),
    Row("full", FULL, **ONCE),
    Row(
        "full_like",
        [Sample(T(2, 3), 1.5), Sample(T(), 2), Sample(T(0), 1), Sample(T(2, 3), 3, dtype=Dtype("int64"))],
        numpy=lambda a, v, dtype=None: np.full_like(a, v),
        grad=False,
    ),
    Row("ones", SIZES, **ONCE),
    Row("ones_like", LIKE, numpy=lambda a, dtype=None: np.ones_like(a), grad=False),
    Row("zeros", SIZES, **ONCE),
    Row("zeros_like", LIKE, numpy=lambda a, dtype=None: np.zeros_like(a), grad=False),
    Row(
        "new", [Sample(T(2), 2, 3), Sample(T(2)), Sample(T(2), (2, 3))], empty=True, layouts=False, grad=False
    ),
    Row("new_empty", NEW, empty=True, layouts=False, grad=False),
    Row("new_empty_strided", [Sample(T(2), (2, 3), (1, 2))], empty=True, layouts=False, grad=False),
    Row(
        "new_full",
        [Sample(T(2), (2, 3), 1.5), Sample(T(2), (), 2), Sample(T(2), 2, 3)],
        layouts=False,
        grad=False,
    ),
    Row("new_ones", NEW, layouts=False, grad=False),
    Row("new_zeros", NEW, layouts=False, grad=False),
]
