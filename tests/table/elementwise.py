"""Rows of `xtensor/ops/pointwise/elementwise.py`."""

import numpy as np

from . import Row, Sample, T, unary

ROWS = [
    Row("acos", unary(low=-0.9, high=0.9), numpy=np.arccos),
    Row("acosh", unary(low=1.1, high=3.0), numpy=np.arccosh),
    Row("asin", unary(low=-0.9, high=0.9), numpy=np.arcsin),
    Row("asinh", unary(), numpy=np.arcsinh),
    Row("atan", unary(), numpy=np.arctan),
    Row("atanh", unary(low=-0.9, high=0.9), numpy=np.arctanh),
    Row("ceil", unary(), numpy=np.ceil),
    Row("cos", unary(), numpy=np.cos),
    Row("cosh", unary(), numpy=np.cosh),
    Row("deg2rad", unary(), numpy=np.deg2rad),
    Row("exp", unary(), numpy=np.exp),
    Row("exp2", unary(), numpy=np.exp2),
    Row("expm1", unary(), numpy=np.expm1),
    Row("floor", unary(), numpy=np.floor),
    Row("frac", unary(), numpy=lambda a: a - np.trunc(a)),
    Row("log", unary(low=0.2), numpy=np.log),
    Row("log10", unary(low=0.2), numpy=np.log10),
    Row("log1p", unary(low=-0.8), numpy=np.log1p),
    Row("log2", unary(low=0.2), numpy=np.log2),
    Row("rad2deg", unary(), numpy=np.rad2deg),
    Row("reciprocal", unary(low=0.2), numpy=np.reciprocal, others=("bool", "complex64", "bfloat16")),
    Row("round", [*unary(), Sample(T(2, 3, low=-20.0, high=20.0), decimals=1)], numpy=np.round),
    Row("rsqrt", unary(low=0.2), numpy=lambda a: 1 / np.sqrt(a)),
    Row("sigmoid", unary(), numpy=lambda a: 1 / (1 + np.exp(-a))),
    Row("sin", unary(), numpy=np.sin),
    Row("sinh", unary(), numpy=np.sinh),
    Row("sqrt", unary(low=0.2), numpy=np.sqrt),
    Row("square", unary(), numpy=np.square),
    Row("tan", unary(low=-1.2, high=1.2), numpy=np.tan),
    Row("tanh", unary(), numpy=np.tanh),
    Row("trunc", unary(), numpy=np.trunc),
]
