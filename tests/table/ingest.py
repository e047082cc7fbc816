"""Rows of `xtensor/ops/create/ingest.py`."""

import numpy as np

from . import Dtype, Row, Sample, T

ONCE = dict(others=(), layouts=False, grad=False, meta=False)
DATA = [
    Sample([[1, 2], [3, 4]]),
    Sample([1.5, 2]),
    Sample(3),
    Sample(2.5),
    Sample([]),
    Sample([True, False]),
    Sample([1 + 2j]),
    Sample([[1, 2], [3]]),
    Sample([1, 2], dtype=Dtype("float64")),
    Sample(np.arange(6, dtype=np.int16).reshape(2, 3)),
    Sample(np.float64(1.5)),
]
BUFFER = np.arange(4, dtype=np.float32).tobytes()

ROWS = [
    Row("as_tensor", DATA, **ONCE),
    Row("asarray", DATA, **ONCE),
    Row(
        "from_numpy",
        [Sample(np.arange(6.0).reshape(2, 3)), Sample(np.array(1)), Sample(np.arange(6).reshape(2, 3).T)],
        numpy=np.array,
        **ONCE,
    ),
    Row(
        "frombuffer",
        [
            Sample(bytearray(BUFFER), dtype=Dtype("float32")),
            Sample(bytearray(BUFFER), dtype=Dtype("int32"), count=2, offset=4),
        ],
        **ONCE,
    ),
    Row("scalar_tensor", [Sample(1), Sample(2.5), Sample(True), Sample(1, dtype=Dtype("int64"))], **ONCE),
    Row("tensor", DATA, **ONCE),
    Row(
        "new_tensor",
        [Sample(T(2), [1.5, 2]), Sample(T(2), 3), Sample(T(2), [[1], [2, 3]])],
        layouts=False,
        grad=False,
        meta=False,
    ),
]
