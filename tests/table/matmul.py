"""Rows of `xtensor/ops/matmul.py`."""

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
    Row(
        "bilinear",
        [matrices((2, 3), (2, 2), (4, 3, 2), (4,)), matrices((2, 3), (2, 2), (4, 3, 2))],
        numpy=lambda a, b, w, bias=0: np.einsum("ni,oij,nj->no", a, w, b) + bias,
        others=(),
    ),
    Row(
        "bmm",
        [matrices(*BATCHED[1:]), matrices((0, 1, 3), (0, 3, 3)), matrices((2, 3), (3, 2))],
        numpy=np.matmul,
        others=NUMBERS,
    ),
    Row("chain_matmul", [matrices((2, 3), (3, 2), (2, 3)), matrices((2, 3))], others=(), strides=False),
    Row(
        "dot",
        [matrices((3,), (3,)), matrices((0,), (0,)), matrices((2, 3), (3,)), matrices((2,), (3,))],
        numpy=np.dot,
        others=NUMBERS,
    ),
    Row(
        "inner",
        [matrices((2, 3), (3,)), matrices((2, 3), (2, 1, 3)), matrices((), (2, 3)), matrices((2,), (3,))],
        numpy=np.inner,
        others=NUMBERS,
    ),
    Row(
        "linear",
        [
            matrices((2, 3), (4, 3), (4,)),
            matrices((2, 1, 3), (4, 3)),
            matrices((3,), (4, 3), (4,)),
            matrices((2, 3), (3,)),
            matrices((0, 3), (4, 3), (4,)),
        ],
        numpy=lambda x, w, b=0: x @ w.T + b,
        others=NUMBERS,
    ),
    Row(
        "matmul",
        [
            matrices((2, 3), (3, 2)),
            matrices((2, 1, 3), (2, 3, 3)),
            matrices((2, 1, 2, 3), (2, 3, 2)),
            matrices((3,), (3,)),
            matrices((2, 3), (3,)),
            matrices((3,), (3, 2)),
            matrices((2, 1, 3), (3,)),
            matrices((3,), (2, 3, 3)),
            matrices((2, 0), (0, 3)),
            matrices((2, 3), (2, 3)),
            matrices((), (2, 3)),
        ],
        numpy=np.matmul,
        others=NUMBERS,
    ),
    Row(
        "mm",
        [
            matrices((2, 3), (3, 2)),
            matrices((2, 0), (0, 2)),
            matrices((2, 3), (2, 3)),
            matrices((3,), (3, 2)),
        ],
        numpy=np.matmul,
        others=NUMBERS,
    ),
    Row(
        "mv",
        [matrices((2, 3), (3,)), matrices((2, 0), (0,)), matrices((2, 3), (2,))],
        numpy=np.matmul,
        others=NUMBERS,
    ),
    Row("outer", [matrices((2,), (3,)), matrices((0,), (3,)), matrices((2, 3), (3,))], numpy=np.outer),
    Row(
        "vdot",
        [matrices((3,), (3,)), matrices((0,), (0,)), matrices((2, 3), (3,))],
        numpy=np.vdot,
        others=NUMBERS,
    ),
]
