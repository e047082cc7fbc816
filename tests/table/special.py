"""Rows of `xtensor/ops/pointwise/special.py`."""

import numpy as np
from scipy import special

from . import Row, Sample, T, binary, unary

REAL = ("int64", "bool", "bfloat16")
GAMMA = dict(low=0.5, high=4.0)

# PyTorch's trigamma is right to 5e-10 (scipy's polygamma agrees with ours to 1e-15).
TRIGAMMA = 200

ROWS = [
    Row("angle", unary(), numpy=lambda a: np.angle(a + 0.0)),
    Row("atan2", binary(number=None), numpy=np.arctan2, others=REAL),
    Row("conj_physical", unary(), dtype="complex64", others=("float32",), numpy=np.conj),
    Row(
        "digamma", unary(**GAMMA, special=False), numpy=special.digamma, others=REAL, grad_tolerance=TRIGAMMA
    ),
    Row("erf", unary(), numpy=special.erf, others=REAL),
    Row("erfc", unary(), numpy=special.erfc, others=REAL),
    Row(
        "erfinv",
        [*unary(low=-0.9, high=0.9), Sample(T(9, low=0.999, high=0.999999))],
        numpy=special.erfinv,
        others=REAL,
    ),
    Row("hypot", binary(number=None), numpy=np.hypot, others=REAL),
    Row("i0", unary(), numpy=special.i0, others=REAL),
    Row(
        "lgamma",
        unary(**GAMMA),
        numpy=lambda a: np.where(np.isneginf(a), np.inf, special.gammaln(a)),
        others=REAL,
        grad_tolerance=TRIGAMMA,
    ),
    Row("logaddexp", binary(number=None), numpy=np.logaddexp, others=REAL),
    Row("logaddexp2", binary(number=None), numpy=np.logaddexp2, others=REAL),
    Row(
        "logit",
        [*unary(low=0.1, high=0.9, special=False), Sample(T(values=[0.0, 0.2, 0.9, 1.0], smooth=False), 0.2)],
        numpy=lambda a, eps=None: special.logit(a if eps is None else np.clip(a, eps, 1 - eps)),
        others=REAL,
    ),
    Row(
        "mvlgamma",
        [Sample(t.args[0], 2) for t in unary(low=1.0, high=4.0, special=False)],
        numpy=special.multigammaln,
        others=("int64", "bfloat16"),
        grad_tolerance=TRIGAMMA,
        strides=False,
    ),
    Row(
        "polygamma",
        [Sample(n, t.args[0]) for t in unary(**GAMMA, special=False) for n in (1, 2)],
        numpy=special.polygamma,
        others=REAL,
    ),
    Row("sinc", unary(), numpy=np.sinc),
    Row("xlogy", binary(low=0.2), numpy=special.xlogy, others=REAL),
]
