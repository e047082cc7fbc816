"""Rows of `xtensor/ops/tensor/queries.py`."""

from . import Row, Sample, T

ONE = [Sample(T(2, 3)), Sample(T(0))]
ASKED = dict(layouts=False, grad=False, meta=False)

ROWS = [
    Row("is_complex", ONE, **ASKED),
    Row("is_floating_point", ONE, **ASKED),
    Row("is_inference", ONE, **ASKED),
    Row(
        "is_same_size",
        [Sample(T(2, 3), T(2, 3)), Sample(T(2, 3), T(3))],
        reference=lambda a, b: a.shape == b.shape,
        without=("method",),
        **ASKED,
    ),
    Row("is_signed", ONE, **ASKED),
    Row("is_storage", [Sample(T(2, 3)), Sample(1)], **ASKED),
    Row("is_tensor", [Sample(T(2, 3)), Sample(1)], **ASKED),
    Row("numel", ONE, **ASKED),
    Row(
        "result_type",
        [
            Sample(T(2, 3), T(3, dtype="float64")),
            Sample(T(2, 3), 2.5),
            Sample(T(dtype="float64"), T(3)),
            Sample(1, 2.5),
        ],
        **ASKED,
    ),
]
