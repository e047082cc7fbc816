"""Rows of `xtensor/ops/signal/padding.py`."""

import numpy as np

from . import Row, Sample, T


def padded(a, pad, value=0):
    widths = [(0, 0)] * (a.ndim - len(pad) // 2) + [
        tuple(pad[i : i + 2]) for i in range(len(pad) - 2, -1, -2)
    ]
    return np.pad(a, widths, constant_values=value)


ROWS = [
    Row(
        "constant_pad_nd",
        [
            Sample(T(2, 3), (1, 2)),
            Sample(T(2, 3), (1, 0, 0, 2), 1.5),
            Sample(T(2, 3), (-1, 1)),
            Sample(T(0), (1, 1)),
        ],
        numpy=lambda a, pad, value=0: (
            padded(a, pad, value) if min(pad) >= 0 else padded(a[:, 1:], (0, pad[1]))
        ),
        others=("int64", "bool"),
    ),
    Row(
        "pad",
        [
            Sample(T(1, 2, 4), (1, 2), "reflect"),
            Sample(T(2, 3), (1, 2)),
            Sample(T(2, 3), (1, 0, 0, 2), value=1.5),
            Sample(T(1, 2, 4), (1, 2), "replicate"),
            Sample(T(1, 2, 4), (1, 2), "circular"),
            Sample(T(1, 1, 3, 4), (1, 2, 2, 1), "reflect"),
            Sample(T(1, 1, 3, 4), (1, 2, 0, 1), "replicate"),
            Sample(T(1, 1, 3, 4), (1, 2, 0, 1), "circular"),
            Sample(T(1, 2, 4), (4, 0), "reflect"),
        ],
        others=("bfloat16",),
        covers=("border_pad",),
    ),
]
