"""Rows of `xtensor/ops/reduce/hashing.py`."""

from . import Row, Sample, T, reducing

ROWS = [
    Row(
        "hash_tensor",
        [*reducing(), Sample(T(3, 4), mode=1), Sample(T(0, 3)), Sample(T(0, 3), 0)],
        others=("int64", "bool", "bfloat16", "float16", "float64", "uint8", "complex64"),
        outs=("right",),
    ),
]
