"""Rows of `xtensor/ops/pointwise/polynomials.py`."""

import numpy as np
from scipy import special

from . import Row, Sample, T

DEGREES = T(values=[[0.0], [1.0], [2.0], [5.0], [9.0], [-1.0]])
POINTS = T(values=[-1.25, -1.0, -0.5, 0.0, 0.25, 1.0, 1.5])


def row(name, reference):
    """Every degree at points inside, at and outside the ends; numbers for either; 0-d and empty tensors."""
    samples = [
        Sample(POINTS, DEGREES),
        Sample(T(2, 3), 4),
        Sample(0.5, T(values=[0.0, 3.0, 8.0])),
        Sample(T(), T(values=3.0)),
        Sample(T(0), T(0)),
        Sample(0.5, 3),
    ]

    def at_whole_degrees(x, n):
        return np.where(np.asarray(n) < 0, 0, reference(np.maximum(np.asarray(n).astype(int), 0), x))

    return Row(
        f"special_{name}",
        samples,
        reference=f"special.{name}",
        numpy=at_whole_degrees,
        others=("float64", "int64", "bool"),
        tolerance=8,
    )


def third_kind(n, x):
    return special.eval_chebyu(n, x) - np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)


def fourth_kind(n, x):
    return special.eval_chebyu(n, x) + np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)


def shifted(function):
    return lambda n, x: function(n, 2 * np.asarray(x) - 1)


ROWS = [
    row("chebyshev_polynomial_t", special.eval_chebyt),
    row("chebyshev_polynomial_u", special.eval_chebyu),
    row("chebyshev_polynomial_v", third_kind),
    row("chebyshev_polynomial_w", fourth_kind),
    row("shifted_chebyshev_polynomial_t", shifted(special.eval_chebyt)),
    row("shifted_chebyshev_polynomial_u", shifted(special.eval_chebyu)),
    row("shifted_chebyshev_polynomial_v", shifted(third_kind)),
    row("shifted_chebyshev_polynomial_w", shifted(fourth_kind)),
    row("hermite_polynomial_h", special.eval_hermite),
    row("hermite_polynomial_he", special.eval_hermitenorm),
    row("laguerre_polynomial_l", special.eval_laguerre),
    row("legendre_polynomial_p", special.eval_legendre),
]
