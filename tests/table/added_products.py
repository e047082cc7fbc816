"""Rows of `xtensor/ops/linalg/added_products.py`."""

import numpy as np

from . import Row, Sample, T, matrices


def added(product, fold=False):
    """`beta * input + alpha * product(...)`, where a beta of 0 hides the input's NaNs."""

    def run(a, x, y, *, beta=1, alpha=1):
        made = alpha * product(x, y)
        made = made.sum(0) if fold else made
        return made if beta == 0 else beta * a + made

    return run


def scaled(*shapes):
    return [
        matrices(*shapes),
        matrices(*shapes, beta=0.5, alpha=2),
        matrices((), *shapes[1:], beta=0),
        Sample(T(values=np.nan, grad=False), *[T(*s) for s in shapes[1:]], beta=0),
    ]


NUMBERS = ("int64", "complex64", "bfloat16")
BATCHED = ((2, 1, 3), (2, 1, 3), (2, 3, 3))

ROWS = [
    Row("addbmm", scaled((1, 3), *BATCHED[1:]), numpy=added(np.matmul, fold=True), others=NUMBERS),
    Row(
        "addmm",
        [*scaled((2, 2), (2, 3), (3, 2)), matrices((2,), (2, 0), (0, 2))],
        numpy=added(np.matmul),
        others=NUMBERS,
    ),
    Row(
        "addmv",
        [*scaled((2,), (2, 3), (3,)), matrices((2,), (2, 0), (0,))],
        numpy=added(np.matmul),
        others=NUMBERS,
    ),
    Row("addr", scaled((2, 3), (2,), (3,)), numpy=added(np.outer), others=NUMBERS, strides=False),
    Row("baddbmm", scaled((1, 3), *BATCHED[1:]), numpy=added(np.matmul), others=NUMBERS),
]
