"""Distributions of mapped variables, and those that are defined so."""

# A property may be that of another attribute (`read`).
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..ops.create.creation import full_like, ones_like
from ..ops.create.random import rand
from ..tensor import Size, Tensor
from . import constraints
from .continuous import Exponential, Normal, Uniform
from .discrete import ByOdds, Categorical, OfCategorical
from .distribution import Distribution, Independent, broadcast_all, read, sum_rightmost
from .transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    StickBreakingTransform,
    Transform,
)

__all__ = [
    "Kumaraswamy",
    "LogisticNormal",
    "Pareto",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "TransformedDistribution",
    "Weibull",
]


class TransformedDistribution(Distribution):
    """What maps make of another distribution's variable."""

    arg_constraints = {}

    def __init__(
        self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None
    ) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dim = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        made = whole.forward_shape(shape)
        grown = whole.inverse_shape(made)
        if tuple(shape) != tuple(grown):
            base_distribution = base_distribution.expand(grown[: len(grown) - base_dim])
        more = whole.domain.event_dim - base_dim
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        change = whole.codomain.event_dim - whole.domain.event_dim
        dim = max(whole.codomain.event_dim, base_dim + change)
        super().__init__(made[: len(made) - dim], made[len(made) - dim :], validate_args)

    def _wider(self, home: Any, shape: Size) -> dict[str, Any]:
        inner = ComposeTransform(self.transforms).inverse_shape(shape + self.event_shape)
        base = self.base_dist.expand(inner[: len(inner) - len(self.base_dist.event_shape)])
        return {"base_dist": base, "transforms": self.transforms}

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:  # type: ignore[override]
        if not self.transforms:
            return self.base_dist.support
        found, dim = self.transforms[-1].codomain, len(self.event_shape)
        return constraints.independent(found, dim - found.event_dim) if dim > found.event_dim else found

    has_rsample = read("base_dist.has_rsample")

    def _mapped(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._mapped(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._mapped(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        dim, found, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dim += transform.domain.event_dim - transform.codomain.event_dim
            stretched = transform.log_abs_det_jacobian(x, y)
            found = found - sum_rightmost(stretched, dim - transform.domain.event_dim)
            y = x
        return found + sum_rightmost(self.base_dist.log_prob(y), dim - len(self.base_dist.event_shape))

    def _turned(self, value: Tensor) -> Tensor:
        """Probabilities counted from the other end where the maps fall."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._mapped(self.base_dist.icdf(self._turned(value)))


class _ByParameters(TransformedDistribution):
    """One whose maps hold the parameters, so that a larger batch needs other maps."""

    def _wider(self, home: Any, shape: Size) -> dict[str, Any]:
        return vars(home(**Distribution._wider(self, home, shape), validate_args=False))


class Kumaraswamy(_ByParameters):
    """Numbers between 0 and 1, much as of a beta distribution.

    Source: Kumaraswamy 1980, Journal of Hydrology 46.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            full_like(self.concentration0, 0), full_like(self.concentration0, 1), validate_args=validate_args
        )
        maps = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, maps, validate_args)

    def _moment(self, n: int) -> Tensor:
        arg = 1 + n / self.concentration1
        return (arg.lgamma() + self.concentration0.lgamma() - (arg + self.concentration0).lgamma()).exp() * (
            self.concentration0
        )

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        found = (a.reciprocal() * (-b).log1p() - (-a * b).log1p()).exp()
        return found.masked_fill((b < 1) | (a < 1), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        t1, t0 = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = (self.concentration0 + 1).digamma() + 0.57721566490153286060
        return t0 + t1 * harmonic - self.concentration1.log() - self.concentration0.log()


class Pareto(_ByParameters):
    """Numbers from `scale` on with a power's tail.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 20.
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)], validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = read("scale")

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(_ByParameters):
    """The time to failure where failures grow with a power of time.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, chapter 21.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(ones_like(self.scale), validate_args=validate_args)
        maps = [PowerTransform(self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, maps, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        second = (1 + 2 * self.concentration_reciprocal).lgamma().exp()
        return self.scale.pow(2) * (second - (2 * (1 + self.concentration_reciprocal).lgamma()).exp())

    def entropy(self) -> Tensor:
        euler = 0.57721566490153286060
        return (
            euler * (1 - self.concentration_reciprocal)
            + (self.scale * self.concentration_reciprocal).log()
            + 1
        )


class LogisticNormal(TransformedDistribution):
    """Vectors on the simplex whose log-odds are normal.

    Source: Aitchison and Shen 1980, Biometrika 67.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base: Any = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = read("base_dist.base_dist.loc")
    scale = read("base_dist.base_dist.scale")


class LogitRelaxedBernoulli(ByOdds):
    """The log-odds of `RelaxedBernoulli`."""

    has_rsample = True
    support = constraints.real
    _stay = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        eps = dtypes.finfo(self.given.dtype).eps
        probs = self.probs.expand(shape).clamp(eps, 1 - eps)
        u = rand(shape, dtype=probs.dtype, device=probs.device).clamp(eps, 1 - eps)
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        if not isinstance(self.temperature, Tensor):
            return math.log(self.temperature) + difference - 2 * difference.exp().log1p()
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class _Relaxed(TransformedDistribution):
    """A distribution whose temperature and weights are those of the one that it transforms."""

    has_rsample = True  # type: ignore[assignment]

    temperature = read("base_dist.temperature")
    logits = read("base_dist.logits")
    probs = read("base_dist.probs")


class RelaxedBernoulli(_Relaxed):
    """Numbers between 0 and 1 that come close to a Bernoulli variable's as the temperature falls, with a gradient.

    Source: Maddison, Mnih and Teh 2017, arXiv:1611.00712.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


class ExpRelaxedCategorical(OfCategorical):
    """The logarithm of `RelaxedOneHotCategorical`."""

    has_rsample = True
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    _stay = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical, self.temperature = Categorical(probs, logits), temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        info = dtypes.finfo(self.logits.dtype)
        u = rand(shape, dtype=self.logits.dtype, device=self.logits.device).clamp(info.tiny, 1 - info.eps)
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        count = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        temperature = (
            self.temperature if isinstance(self.temperature, Tensor) else logits.new_tensor(self.temperature)
        )
        scale = math.lgamma(count) + temperature.log() * (count - 1)
        score = logits - value.mul(temperature)
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(_Relaxed):
    """Vectors on the simplex that come close to one-hot ones as the temperature falls, with a gradient.

    Source: Maddison, Mnih and Teh 2017, arXiv:1611.00712.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
