"""Rows of `xtensor/ops/signal/folding.py`."""

from . import Row, Sample, T

ROWS = [
    Row(
        "unfold_blocks",
        [
            Sample(T(2, 3, 5, 4), 2),
            Sample(T(2, 3, 5, 4), (2, 3), dilation=(2, 1), padding=1, stride=(1, 2)),
            Sample(T(3, 5, 4), 2),
            Sample(T(2, 3, 5, 4), 9),
        ],
        reference="nn.functional.unfold",
        others=("bfloat16", "complex64"),
        covers=("im2col",),
    ),
    Row(
        "im2col",
        [Sample(T(1, 2, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1))],
        reference="_C._nn.im2col",
        others=(),
    ),
    Row(
        "fold",
        [
            Sample(T(2, 12, 12), (5, 4), 2),
            Sample(T(2, 18, 6), (5, 4), (2, 3), dilation=(2, 1), padding=1, stride=(2, 2)),
            Sample(T(12, 12), (5, 4), 2),
            Sample(T(2, 12, 11), (5, 4), 2),
        ],
        reference="nn.functional.fold",
        others=("bfloat16", "complex64"),
        covers=("col2im",),
    ),
    Row(
        "col2im",
        [Sample(T(1, 8, 4), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1))],
        reference="_C._nn.col2im",
        others=(),
    ),
]
