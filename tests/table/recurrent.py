"""Rows of `xtensor/ops/network/recurrent.py`."""

from . import Row, Sample, T


def stack(gates: int, states: int) -> list[Sample]:
    """A layer of hidden size 2 over sequences of 3 steps: one direction, then two, batch first."""
    hidden = T(1, 2, 2) if states == 1 else [T(1, 2, 2)] * 2
    both = T(2, 2, 2) if states == 1 else [T(2, 2, 2)] * 2
    weights = [T(2 * gates, 4), T(2 * gates, 2), T(2 * gates), T(2 * gates)]
    return [
        Sample(T(3, 2, 4), hidden, weights, True, 1, 0.0, False, False, False),
        Sample(T(2, 3, 4), both, [*weights[:2], *weights[:2]], False, 1, 0.0, False, True, True),
    ]


PACKED = Sample(
    T(4, 4),
    T(values=[2, 1, 1], dtype="int64"),
    [T(1, 2, 2)] * 2,
    [T(8, 4), T(8, 2), T(8), T(8)],
    *(True, 1, 0.0, False, False),
)

ROWS = [
    Row("rnn_tanh", stack(1, 1), others=(), strides=False, covers=("_recurrent", "_rnn_tanh_layer")),
    Row("rnn_relu", stack(1, 1), others=(), strides=False, covers=("_rnn_relu_layer",)),
    Row("gru", stack(3, 1), others=(), strides=False, covers=("_gru_layer",)),
    Row(
        "lstm",
        [PACKED, *stack(4, 2)],
        others=(),
        strides=False,
        covers=("_lstm_layer", "_packed", "_unpacked"),
    ),
]
