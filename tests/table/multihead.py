"""Rows of `xtensor/ops/network/multihead.py`."""

from . import Row, Sample, T

WEIGHTS = (T(12, 4), T(12), None, None, False, 0.0, T(4, 4), T(4))
MASK = T(values=[[False, True, False], [False, False, True]], dtype="bool")
Q, K = T(2, 3, 4), T(3, 3, 4)


def call(q, k, v, weights=WEIGHTS, **options):
    return Sample(q, k, v, 4, 2, *weights, **options)


ROWS = [
    Row(
        "multi_head_attention_forward",
        [
            call(Q, K, K),
            call(Q, K, K, need_weights=False),
            call(Q, K, K, attn_mask=MASK, average_attn_weights=False),
            call(Q, K, K, key_padding_mask=T(values=[[False, True, False]] * 3, dtype="bool")),
            call(T(2, 4), T(3, 4), T(3, 4), attn_mask=T(2, 3)),
            call(Q, K, K, (T(12, 4), T(12), T(1, 1, 4), T(1, 1, 4), True, 0.0, T(4, 4), T(4)), attn_mask=T(2, 3)),
            call(
                Q, T(3, 3, 2), T(3, 3, 5), (None, *WEIGHTS[1:]), use_separate_proj_weight=True,
                q_proj_weight=T(4, 4), k_proj_weight=T(4, 2), v_proj_weight=T(4, 5), need_weights=False,
            ),
            call(Q, K, T(2, 3, 4)),
            call(Q, T(3, 4), K),
        ],
        reference="nn.functional.multi_head_attention_forward",
        others=("bfloat16",),
        layouts=False,
        strides=False,
        grad_tolerance=8.0,
    ),
]  # fmt: skip
