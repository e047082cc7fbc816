"""Rows of `xtensor/ops/reduce/extrema.py`."""

import numpy as np

from . import Row, Sample, T, binary

TIES = T(values=[[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]], smooth=False)
NANS = T(values=[[1.0, np.nan, 2.0], [np.nan, np.nan, 0.0]], smooth=False)
REAL = ("int64", "bool", "bfloat16")


def over(function):
    def reduced(a, dim=None, keepdim=False):
        dim = None if dim == () else dim
        return function(a, axis=dim, keepdims=keepdim)

    return reduced


def with_indices(function, indices):
    """Values and indices over one dimension, all values without one."""

    def reduced(a, dim=None, keepdim=False):
        if dim is None:
            return function(a)
        if not isinstance(dim, int):
            return np.maximum(a, dim) if function is np.max else np.minimum(a, dim)
        if a.ndim == 0:
            return a, np.zeros((), np.int64)
        return function(a, axis=dim, keepdims=keepdim), indices(a, axis=dim, keepdims=keepdim)

    return reduced


WHOLE = [Sample(T(2, 3)), Sample(TIES), Sample(NANS), Sample(T())]
ALONG = [
    Sample(T(2, 3), 1),
    Sample(TIES, 1),
    Sample(NANS, 0),
    Sample(T(2, 1, 3), -1, keepdim=True),
    Sample(T(), 0),
    Sample(T(2, 0, 3), 2),
    Sample(T(0), 0),
]
MANY = [Sample(T(2, 1, 3), (0, 2)), Sample(T(2, 1, 3), (0, 2), keepdim=True)]

ROWS = [
    Row("amax", [*ALONG, *MANY, Sample(T(2, 3))], numpy=over(np.max), others=REAL),
    Row("amin", [*ALONG, *MANY, Sample(T(2, 3))], numpy=over(np.min), others=REAL),
    Row(
        "aminmax",
        [
            Sample(T(2, 3), dim=1),
            Sample(TIES, dim=1, keepdim=True),
            Sample(NANS, dim=0),
            Sample(T(2, 3)),
            Sample(T()),
            Sample(T(0)),
        ],
        numpy=lambda a, dim=None, keepdim=False: (
            np.min(a, axis=dim, keepdims=keepdim),
            np.max(a, axis=dim, keepdims=keepdim),
        ),
        others=REAL,
    ),
    Row("argmax", [*WHOLE, *ALONG], numpy=over(np.argmax), others=REAL),
    Row("argmin", [*WHOLE, *ALONG], numpy=over(np.argmin), others=REAL),
    Row(
        "max",
        [*ALONG, *WHOLE, *binary(number=None, special=False)],
        numpy=with_indices(np.max, np.argmax),
        others=REAL,
        covers=("max_all", "max_dim"),
    ),
    Row(
        "min",
        [*ALONG, *WHOLE, *binary(number=None, special=False)],
        numpy=with_indices(np.min, np.argmin),
        others=REAL,
        covers=("min_all", "min_dim"),
    ),
]
