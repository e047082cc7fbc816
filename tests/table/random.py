"""Rows of `xtensor/ops/create/random.py`: the numbers are our own, so shapes, dtypes and ranges are what is compared."""

import numpy as np

from . import Dtype, Row, Sample, T

ONCE = dict(others=(), layouts=False, grad=False, random=True)
SIZES = [Sample(2, 3), Sample((2, 3)), Sample(()), Sample(0), Sample(2, 3, dtype=Dtype("float64"))]
LIKE = [Sample(T(2, 3)), Sample(T()), Sample(T(0)), Sample(T(2, 3), dtype=Dtype("float64"))]
FILLED = [Sample(T(2, 3)), Sample(T()), Sample(T(0))]


def within(low, high):
    """The values drawn lie in [low, high)."""

    def check(args, kwargs, result):
        values = np.asarray(result.numpy())
        assert ((values >= low) & (values < high)).all()

    return check


def permutes(args, kwargs, result):
    assert sorted(result.tolist()) == list(range(args[0]))


ROWS = [
    Row(
        "bernoulli",
        [Sample(T(2, 3, low=0.1, high=0.9)), Sample(T(2, 3), 0.5), Sample(T(0))],
        check=within(0, 1.5),
        **ONCE,
    ),
    Row(
        "binomial", [Sample(T(values=[[3.0, 4.0, 5.0], [9.0, 0.0, 1.0]]), T(2, 3, low=0.1, high=0.9))], **ONCE
    ),
    Row("cauchy_", FILLED, **ONCE),
    Row("exponential_", FILLED, check=within(0, np.inf), **ONCE),
    Row("geometric_", [Sample(T(2, 3), 0.5), Sample(T(0), 0.5)], check=within(1, np.inf), **ONCE),
    Row("log_normal_", FILLED, check=within(0, np.inf), **ONCE),
    Row(
        "multinomial",
        [Sample(T(2, 3, low=0.1), 2), Sample(T(3, low=0.1), 5, True), Sample(T(3, low=0.1), 4)],
        check=within(0, 3),
        **ONCE,
    ),
    Row(
        "normal",
        [
            Sample(0.0, 1.0, (2, 3)),
            Sample(T(2, 3), 1.0),
            Sample(0.0, T(3, low=0.1)),
            Sample(T(2, 1), T(1, 3, low=0.1)),
        ],
        **ONCE,
    ),
    Row("normal_", FILLED, **ONCE),
    Row("poisson", [Sample(T(2, 3, low=0.1)), Sample(T(0))], check=within(0, np.inf), **ONCE),
    Row("rand", SIZES, check=within(0, 1), **ONCE),
    Row("rand_like", LIKE, check=within(0, 1), **ONCE),
    Row(
        "randint",
        [Sample(5, (2, 3)), Sample(2, 5, (2, 3)), Sample(0, 5, (0,)), Sample(5, 2, (3,))],
        check=within(0, 5),
        **ONCE,
    ),
    Row(
        "randint_like",
        [Sample(T(2, 3), 5), Sample(T(2, 3), 2, 5), Sample(T(), 5)],
        check=within(0, 5),
        **ONCE,
    ),
    Row("randn", SIZES, **ONCE),
    Row("randn_like", LIKE, **ONCE),
    Row(
        "random_",
        [*FILLED, Sample(T(2, 3), 5), Sample(T(2, 3, dtype="int64"), 2, 5)],
        check=within(0, 2**24 + 1),
        **ONCE,
    ),
    Row("randperm", [Sample(5), Sample(1), Sample(0)], check=permutes, **ONCE),
    Row("uniform_", [*FILLED, Sample(T(2, 3), 0.2, 0.4)], check=within(0, 1), **ONCE),
]
