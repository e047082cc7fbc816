"""Rows of `xtensor/ops/reduce/reductions.py`."""

import numpy as np
from scipy import special

from . import Dtype, Row, Sample, T, reducing

NANS = Sample(T(values=[[1.0, np.nan, 2.0], [0.0, 0.0, 3.0]], smooth=False), 1)
ZEROS = Sample(T(values=[[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]], smooth=False), 1)


def over(function, **options):
    """A NumPy reduction under PyTorch's names."""

    def reduced(a, dim=None, keepdim=False, **kwargs):
        return function(a, axis=dim, keepdims=keepdim, **options, **kwargs)

    return reduced


def spread(function):
    def reduced(a, dim=None, unbiased=True, keepdim=False, correction=None):
        ddof = correction if correction is not None else int(unbiased)
        return function(a, axis=dim, ddof=ddof, keepdims=keepdim)

    return reduced


def both(function):
    return lambda a, *args, keepdim=False, **kwargs: (
        spread(function)(a, *args, keepdim=keepdim, **kwargs),
        np.mean(a, axis=args[0] if args else None, keepdims=keepdim),
    )


SPREAD = [
    Sample(T(2, 3)),
    Sample(T(2, 3), 1),
    Sample(T(2, 1, 3), (0, 2), keepdim=True),
    Sample(T(2, 3), 0, correction=0),
    Sample(T(2, 3), 1, unbiased=False),
    Sample(T()),
    Sample(T(0)),
]

ROWS = [
    Row("all", reducing(), numpy=over(np.all)),
    Row("any", reducing(), numpy=over(np.any)),
    Row(
        "count_nonzero",
        [ZEROS, Sample(T(2, 3)), Sample(T()), Sample(T(0)), Sample(T(2, 1, 3), (0, 2))],
        numpy=lambda a, dim=None: np.count_nonzero(a, axis=dim),
    ),
    Row(
        "logsumexp",
        [
            Sample(T(2, 3), 1),
            Sample(T(2, 1, 3), (0, 2), keepdim=True),
            Sample(T(), 0),
            Sample(T(2, 0, 3), 2),
            Sample(T(values=[[1.0, -np.inf], [-np.inf, -np.inf], [np.inf, 1.0]], smooth=False), 1),
        ],
        numpy=lambda a, dim, keepdim=False: special.logsumexp(
            a, axis=dim if a.ndim else None, keepdims=keepdim
        ),
    ),
    Row("mean", [*reducing(), Sample(T(2, 3), 1, dtype=Dtype("float64"))], numpy=over(np.mean)),
    Row("nanmean", [*reducing(), NANS], numpy=over(np.nanmean)),
    Row("nansum", [*reducing(), NANS], numpy=over(np.nansum)),
    Row(
        "prod",
        [*reducing(many=False), ZEROS, Sample(T(2, 3), 1, dtype=Dtype("float64"))],
        numpy=over(np.prod),
    ),
    Row("std", SPREAD, numpy=spread(np.std), covers=("std_dims",)),
    Row("std_mean", SPREAD[:-2], numpy=both(np.std), covers=("std_mean_dims",), without=("out",)),
    Row("sum", [*reducing(), Sample(T(2, 3), 1, dtype=Dtype("float64")), NANS], numpy=over(np.sum)),
    Row("var", SPREAD, numpy=spread(np.var), covers=("var_dims",)),
    Row("var_mean", SPREAD[:-2], numpy=both(np.var), covers=("var_mean_dims",), without=("out",)),
]
