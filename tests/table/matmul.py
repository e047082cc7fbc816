"""Rows of `xtensor/ops/linalg/matmul.py`."""

import numpy as np

from . import Row, matrices

NUMBERS = ("int64", "complex64", "bfloat16")
BATCHED = ((2, 1, 3), (2, 1, 3), (2, 3, 3))

ROWS = [
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
