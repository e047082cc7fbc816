"""Rows of `xtensor/ops/metadata.py`."""

from . import Row, Sample, T

PLAIN = [Sample(T(2, 3)), Sample(T()), Sample(T(0)), Sample(T(2, 1, 3))]
VIEW = dict(others=("bool",))

ROWS = [
    Row("detach", PLAIN, numpy=lambda a: a, **VIEW),
]
