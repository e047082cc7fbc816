"""Rows of `xtensor/ops/reduce/segments.py`."""

from . import Row, Sample, T

X = T(6, unique=True)
LENGTHS, OFFSETS = T(values=[2, 0, 4], dtype="int64"), T(values=[0, 2, 2, 6], dtype="int64")
KINDS = ("sum", "mean", "max", "min", "prod")

ROWS = [
    Row(
        "segment_reduce",
        [
            *[Sample(X, kind, lengths=LENGTHS, initial=1.0) for kind in KINDS],
            *[Sample(X, kind, offsets=OFFSETS, initial=0.5, unsafe=True) for kind in KINDS],
            Sample(T(3, 2), "sum", lengths=T(values=[[2], [2], [2]], dtype="int64"), axis=1),
            Sample(T(6, 2), "sum", lengths=LENGTHS),
            Sample(X, "sum", lengths=T(values=[2, 1], dtype="int64")),
            Sample(X, "sum"),
            Sample(X, "median", lengths=LENGTHS),
        ],
        others=("int64",),
        second=False,  # PyTorch's is not differentiable twice
        without=("out",),
        covers=("segment_reduce",),
        layouts=False,
    ),
]
