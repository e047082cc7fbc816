"""Rows of `xtensor/ops/index/indexing.py`."""

from . import Row, Sample, T


def at(*values):
    return T(values=list(values), dtype="int64")


ROWS = [
    Row(
        "index_put",
        [
            Sample(T(2, 3), (at(0, 1), at(2, 0)), T(2)),
            Sample(T(2, 3), (at(1, 1),), T(2, 3), True),
            Sample(T(2, 3), (None, at(0, 2)), T()),
            Sample(T(2, 3), (T(2, 3, dtype="bool"),), T()),
            Sample(T(3), (at(3),), T()),
        ],
        meta=False,
    ),
    Row(
        "__getitem__",
        [
            Sample(T(2, 3), 1),
            Sample(T(2, 3), at(1, 0)),
            Sample(T(2, 3), (slice(None), at(2, 0))),
            Sample(T(2, 3), (Ellipsis, slice(0, 2), None)),
            Sample(T(2, 3), T(2, 3, dtype="bool")),
            Sample(T(2, 3), (at(1), at(2))),
            Sample(T(2, 1, 3), (at(1, 0), slice(None), at(2, 2))),
            Sample(T(2, 3), Ellipsis),
            Sample(T(2, 3), 2),
            Sample(T(2, 3), (0, 0, 0)),
            Sample(T(), ()),
        ],
        covers=("alias", "index"),
        meta=False,
    ),
    Row(
        "masked_select",
        [
            Sample(T(2, 3), T(2, 3, dtype="bool")),
            Sample(T(2, 3), T(3, dtype="bool")),
            Sample(T(), T(dtype="bool")),
            Sample(T(0), T(0, dtype="bool")),
        ],
        numpy=lambda a, m: (
            a[m] if m.shape == a.shape else (a[..., m] if m.ndim else a.reshape(1)[m.reshape(1)]).reshape(-1)
        ),
        meta=False,
    ),
]
