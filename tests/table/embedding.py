"""Rows of `xtensor/ops/index/embedding.py`."""

import numpy as np

from . import Row, Sample, T

INDICES = T(values=[[0, 2], [2, 1]], dtype="int64")

ROWS = [
    Row(
        "embedding.embedding",
        [
            Sample(INDICES, T(4, 3)),
            Sample(INDICES, T(4, 3, smooth=False), padding_idx=2),
            Sample(INDICES, T(4, 3, smooth=False), scale_grad_by_freq=True),
            Sample(INDICES, T(4, 3, smooth=False), max_norm=1.0),
            Sample(T(values=[], dtype="int64"), T(4, 3)),
            Sample(T(values=4, dtype="int64"), T(4, 3)),
        ],
        reference="nn.functional.embedding",
        numpy=lambda i, w, padding_idx=None, scale_grad_by_freq=False, max_norm=None: (
            w if max_norm is None else w / np.maximum(np.linalg.norm(w, axis=1, keepdims=True), max_norm)
        )[i],
        others=("bfloat16",),
        covers=("embedding_renorm",),
    ),
    Row(
        "one_hot",
        [Sample(INDICES), Sample(INDICES, 4), Sample(T(values=1, dtype="int64"), 3), Sample(INDICES, 2)],
        numpy=lambda i, n=-1: np.eye(n if n > 0 else i.max() + 1, dtype=np.int64)[i],
        others=(),
        meta=False,
        covers=("one_hot_kernel",),
    ),
]
