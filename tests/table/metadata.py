"""Rows of `xtensor/ops/shape/metadata.py`."""

from . import Row, Sample, T

PLAIN = [Sample(T(2, 3)), Sample(T()), Sample(T(0)), Sample(T(2, 1, 3))]
VIEW = dict(others=("bool",))

ROWS = [
    Row(
        "resize_",
        [Sample(T(2, 3, grad=False), 3, 2), Sample(T(2, 3, grad=False), (2,)), Sample(T(), 1, 1)],
        layouts=False,  # what memory there is beyond the elements, is not for comparing
        grad=False,
    ),
    # No layouts: what PyTorch finds in memory that grows is anything.
    Row("resize_as_", [Sample(T(2, 3), T(3, 2)), Sample(T(2, 3), T())], grad=False, layouts=False),
    Row("set_", [Sample(T(2, 3), T(4)), Sample(T(2, 3))], grad=False, meta=False),
    Row("detach", PLAIN, numpy=lambda a: a, **VIEW),
]
