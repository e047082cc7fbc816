"""Rows of `xtensor/ops/tensor/export.py`."""

from . import Row, Sample, T

ROWS = [
    Row(
        "from_dlpack",
        [Sample(T(2, 3)), Sample(T()), Sample(T(0))],
        others=("int64", "bool", "complex64"),
        grad=False,
        meta=False,
    ),
    Row(
        "to_dlpack", [Sample(T(2, 3))], reference="utils.dlpack.to_dlpack", others=(), random=True, meta=False
    ),
    Row("numpy", [Sample(T(2, 3, grad=False)), Sample(T(2, 3), force=True)], grad=False, meta=False),
]
