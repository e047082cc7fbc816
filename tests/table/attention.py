"""Rows of `xtensor/ops/network/attention.py`."""

from . import Row, Sample, T, matrices

QKV = (2, 3, 4), (2, 5, 4), (2, 5, 4)

ROWS = [
    Row(
        "scaled_dot_product_attention",
        [
            matrices(*QKV),
            matrices((2, 3, 4), (2, 3, 4), (2, 3, 4), is_causal=True),
            matrices(*QKV, scale=0.5),
            matrices(*QKV, dropout_p=1e-12),  # the path with dropout, which drops nothing
            Sample(*[T(*s) for s in QKV], T(3, 5)),
            Sample(*[T(*s) for s in QKV], T(values=[[True, False, True, True, False]] * 3, dtype="bool")),
        ],
        others=("bfloat16",),
        covers=("attention_weights",),
    ),
]
