"""`kl_divergence`: from one distribution to another, by a table of formulas that users may add to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..linalg import solve_triangular
from ..nn.functional import softplus
from ..tensor import Tensor
from .composed import ContinuousBernoulli, LowRankMultivariateNormal
from .continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    Laplace,
    MultivariateNormal,
    Normal,
    Uniform,
)
from .counts import Binomial
from .discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import Distribution, Independent, sum_rightmost
from .gammas import Beta, Dirichlet, Gamma
from .mapped import HalfNormal, LogNormal
from .transformed import Pareto, TransformedDistribution

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Tensor]
_formulas: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """A decorator that makes a function the divergence between two kinds of distributions, of whatever classes."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorate(formula: Formula) -> Formula:
        _formulas[type_p, type_q] = formula
        return formula

    return decorate


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expectation under `p` of `p.log_prob(x) - q.log_prob(x)`."""
    fitting = [pair for pair in _formulas if isinstance(p, pair[0]) and isinstance(q, pair[1])]
    if not fitting:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    # The formula for the closest classes.
    closest = min(fitting, key=lambda pair: (type(p).__mro__.index(pair[0]), type(q).__mro__.index(pair[1])))
    return _formulas[closest](p, q)


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    first = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    return first + (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    parts = p.probs * (p.logits - q.logits)
    parts = parts.masked_fill((q.probs == 0).expand_as(parts), math.inf)
    return parts.masked_fill((p.probs == 0).expand_as(parts), 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    size = p.event_shape[0]
    shape = (p.loc + q.loc).shape[:-1]
    triangle = q.scale_tril.expand(*shape, size, size)
    mixed = solve_triangular(triangle, p.scale_tril.expand(*shape, size, size), upper=False)
    shift = solve_triangular(triangle, (q.loc - p.loc).unsqueeze(-1), upper=False)
    traces = mixed.pow(2).sum((-2, -1)) + shift.pow(2).sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (traces - size)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---- the gamma family ----------------------------------------------------------------------------------------------


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    norms = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    norms = norms - (p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma())
    one = (p.concentration1 - q.concentration1) * p.concentration1.digamma()
    zero = (p.concentration0 - q.concentration0) * p.concentration0.digamma()
    return norms + one + zero + (total_q - total_p) * total_p.digamma()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    total = p.concentration.sum(-1)
    norms = total.lgamma() - q.concentration.sum(-1).lgamma()
    norms = norms - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    slopes = p.concentration.digamma() - total.digamma().unsqueeze(-1)
    return norms + ((p.concentration - q.concentration) * slopes).sum(-1)


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    found = q.concentration * (p.rate / q.rate).log() + q.concentration.lgamma() - p.concentration.lgamma()
    found = found + (p.concentration - q.concentration) * p.concentration.digamma()
    return found + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return (
        -q.concentration * ratio.log()
        + ratio
        + q.concentration.lgamma()
        + q.concentration * EULER
        - (1 + EULER)
    )


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Tensor:
    found = -p.entropy() + (q.high - q.low).log()
    return found.masked_fill((q.low > 0) | (q.high < 1), math.inf)


# ---- counts --------------------------------------------------------------------------------------------------------


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return found.masked_fill((p.total_count > q.total_count).expand_as(found), math.inf)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _without_bound(p: Any, q: Any) -> Tensor:
    return p.rate * 0 + math.inf


# ---- the line ------------------------------------------------------------------------------------------------------

EULER = 0.57721566490153286060


def _entropies_normal(p: Any, q: Any, variance: Tensor) -> Tensor:
    """From a distribution of this variance to a normal one."""
    spread = variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * spread / q.scale.pow(2)


@register_kl(Gamma, Normal)
@register_kl(Beta, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
@register_kl(Exponential, Normal)
def _to_normal(p: Any, q: Any) -> Tensor:
    return _entropies_normal(p, q, p.variance)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    distance = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return distance.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    norms = p._log_norm() + (-p.probs).log1p() - q._log_norm() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + norms


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, low, high = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    grown = (low + (1 + ratio).lgamma() - high).exp()
    return ratio * EULER - ratio.log() - low + high + grown - (1 + EULER)


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Any, q: Any) -> Tensor:
    return _entropies_normal(p, q, (math.pi * p.scale).pow(2) / 6)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    shift = p.loc - q.loc
    ratio, z = p.scale / q.scale, shift / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.pow(2)).exp() + shift * (math.sqrt(0.5) * z).erf()
    return -ratio.log() + near / q.scale - (0.5 + 0.5 * math.log(0.5 * math.pi))


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Tensor:
    mean, spread, loc = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    found = mean - loc + (-mean + 0.5 * spread + loc).exp() - (p.scale / q.scale).log()
    return found - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Laplace, Uniform)
@register_kl(Normal, Uniform)
@register_kl(Cauchy, Uniform)
@register_kl(Gumbel, Uniform)
@register_kl(Laplace, Exponential)
@register_kl(Normal, Exponential)
@register_kl(Cauchy, Exponential)
@register_kl(Laplace, Gamma)
@register_kl(Normal, Gamma)
@register_kl(Gumbel, Gamma)
@register_kl(Laplace, Beta)
@register_kl(Normal, Beta)
def _outside(p: Any, q: Any) -> Tensor:
    return p.loc * 0 + math.inf


@register_kl(Gamma, Uniform)
@register_kl(Exponential, Uniform)
@register_kl(Gamma, Beta)
@register_kl(Exponential, Beta)
def _outside_by_rate(p: Any, q: Any) -> Tensor:
    return p.rate * 0 + math.inf


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(LogNormal, LogNormal)
def _log_normal(p: Any, q: Any) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio, alphas = p.scale / q.scale, q.alpha / p.alpha
    found = q.alpha * ratio.log() - alphas.log() + alphas - 1
    return found.masked_fill(p.scale < q.scale, math.inf)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    found = kl_divergence(p.base_dist, q.base_dist)
    return sum_rightmost(found, len(p.event_shape) - len(p.base_dist.event_shape))


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    one, two = (
        d
        if isinstance(d, MultivariateNormal)
        else MultivariateNormal(d.loc, scale_tril=d.scale_tril, validate_args=False)
        for d in (p, q)
    )
    return _multivariate(one, two)
