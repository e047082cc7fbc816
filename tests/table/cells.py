"""Rows of `xtensor/ops/network/cells.py`."""

from . import Row, Sample, T

CELL = (T(3, 4), T(3, 2))


def cell(gates: int) -> list[Sample]:
    """A cell of hidden size 2 over inputs of size 4, with and without biases."""
    weights = (T(2 * gates, 4), T(2 * gates, 2))
    return [
        Sample(*CELL, *weights, T(2 * gates), T(2 * gates)),
        Sample(*CELL, *weights),
    ]


ROWS = [
    Row("rnn_tanh_cell", cell(1), others=(), strides=False),
    Row("rnn_relu_cell", cell(1), others=(), strides=False),
    Row("gru_cell", cell(3), others=(), strides=False),
    Row(
        "lstm_cell",
        [
            Sample(T(3, 4), [T(3, 2), T(3, 2)], T(8, 4), T(8, 2), T(8), T(8)),
            Sample(T(3, 4), [T(3, 2), T(3, 2)], T(8, 4), T(8, 2)),
        ],
        others=(),
        strides=False,
    ),
]
