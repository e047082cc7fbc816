"""`kl_divergence`: from one distribution to another, by a table of formulas that users may add to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..linalg import solve_triangular
from ..nn.functional import softplus
from ..tensor import Tensor
from .continuous import Exponential, Laplace, MultivariateNormal, Normal, Uniform
from .discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from .distribution import Distribution, Independent, sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Tensor]
_formulas: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """A decorator that makes a function the divergence between two kinds of distributions."""
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected type_p to be a Distribution subclass but got {kind}")

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
