"""Distributions over real numbers."""

# A property may be that of another attribute (`read`).
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

import math
from typing import Any

from ..linalg import cholesky, solve_triangular
from ..nn.functional import softplus
from ..ops.create.creation import empty, zeros
from ..ops.create.random import rand, randn
from ..ops.create.ranges import eye
from ..ops.linalg.linear_algebra import cholesky_inverse
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all, lazy_property, read

__all__ = [
    "Cauchy",
    "Exponential",
    "Gumbel",
    "Laplace",
    "Logistic",
    "MultivariateNormal",
    "Normal",
    "Uniform",
]


class LocationScale(Distribution):
    """A standard variable times `scale` plus `loc`."""

    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    def _standard(self, shape: Any) -> Tensor:
        raise NotImplementedError

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + self._standard(self._extended_shape(sample_shape)) * self.scale

    def _uniform(self, shape: Any) -> Tensor:
        """Numbers strictly between 0 and 1."""
        drawn = rand(tuple(shape), dtype=self.loc.dtype, device=self.loc.device)
        return drawn.clamp(1e-7, 1 - 1e-7)

    mean = mode = read("loc")

    def _standardized(self, value: Tensor) -> Tensor:
        self._check(value)
        return (value - self.loc) / self.scale


class Normal(LocationScale):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 13.
    """

    def _standard(self, shape: Any) -> Tensor:
        return randn(tuple(shape), dtype=self.loc.dtype, device=self.loc.device)

    stddev = read("scale")

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2)

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standardized(value)
        return -(z**2) / 2 - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + (self._standardized(value) / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Laplace(LocationScale):
    """The Laplace distribution.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 24.
    """

    def _standard(self, shape: Any) -> Tensor:
        centred = 2 * self._uniform(shape) - 1
        return -centred.sign() * (-centred.abs()).log1p()

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    def log_prob(self, value: Tensor) -> Tensor:
        return -(2 * self.scale).log() - self._standardized(value).abs()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standardized(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        centred = value - 0.5
        return self.loc - self.scale * centred.sign() * (-2 * centred.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(LocationScale):
    """The Cauchy distribution, which has no mean.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 16.
    """

    def _standard(self, shape: Any) -> Tensor:
        return empty(tuple(shape), dtype=self.loc.dtype, device=self.loc.device).cauchy_()

    @property
    def mean(self) -> Tensor:
        return self.loc * float("nan")

    @property
    def variance(self) -> Tensor:
        return self.loc * 0 + float("inf")

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - (self._standardized(value) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self._standardized(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(LocationScale):
    """The Gumbel distribution.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 22.
    """

    def _standard(self, shape: Any) -> Tensor:
        return -(-self._uniform(shape).log()).log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * 0.57721566490153286060

    @property
    def variance(self) -> Tensor:
        return (math.pi / math.sqrt(6) * self.scale).pow(2)

    def cdf(self, value: Tensor) -> Tensor:
        return (-(-self._standardized(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def log_prob(self, value: Tensor) -> Tensor:
        y = -self._standardized(value)
        return y - y.exp() - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + 0.57721566490153286060)


class Logistic(LocationScale):
    """The logistic distribution (in PyTorch a transformed one).

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 23.
    """

    def _standard(self, shape: Any) -> Tensor:
        return self._uniform(shape).logit()

    @property
    def variance(self) -> Tensor:
        return (math.pi * self.scale).pow(2) / 3

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standardized(value)
        return -z - 2 * softplus(-z) - self.scale.log()


class Uniform(Distribution):
    """Numbers from `low` up to `high`, all as likely.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 26.
    """

    has_rsample = True
    arg_constraints = {"low": constraints.real, "high": constraints.real}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args)
        if self._validate_args and not (self.low < self.high).all():
            raise ValueError("Uniform is not defined when low>= high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.interval(self.low, self.high)

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return self.low + rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = (value >= self.low) & (value < self.high)
        return inside.type_as(self.low).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(Distribution):
    """The time to the next event, of which `rate` happen in a unit of time.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 19.
    """

    has_rsample = True
    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return empty(shape, dtype=self.rate.dtype, device=self.rate.device).exponential_() / self.rate

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return self.rate * 0

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()


def precision_to_scale_tril(P: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of P, which is not formed: flipped, P's own factor is its inverse."""
    factor = cholesky(P.flip(-2, -1)).flip(-2, -1).mT
    return solve_triangular(factor, eye(P.shape[-1], dtype=P.dtype, device=P.device), upper=False)


def triangle_of(
    covariance: Tensor | None, precision: Tensor | None, scale: Tensor | None, what: str
) -> Tensor:
    """The Cholesky factor of covariances, of which one form is given; `what` it is in errors."""
    given = [m for m in (covariance, precision, scale) if m is not None]
    if len(given) != 1:
        raise ValueError(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    if given[0].dim() < 2:
        raise ValueError(f"{what} must be at least two-dimensional, with optional leading batch dimensions")
    if scale is not None:
        return scale
    return cholesky(given[0]) if precision is None else precision_to_scale_tril(given[0])


class MultivariateNormal(Distribution):
    """Normal vectors with a mean and a covariance matrix, its inverse, or its Cholesky factor.

    Source: Kotz, Balakrishnan and Johnson, Continuous Multivariate Distributions, chapter 45.
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    _given = "scale_tril"
    _stay = ("_given", "_unbroadcasted_scale_tril")

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        triangle = triangle_of(covariance_matrix, precision_matrix, scale_tril, "the matrix")
        size = loc.shape[-1]
        batch = (zeros(tuple(loc.shape[:-1])) + zeros(tuple(triangle.shape[:-2]))).shape
        self.loc = loc.expand(*batch, size)
        names = ("covariance_matrix", "precision_matrix", "scale_tril")
        for name, matrix in zip(names, (covariance_matrix, precision_matrix, scale_tril)):
            if matrix is not None:
                setattr(self, name, matrix.expand(*batch, size, size))
                self._given = name
        super().__init__(batch, (size,), validate_args)
        self._unbroadcasted_scale_tril = triangle

    def __repr__(self) -> str:
        given = self._given
        return f"{type(self).__name__}(loc: {self.loc.shape}, {given}: {getattr(self, given).shape})"

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._unbroadcasted_scale_tril.expand(*self._batch_shape, *self._event_shape * 2)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        triangle = self._unbroadcasted_scale_tril
        return (triangle @ triangle.mT).expand(*self._batch_shape, *self._event_shape * 2)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return cholesky_inverse(self._unbroadcasted_scale_tril).expand(
            *self._batch_shape, *self._event_shape * 2
        )

    mean = mode = read("loc")

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(*self._batch_shape, *self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        drawn = randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        difference = (value - self.loc).unsqueeze(-1)
        triangle = self.scale_tril.expand(*difference.shape[:-2], *self.scale_tril.shape[-2:])
        distance = solve_triangular(triangle, difference, upper=False).pow(2).sum((-2, -1))
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
