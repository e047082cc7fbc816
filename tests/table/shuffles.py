"""Rows of `xtensor/ops/shape/shuffles.py`."""

from . import OTHERS, Row, Sample, T

ROWS = [
    Row("pixel_shuffle", [Sample(T(2, 8, 3, 2), 2), Sample(T(9, 1, 2), 3), Sample(T(2, 7, 3, 2), 2)]),
    Row("pixel_unshuffle", [Sample(T(2, 3, 4, 6), 2), Sample(T(1, 3, 6), 3), Sample(T(2, 3, 4, 6), 5)]),
    Row("channel_shuffle", [Sample(T(2, 6, 3), 2), Sample(T(1, 6, 2, 2), 3), Sample(T(2, 6, 3), 4)]),
    Row(
        "native_channel_shuffle",
        [Sample(T(2, 6, 3, 2), 2)],
        reference="channel_shuffle",  # PyTorch's own has no derivative
        others=OTHERS[:1],
    ),
]
