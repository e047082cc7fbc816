"""Rows of `xtensor/ops/linalg/einsum.py`."""

import numpy as np

from . import Row, Sample, T, matrices

ROWS = [
    Row(
        "einsum",
        [
            Sample("ij,jk->ik", T(2, 3), T(3, 2)),
            Sample("ii->", T(3, 3)),
            Sample("...ij,...jk", T(2, 1, 3), T(3, 2)),
            Sample("i,j", T(2), T(3)),
            Sample("ij->", T(2, 3)),
            Sample("ij,jk->ik", T(2, 3), T(2, 2)),
            Sample("ij,k->ik", T(2, 3), T(2)),
            Sample("ij,j,k->k", T(2, 3), T(3), T(2)),
            Sample("i,i,j->i", T(2), T(2), T(3)),
        ],
        numpy=np.einsum,
        others=("int64", "uint8", "bool", "complex64"),
    ),
    Row(
        "tensordot",
        [
            matrices((2, 3), (3, 2), dims=1),
            matrices((2, 3), (2, 3)),
            matrices((2, 3), (2, 3), dims=([1], [1])),
        ],
        numpy=lambda a, b, dims=2: np.tensordot(a, b, dims),
        others=("int64", "complex64"),
    ),
]
