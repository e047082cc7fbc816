"""Rows of `xtensor/ops/network/ctc.py`."""

import numpy as np

from . import Row, Sample, T

LOGS = np.log(np.random.default_rng(5).dirichlet(np.ones(4), (5, 2))).round(4).tolist()
LABELS, JOINED = T(values=[[1, 2, 2], [3, 1, 0]], dtype="int64"), T(values=[1, 2, 2, 3], dtype="int64")
X = T(values=LOGS)

ROWS = [
    Row(
        "ctc_loss",
        [
            *[Sample(X, LABELS, (5, 4), (3, 2), reduction=r) for r in ("none", "mean", "sum")],
            Sample(X, JOINED, (5, 4), (3, 1)),
            Sample(X, LABELS, (5, 4), (0, 2)),
            Sample(X, LABELS, (3, 4), (3, 2), zero_infinity=True),
            Sample(X, LABELS, (6, 4), (3, 2)),
            Sample(X, LABELS, (5, 4), (4, 2)),
            Sample(X, JOINED, (5, 4), (3, 2)),
        ],
        reference="nn.functional.ctc_loss",
        others=(),
        second=False,  # PyTorch's is not differentiable twice
        slopes=False,  # as PyTorch's, it is that of what log_softmax was given
    ),
]
