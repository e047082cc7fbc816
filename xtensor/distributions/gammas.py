"""The gamma family: its samples follow the shape parameter with a gradient."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..autograd.function import Function, once_differentiable
from ..nn.functional import one_hot
from ..ops.create import draws
from ..ops.create.distributions import sample as draw_sample
from ..ops.create.random import randn
from ..ops.pointwise.special import xlogy
from ..ops.shape.joining import stack
from ..tensor import Tensor, array_of, wrap
from ..xla.x64 import call, jit
from . import constraints
from .continuous import LocationScale
from .distribution import Distribution, broadcast_all, read

__all__ = [
    "Beta",
    "Chi2",
    "Dirichlet",
    "FisherSnedecor",
    "Gamma",
    "StudentT",
]


def _gamma_of(seed: Any, draw: Any, shape: Any) -> Any:
    wide = np.float64 if shape.dtype == np.float64 else np.float32
    return _gamma_drawn(seed, draw, shape.astype(wide)).astype(shape.dtype), jnp.all(shape >= 0)


@draws.at_once
def _gamma_drawn(seed: Any, draw: Any, shape: Any) -> Any:
    key = jax.random.wrap_key_data(jnp.stack(draws.draw_key(seed, draw)), impl="threefry2x32")
    return jax.random.gamma(key, shape, dtype=shape.dtype)


def _slope(shape: Any, drawn: Any) -> Any:
    wide = np.float64 if shape.dtype == np.float64 else np.float32
    found = lax.random_gamma_grad(shape.astype(wide), drawn.astype(wide))  # pyright: ignore[reportCallIssue]
    return found.astype(shape.dtype)


slope = jit(_slope)


class StandardGamma(Function):
    """Gamma variables of rate 1; backward holds the cumulative probability of each draw fixed."""

    generate_vmap_rule = True
    _of_library = True

    @staticmethod
    def forward(ctx: Any, shape: Tensor) -> Tensor:
        array, _ = draw_sample("_standard_gamma", _gamma_of, [shape.contiguous()], None)
        made = wrap(array)
        ctx.save_for_backward(shape, made)
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        shape, drawn = ctx.saved_tensors
        return grad * wrap(call(slope, array_of(shape), array_of(drawn)))


def standard_gamma(shape: Tensor) -> Tensor:
    """Gamma variables of the given shapes and rate 1, above zero."""
    drawn = StandardGamma.apply(shape)
    tiny = float(np.finfo(np.float64 if drawn.dtype.itemsize == 8 else np.float32).tiny)
    return drawn.clamp(min=tiny)


def shares(shape: Tensor) -> Tensor:
    """Gamma variables along the last dimension, divided by their sum.

    In float64: of small shapes all variables of a row may be below the least float, which would make the shares equal.
    """
    drawn = standard_gamma(shape.double())
    found = (drawn / drawn.sum(-1, keepdim=True)).to(shape.dtype)
    return found.clamp(min=float(np.finfo(np.float64 if shape.dtype.itemsize == 8 else np.float32).tiny))


class Gamma(Distribution):
    """The gamma distribution with shape `concentration` and rate `rate`.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 17.
    """

    has_rsample = True
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value = value if isinstance(value, Tensor) else self.rate.new_tensor(value)
        a, b = self.concentration, self.rate
        return xlogy(a, b) + xlogy(a - 1, value) - b * value - a.lgamma()

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        from_zero, product = broadcast_all(self.concentration, self.rate * value)
        return from_zero.igamma(product)


class Chi2(Gamma):
    """The sum of `df` squared standard normal variables.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 18.
    """

    arg_constraints = {"df": constraints.positive}
    _grow = ("concentration", "rate")

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (freedom,) = broadcast_all(df)
        super().__init__(0.5 * freedom, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        return self.concentration * 2

    def __repr__(self) -> str:
        return "Chi2()"


class Dirichlet(Distribution):
    """Vectors on the simplex, with a concentration for each element.

    Source: Kotz, Balakrishnan and Johnson, Continuous Multivariate Distributions, chapter 49.
    """

    has_rsample = True
    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return shares(self.concentration.expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a = self.concentration
        return xlogy(a - 1.0, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        found = above / above.sum(-1, True)
        flat = (self.concentration < 1).all(-1, keepdim=True)
        first = one_hot(found.argmax(-1), found.shape[-1]).to(found.dtype)
        return found.where(~flat, first)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        k, a = self.concentration.size(-1), self.concentration
        total = a.sum(-1)
        found = a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma()
        return found - ((a - 1.0) * a.digamma()).sum(-1)


class Beta(Distribution):
    """Numbers between 0 and 1.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 25.
    """

    has_rsample = True
    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        both = (self.concentration1 - 1).clamp(min=0), (self.concentration0 - 1).clamp(min=0)
        found = both[0] / (both[0] + both[1])
        small = (self.concentration1 < 1) & (self.concentration0 < 1)
        return found.where(~small, (self.concentration1 >= self.concentration0).to(found.dtype))

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        both = stack([self.concentration1.expand(shape), self.concentration0.expand(shape)], -1)
        return shares(both)[..., 0]

    def _log_norm(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return a.lgamma() + b.lgamma() - (a + b).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return (
            xlogy(self.concentration1 - 1, value)
            + xlogy(self.concentration0 - 1, 1 - value)
            - self._log_norm()
        )

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        found = self._log_norm() - (a - 1) * a.digamma() - (b - 1) * b.digamma()
        return found + (a + b - 2) * (a + b).digamma()

    def __repr__(self) -> str:
        return "Beta()"


class StudentT(LocationScale):
    """Student's t distribution with `df` degrees of freedom.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 28.
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    _grow = ("_chi2",)

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, loc, scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=False)
        super().__init__(loc, scale, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.where(self.df > 1, math.nan)

    mode = read("loc")

    @property
    def variance(self) -> Tensor:
        found = (self.scale.pow(2) * self.df / (self.df - 2)).where(self.df > 2, math.inf)
        return found.where(self.df > 1, math.nan)

    def _standard(self, shape: Any) -> Tensor:
        normal = randn(tuple(shape), dtype=self.df.dtype, device=self.df.device)
        sample_shape = tuple(shape)[: len(shape) - len(self._batch_shape)]
        return normal * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        y = self._standardized(value)
        z = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        z = z + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1.0)).lgamma()
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - z

    def entropy(self) -> Tensor:
        half, above = 0.5 * self.df, 0.5 * (self.df + 1)
        beta = half.lgamma() + math.lgamma(0.5) - above.lgamma()
        return self.scale.log() + above * (above.digamma() - half.digamma()) + 0.5 * self.df.log() + beta


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared variables, each divided by its degrees of freedom.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 27.
    """

    has_rsample = True
    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return (self.df2 / (self.df2 - 2)).where(self.df2 > 2, math.nan)

    @property
    def mode(self) -> Tensor:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return found.where(self.df1 > 2, math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        found = 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4))
        return found.where(b > 4, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        one, two = (standard_gamma((df * 0.5).expand(shape)) / (df * 0.5) for df in (self.df1, self.df2))
        return one / two

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        first = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return first + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
