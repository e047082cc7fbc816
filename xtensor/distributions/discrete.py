"""Distributions over whole numbers and classes."""

# A property may be that of another attribute (`read`).
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

from typing import Any

from .. import dtypes
from ..nn.functional import binary_cross_entropy_with_logits, one_hot
from ..ops.create.creation import empty
from ..ops.create.distributions import bernoulli, multinomial, poisson
from ..ops.create.ranges import arange, eye
from ..ops.pointwise.special import xlogy
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all, numel, read

__all__ = [
    "Bernoulli",
    "Categorical",
    "Geometric",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Poisson",
]

TINY = 1.1920928955078125e-07


def either(probs: Any, logits: Any) -> tuple[str, Any]:
    """The parameter that is given, with its name."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("logits", logits) if probs is None else ("probs", probs)


class ByOdds(Distribution):
    """A distribution given by probabilities or by their log-odds, one of which follows from the other."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    given: Tensor
    _grow = ("given",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, value = either(probs, logits)
        (self.given,) = broadcast_all(value)
        self.__dict__[name] = self.given
        super().__init__(self.given.shape, (), validate_args)

    def __getattr__(self, name: str) -> Any:
        if name == "logits":
            p = self.probs.clamp(TINY, 1 - TINY)
            return p.log() - (-p).log1p()
        if name == "probs":
            return self.logits.sigmoid()
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


class Bernoulli(ByOdds):
    """1 with probability `probs`, else 0.

    Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions, chapter 3.
    """

    has_enumerate_support = True
    support = constraints.boolean

    mean = read("probs")

    @property
    def mode(self) -> Tensor:
        return (self.probs >= 0.5).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, dtype=self.given.dtype, device=self.given.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class Geometric(ByOdds):
    """How many failures come before the first success.

    Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions, chapter 5.
    """

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args=validate_args)
        if self._validate_args and probs is not None:
            valid = self.probs > 0
            if not valid.all():
                raise ValueError(
                    f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of "
                    f"distribution {self!r} to be positive but found invalid values:\n{self.probs[~valid]}"
                )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return self.probs * 0

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        drawn = empty(shape, dtype=self.given.dtype, device=self.given.device).uniform_(1e-7, 1)
        return (drawn.log() / (-self.probs.detach()).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Categorical(Distribution):
    """Classes from 0 on, with probabilities (or unnormalised log-probabilities) in the last dimension.

    Source: Johnson, Kotz and Balakrishnan, Discrete Multivariate Distributions, chapter 35.
    """

    has_enumerate_support = True
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _grow = ("_param",)
    _stay = ("_num_events",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, given = either(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        by_odds = name == "logits"
        scaled = given - given.logsumexp(-1, keepdim=True) if by_odds else given / given.sum(-1, keepdim=True)
        self.__dict__[name] = self._param = scaled
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], (), validate_args)

    def __getattr__(self, name: str) -> Any:
        if name == "logits":
            return self.probs.clamp(TINY, 1 - TINY).log()
        if name == "probs":
            return self.logits.softmax(-1)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def support(self) -> Any:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return constraints.integer_interval(0, self._num_events - 1)

    param_shape = read("_param.shape")

    @property
    def mean(self) -> Tensor:
        return self.probs[..., 0] * float("nan")

    @property
    def variance(self) -> Tensor:
        return self.probs[..., 0] * float("nan")

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        flat = self.probs.detach().reshape(-1, self._num_events)
        drawn = multinomial(flat, numel(tuple(sample_shape)), True).t()
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value = value.long().unsqueeze(-1)
        places, logits = broadcast_all(value.expand(*value.shape[:-1], 1), self.logits[..., :1])
        logits = self.logits.expand(*places.shape[:-1], self._num_events)
        return logits.gather(-1, places[..., :1].long()).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=-3.4028234663852886e38)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events, dtype=dtypes.int64, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OfCategorical(Distribution):
    """What is made of a categorical variable: its parameters are that one's."""

    _categorical: Categorical
    _grow = ("_categorical",)

    probs = read("_categorical.probs")
    logits = read("_categorical.logits")
    param_shape = read("_categorical.param_shape")


class OneHotCategorical(OfCategorical):
    """`Categorical` whose values are one-hot vectors.

    Source: Johnson, Kotz and Balakrishnan, Discrete Multivariate Distributions, chapter 35.
    """

    has_enumerate_support = True
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(
            self._categorical.batch_shape, (self._categorical._num_events,), validate_args=validate_args
        )

    mean = read("probs")

    @property
    def mode(self) -> Tensor:
        return one_hot(self.probs.argmax(-1), self._event_shape[0]).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return one_hot(self._categorical.sample(sample_shape), self._event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._event_shape[0]
        values = eye(count, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view(count, *(1,) * len(self._batch_shape), count)
        return values.expand(count, *self._batch_shape, count) if expand else values

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples pass a gradient on to the probabilities as they come.

    Source: Bengio, Leonard and Courville 2013, arXiv:1308.3432.
    """

    has_rsample = True

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return OneHotCategorical.sample(self, sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn, probs = self.sample(sample_shape), self.probs
        return drawn + (probs - probs.detach())


class Poisson(Distribution):
    """How many events happen in a unit of time, of which `rate` do on average.

    Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions, chapter 4.
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    mean = read("rate")

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    variance = read("rate")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return poisson(self.rate.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return xlogy(value, rate) - rate - (value + 1).lgamma()
