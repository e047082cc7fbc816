"""Rows of `xtensor/ops/index/bags.py`."""

from . import Row, Sample, T

TABLE, NUMBERS = T(5, 3, unique=True), T(values=[0, 1, 4, 4, 2, 0], dtype="int64")
OFFSETS = T(values=[0, 2, 2, 5], dtype="int64")
WEIGHTS = T(6)


def at(*values):
    return T(values=list(values), dtype="int64")


ROWS = [
    Row(
        "bags.embedding_bag",
        [
            *[Sample(NUMBERS, TABLE, OFFSETS, mode=mode) for mode in ("sum", "mean", "max")],
            *[Sample(NUMBERS, TABLE, OFFSETS, mode=mode, padding_idx=4) for mode in ("sum", "mean", "max")],
            Sample(NUMBERS, TABLE, OFFSETS, mode="sum", per_sample_weights=WEIGHTS),
            Sample(NUMBERS, TABLE, at(0, 3, 6), include_last_offset=True),
            Sample(T(values=[[0, 1], [4, 4]], dtype="int64"), TABLE),
            Sample(at(0, 5), TABLE, at(0)),
            Sample(at(0, 1), TABLE, at(0, 3)),
            Sample(at(0, 1), TABLE, at(1)),
            Sample(at(0, 1), TABLE, at(0), max_norm=1.0),
        ],
        reference="nn.functional.embedding_bag",
        others=("bfloat16",),
        second=False,  # PyTorch's is not differentiable twice
        covers=("bags",),
    ),
]
