"""Distributions of counts: of successes, of failures, of each class."""

from __future__ import annotations

from typing import Any

from ..nn.functional import logsigmoid
from ..ops.create.creation import zeros
from ..ops.create.distributions import binomial, poisson
from ..ops.create.ranges import arange
from ..tensor import Tensor
from . import constraints
from .discrete import ByOdds, Categorical, OfCategorical, either
from .distribution import Distribution, broadcast_all, read
from .gammas import Gamma

__all__ = ["Binomial", "Multinomial", "NegativeBinomial"]


class _Trials(Distribution):
    """Counts in `total_count` trials with the same odds."""

    total_count: Tensor
    _param: Tensor
    _grow = ("_param",)

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        name, value = either(probs, logits)
        self.total_count, self._param = broadcast_all(total_count, value)
        self.total_count = self.total_count.type_as(self._param)
        self.__dict__[name] = self._param
        super().__init__(self._param.shape, (), validate_args)

    __getattr__ = ByOdds.__getattr__  # pyright: ignore[reportAssignmentType]

    param_shape = read("_param.shape")


class Binomial(_Trials):
    """How many of `total_count` trials succeed.

    Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions, chapter 3.
    """

    has_enumerate_support = True
    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return binomial(self.total_count.detach().expand(shape), self.probs.detach().expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, logits = self.total_count, self.logits
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        # log(1 + exp(logits)), which may be large, in two parts.
        stretched = n * logits.clamp(min=0) + n * (-logits.abs()).exp().log1p()
        return value * logits + ways - stretched

    def entropy(self) -> Tensor:
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        found = self.log_prob(self.enumerate_support(False))
        return -(found.exp() * found).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class NegativeBinomial(_Trials):
    """How many successes come before `total_count` failures.

    Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions, chapter 5.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        rates = Gamma(self.total_count.detach(), (-self.logits.detach()).exp(), validate_args=False)
        return poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        unnormalized = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return unnormalized - ways.masked_fill(n + value == 0.0, 0.0)


class Multinomial(OfCategorical):
    """How often each class comes in `total_count` draws.

    Source: Johnson, Kotz and Balakrishnan, Discrete Multivariate Distributions, chapter 35.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _grow = ("_categorical", "_binomial")
    _stay = ("total_count",)

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = zeros(tuple(self._extended_shape(sample_shape)), dtype=drawn.dtype, device=drawn.device)
        counts.scatter_add_(-1, drawn, drawn * 0 + 1)
        return counts.type_as(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = zeros((), dtype=self.probs.dtype, device=self.probs.device) + self.total_count
        support = self._binomial.enumerate_support(expand=False)[1:]
        chances = self._binomial.log_prob(support).exp()
        weight = (chances * (support + 1).lgamma()).sum((0, -1))
        return self.total_count * self._categorical.entropy() - (n + 1).lgamma() + weight

    def __repr__(self) -> str:
        return "Multinomial()"
