"""Random variables: samples, probabilities, entropies and divergences, under PyTorch's names."""

from __future__ import annotations

from . import constraints, kl
from .continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    HalfNormal,
    Laplace,
    Logistic,
    LogNormal,
    MultivariateNormal,
    Normal,
    Uniform,
)
from .discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import Distribution, Independent
from .kl import kl_divergence, register_kl

__all__ = [
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "Logistic",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "Poisson",
    "Uniform",
    "constraints",
    "kl",
    "kl_divergence",
    "register_kl",
]
