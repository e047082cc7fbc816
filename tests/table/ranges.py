"""Rows of `xtensor/ops/create/ranges.py`."""

import numpy as np

from . import Dtype, Row, Sample, T, binary

ONCE = dict(others=(), layouts=False, grad=False)
SPACED = [
    Sample(0, 1, 5),
    Sample(3.0, -2.5, 7),
    Sample(1, 2, 1),
    Sample(1, 2, 0),
    Sample(0, 10, 5, dtype=Dtype("int64")),
    Sample(0, 1, 3, dtype=Dtype("float64")),
]
CORNERS = [Sample(3, 3), Sample(2, 4, 1), Sample(4, 2, -1), Sample(0, 2)]


def from_parts(real, imag):
    """`real + 1j * imag` makes NaNs of infinities."""
    made = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.result_type(real, np.complex64))
    made.real, made.imag = real, imag
    return made


ROWS = [
    Row(
        "arange",
        [
            Sample(5),
            Sample(1, 4),
            Sample(1.0, 2.5, 0.5),
            Sample(5, 0, -2),
            Sample(0),
            Sample(3, dtype=Dtype("float64")),
            Sample(1, 0),
        ],
        numpy=lambda *a, dtype=None: np.arange(*a),
        **ONCE,
    ),
    Row("complex", binary(number=None), numpy=from_parts, others=("float64",)),
    Row(
        "eye",
        [Sample(3), Sample(2, 3), Sample(0), Sample(2, dtype=Dtype("int64"))],
        numpy=lambda n, m=None, dtype=None: np.eye(n, m),
        **ONCE,
    ),
    Row("linspace", SPACED, numpy=lambda a, b, n, dtype=None: np.linspace(a, b, n), **ONCE),
    Row(
        "logspace",
        [Sample(0, 1, 5), Sample(-1.0, 1.0, 3), Sample(0, 3, 4, base=2), Sample(1, 2, 0)],
        numpy=lambda a, b, n, base=10.0: np.logspace(a, b, n, base=base),
        **ONCE,
    ),
    Row(
        "meshgrid",
        [
            Sample(T(2), T(3), indexing="ij"),
            Sample(T(2), T(3), indexing="xy"),
            Sample(T(2), T(), indexing="ij"),
        ],
        numpy=np.meshgrid,
        others=("int64",),
    ),
    Row(
        "polar",
        binary(number=None, special=False),
        numpy=lambda a, b: a * np.exp(1j * b),
        others=("float64",),
    ),
    Row("range", [Sample(1, 4), Sample(0.0, 1.0, 0.5)], **ONCE),
    Row("tril_indices", CORNERS, numpy=lambda r, c, k=0: np.stack(np.tril_indices(r, k, c)), **ONCE),
    Row("triu_indices", CORNERS, numpy=lambda r, c, k=0: np.stack(np.triu_indices(r, k, c)), **ONCE),
    Row(
        "vander",
        [Sample(T(3)), Sample(T(3), 2), Sample(T(3), 4, True), Sample(T(0))],
        numpy=np.vander,
        others=("int64",),
    ),
]
