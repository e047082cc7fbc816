"""Rows of `xtensor/ops/network/linear_losses.py`."""

from xtensor.ops.network.linear_losses import LinearCrossEntropyOptions

from . import Row, Sample, T

X, TABLE, LABELS = T(5, 3), T(4, 3), T(values=[0, 3, 2, -100, 1], dtype="int64")
CHUNKS = LinearCrossEntropyOptions(batch_chunk_size=2)


def whole(*args, options=None, **kwargs):
    """PyTorch's without chunks, whose own derivative is not differentiable."""
    import torch

    return torch.nn.functional.linear_cross_entropy(*args, **kwargs)


ROWS = [
    Row(
        "linear_cross_entropy",
        [
            *[Sample(X, TABLE, LABELS, reduction=r) for r in ("mean", "sum", "none")],
            Sample(X, TABLE, LABELS, linear_bias=T(4), weight=T(4, low=0.1), label_smoothing=0.1),
            Sample(X, T(4, 2, 3), T(values=[[0, 1]] * 5, dtype="int64")),
            *[Sample(X, TABLE, LABELS, reduction=r, options=CHUNKS) for r in ("mean", "sum", "none")],
            Sample(X, TABLE, LABELS, linear_bias=T(4), weight=T(4, low=0.1), options=CHUNKS),
            Sample(T(3), TABLE, T(values=2, dtype="int64"), options=CHUNKS),
            Sample(T(5, 2), TABLE, LABELS),
        ],
        reference=whole,
        others=(),
        covers=("linear_cross_entropy",),
        layouts=False,
    ),
]
