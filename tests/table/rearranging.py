"""Rows of `xtensor/ops/shape/rearranging.py`."""

import numpy as np

from . import Row, Sample, T

PLAIN = dict(others=("bool", "int64"))
TRIANGLES = [
    Sample(T(2, 3)),
    Sample(T(2, 3), 1),
    Sample(T(3, 2), -1),
    Sample(T(2, 2, 3), 0),
    Sample(T(0, 3)),
    Sample(T(3)),
]

ROWS = [
    Row(
        "diag",
        [Sample(T(3)), Sample(T(2, 3)), Sample(T(3), 1), Sample(T(2, 3), -1), Sample(T(2, 1, 3))],
        numpy=np.diag,
        **PLAIN,
    ),
    Row("diag_embed", [Sample(T(2, 3)), Sample(T(3), 1), Sample(T(2, 3), -1, 0, 2), Sample(T(0))], **PLAIN),
    Row("diagflat", [Sample(T(3)), Sample(T(2, 3), 1), Sample(T())], numpy=np.diagflat, **PLAIN),
    Row(
        "flip",
        [
            Sample(T(2, 3), (0,)),
            Sample(T(2, 3), (0, 1)),
            Sample(T(), ()),
            Sample(T(0), (0,)),
            Sample(T(2, 3), (0, 0)),
        ],
        numpy=np.flip,
        **PLAIN,
        strides=False,
    ),
    Row("fliplr", [Sample(T(2, 3)), Sample(T(3))], numpy=np.fliplr, **PLAIN, strides=False),
    Row("flipud", [Sample(T(2, 3)), Sample(T())], numpy=np.flipud, **PLAIN, strides=False),
    Row(
        "repeat",
        [
            Sample(T(2, 3), (2, 2)),
            Sample(T(3), (2, 1, 2)),
            Sample(T(2, 3), (0, 1)),
            Sample(T(), (3,)),
            Sample(T(2, 3), (2,)),
        ],
        reference="Tensor.repeat",
        numpy=np.tile,
        **PLAIN,
    ),
    Row(
        "repeat_interleave",
        [
            Sample(T(2, 3), 2),
            Sample(T(2, 3), 2, 1),
            Sample(T(2, 3), T(values=[1, 3], dtype="int64"), 0),
            Sample(T(values=[1, 0, 2], dtype="int64")),
            Sample(T(0), 2),
        ],
        numpy=lambda a, n=None, dim=None: (
            np.repeat(np.arange(len(a)), a) if n is None else np.repeat(a, n, dim)
        ),
        covers=("repeat_elements",),
        meta=False,
        **PLAIN,
    ),
    Row(
        "roll",
        [
            Sample(T(2, 3), 1),
            Sample(T(2, 3), 1, 1),
            Sample(T(2, 3), (1, -1), (0, 1)),
            Sample(T(0), 1),
            Sample(T(), 1),
        ],
        numpy=lambda a, n, dim=None: np.roll(a, n, dim),
        **PLAIN,
    ),
    Row(
        "rot90",
        [
            Sample(T(2, 3)),
            Sample(T(2, 3), 2),
            Sample(T(2, 3), -1),
            Sample(T(2, 1, 3), 1, (0, 2)),
            Sample(T(2, 3), 4),
        ],
        numpy=np.rot90,
        **PLAIN,
        strides=False,
    ),
    Row("tile", [Sample(T(2, 3), (2,)), Sample(T(3), (2, 2)), Sample(T(), (2,))], numpy=np.tile, **PLAIN),
    Row("trace", [Sample(T(2, 3)), Sample(T(0, 0)), Sample(T(3))], numpy=np.trace),
    Row("tril", TRIANGLES, numpy=np.tril, **PLAIN),
    Row("triu", TRIANGLES, numpy=np.triu, **PLAIN),
]
