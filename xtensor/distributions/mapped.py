"""Distributions that are a map of another's variable and have more to say: exponentials, halves and reciprocals."""

# A property may be that of another attribute (`read`).
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

import math
from typing import Any

from ..tensor import Tensor
from . import constraints
from .continuous import Cauchy, Normal
from .distribution import read
from .gammas import Gamma
from .transformed import TransformedDistribution
from .transforms import AbsTransform, ExpTransform, PowerTransform

__all__ = ["HalfCauchy", "HalfNormal", "InverseGamma", "LogNormal"]


class LogNormal(TransformedDistribution):
    """A variable whose logarithm is normal.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 14.
    """

    base_dist: Normal
    has_rsample = True  # type: ignore[assignment]
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    loc = read("base_dist.loc")
    scale = read("base_dist.scale")

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class _Half(TransformedDistribution):
    """The absolute value of a variable that is symmetric around 0."""

    base_dist: Any
    has_rsample = True  # type: ignore[assignment]
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative

    scale = read("base_dist.scale")

    @property
    def mode(self) -> Tensor:
        return self.scale * 0

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return (self.base_dist.log_prob(value) + math.log(2)).where(value >= 0, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a normal variable with mean 0.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 13.
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute value of a Cauchy variable around 0.

    Source: Gelman 2006, Bayesian Analysis 1.
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * 0 + math.inf

    variance = read("base_dist.variance")


class InverseGamma(TransformedDistribution):
    """The reciprocal of a gamma variable.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 17.
    """

    base_dist: Gamma
    has_rsample = True  # type: ignore[assignment]
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args)

    concentration = read("base_dist.concentration")
    rate = read("base_dist.rate")

    @property
    def mean(self) -> Tensor:
        found = self.rate / (self.concentration - 1)
        return found.where(self.concentration > 1, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        found = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return found.where(self.concentration > 2, math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
