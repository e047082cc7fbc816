"""Rows of `xtensor/ops/shape/reinterpret.py`."""

import numpy as np

from . import Row, Sample, T

VIEW = dict(others=("bool",))
COMPLEX = dict(dtype="complex64", others=("float32",))
PLAIN = [Sample(T(2, 3)), Sample(T()), Sample(T(0)), Sample(T(2, 1, 3))]

ROWS = [
    Row("adjoint", [*PLAIN, Sample(T(2, 3, dtype="complex64"))], **VIEW),
    Row("conj", PLAIN, numpy=np.conj, **COMPLEX),
    Row("imag", [Sample(T(2, 3)), Sample(T()), Sample(T(0))], numpy=np.imag, **COMPLEX),
    Row("is_conj", [Sample(T(2, 3))], **COMPLEX),
    Row("is_neg", [Sample(T(2, 3))], **COMPLEX),
    Row("real", [Sample(T(2, 3)), Sample(T()), Sample(T(0))], numpy=np.real, **COMPLEX),
    Row("resolve_conj", PLAIN, numpy=lambda a: a, **COMPLEX),
    Row("resolve_neg", PLAIN, numpy=lambda a: a, **COMPLEX),
    Row("view_as_complex", [Sample(T(3, 2)), Sample(T(2)), Sample(T(2, 3))], others=("int64",)),
    Row("view_as_real", [Sample(T(2, 3)), Sample(T()), Sample(T(0))], **COMPLEX),
]
