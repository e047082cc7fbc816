"""Rows of `xtensor/ops/pointwise/activations.py`."""

import numpy as np
from scipy import special

from . import Row, Sample, T, bridge, unary

HALF = ("int64", "bfloat16")
KINKS = T(values=[-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, np.inf, -np.inf, np.nan], smooth=False)


def pointwise(*options, **named):
    """The usual samples, the usual kinks, and further options."""
    return [
        *unary(special=False),
        Sample(KINKS),
        *(Sample(KINKS, *o) for o in options),
        *(Sample(KINKS, **n) for n in named.values()),
    ]


def log_softmax(a, axis=None):
    shifted = a - a.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def soft(function):
    return lambda a, dim, dtype=None: function(a, axis=dim) if a.ndim else function(a)


SOFT = [
    Sample(T(2, 3), 1),
    Sample(T(values=[[1.0, np.inf], [-np.inf, -np.inf], [1e4, -1e4]], smooth=False), 0),
    Sample(T(2, 1, 3), -1),
    Sample(T(2, 1, 3), 0),
    Sample(T(), 0),
    Sample(T(0), 0),
    Sample(T(2, 0), 0),
]


ROWS = [
    Row(
        "elu",
        pointwise((0.5,)),
        numpy=lambda a, alpha=1.0: np.where(a > 0, a, alpha * np.expm1(np.minimum(a, 0))),
        others=HALF,
    ),
    Row(
        "gelu",
        [
            *unary(special=False),
            Sample(T(values=[-3.0, -0.5, 0.0, 1.0, 6.0, np.nan], smooth=False)),
            Sample(T(2, 3), approximate="tanh"),
            Sample(T(2, 3), approximate="no"),
        ],
        # PyTorch writes nothing to a strided `out`, and says NaN at infinity.
        reference=lambda a, approximate="none": bridge.torch.nn.functional.gelu(a, approximate=approximate),
        numpy=lambda a, approximate="none": (
            a * special.ndtr(a)
            if approximate == "none"
            else 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))
        ),
        others=HALF,
    ),
    Row(
        "glu",
        [Sample(T(2, 4)), Sample(T(4, 3), 0), Sample(T(2, 3)), Sample(T(0))],
        numpy=lambda a, dim=-1: np.split(a, 2, dim)[0] * special.expit(np.split(a, 2, dim)[1]),
        others=HALF,
        strides=False,
    ),
    Row(
        "hardshrink",
        pointwise((1.0,)),
        numpy=lambda a, bound=0.5: np.where(np.abs(a) <= bound, 0, a),
        others=HALF,
    ),
    # PyTorch's sixth is a float's in the gradient of doubles, too.
    Row(
        "hardsigmoid",
        pointwise(),
        numpy=lambda a: np.clip(a / 6 + 0.5, 0, 1),
        others=HALF,
        grad_tolerance=20_000,
    ),
    Row("hardswish", pointwise(), numpy=lambda a: a * np.clip(a + 3, 0, 6) / 6, others=HALF),
    Row(
        "hardtanh",
        pointwise((-0.5, 0.5)),
        numpy=lambda a, low=-1.0, high=1.0: np.clip(a, low, high),
        others=HALF,
    ),
    Row("leaky_relu", pointwise((0.2,)), numpy=lambda a, s=0.01: np.where(a > 0, a, s * a), others=HALF),
    Row("log_softmax", SOFT, numpy=soft(log_softmax), others=HALF),
    Row("logsigmoid", pointwise(), numpy=lambda a: -np.logaddexp(0, -a), others=HALF, strides=False),
    Row("mish", pointwise(), numpy=lambda a: a * np.tanh(np.logaddexp(0, a)), others=HALF),
    Row("relu", pointwise(), numpy=lambda a: np.maximum(a, 0), others=HALF),
    Row("silu", pointwise(), numpy=lambda a: a * special.expit(a), others=HALF),
    Row("softmax", SOFT, numpy=soft(special.softmax), others=HALF),
    Row(
        "softplus",
        pointwise((2.0, 1.0)),
        numpy=lambda a, b=1.0, t=20.0: np.where(a * b > t, a, np.logaddexp(0, a * b) / b),
        others=HALF,
    ),
    Row(
        "softshrink",
        pointwise((1.0,)),
        numpy=lambda a, bound=0.5: np.sign(a) * np.maximum(np.abs(a) - bound, 0),
        others=HALF,
    ),
]
