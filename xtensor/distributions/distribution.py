"""The base of distributions, and Independent, which counts dimensions of a batch as one event."""

# A property may be that of another attribute (`read`).
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from jax.core import Tracer

from .. import dtypes
from ..engine import enable_grad, no_grad
from ..gradients import grad
from ..host.at_hand import at_hand
from ..operators.index_bounds import later
from ..ops.create.ingest import as_tensor
from ..ops.shape.joining import broadcast_tensors
from ..tensor import Size, Tensor, array_of
from .constraints import Constraint, independent, is_dependent

__all__ = ["Distribution", "ExponentialFamily", "Independent", "broadcast_all"]


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take a tensor's dtype and device."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = dtypes.get_default_dtype() if like is None else like.dtype
    place = None if like is None else like.device
    made = [
        v if hasattr(v, "__torch_function__") else as_tensor(v, dtype=dtype, device=place) for v in values
    ]
    return tuple(broadcast_tensors(*made))


def read(path: str) -> Any:
    """A property that is an attribute of another name, or of what the object is made of: `read("base_dist.mean")`."""
    return property(attrgetter(path))


FEW = 1 << 14
"""Elements that NumPy looks at sooner than programs do."""


def satisfied(constraint: Constraint, value: Tensor) -> bool:
    """Whether all of a tensor lies in a region; of few elements that are on the host NumPy says so."""
    base: Any = constraint
    while isinstance(base, independent) and 0 < base.event_dim <= value.dim():
        base = base.base_constraint
    if base.by_element and all(type(getattr(base, name)) in (int, float) for name in base._bounds):
        values = at_hand(value.detach(), wait=True) if value.numel() <= FEW else None
        if values is not None:
            with np.errstate(all="ignore"):
                return bool(base.check(values).all())
    return everywhere(constraint.check(value.detach()))


def everywhere(valid: Tensor) -> bool:
    """Whether a check came out true for all elements; of values that a program will have, it is asked when it has them."""
    array = array_of(valid)
    if isinstance(array, Tracer):
        later(array, lambda values: bool(values.all()))
        return True
    return bool(valid.all())


class lazy_property:
    """A property that is computed once, and then an attribute."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        self.__doc__, self.__name__ = wrapped.__doc__, wrapped.__name__

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class Distribution:
    """A family of random variables of shape `batch_shape`, each an event of shape `event_shape`."""

    has_rsample: ClassVar[bool] = False
    has_enumerate_support: ClassVar[bool] = False
    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Any = None
    _validate_args: bool = True
    # What `expand` takes along besides the parameters: what grows with the batch, and what stays as it is.
    _grow: ClassVar[tuple[str, ...]] = ()
    _stay: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Check parameters and values of all distributions from now on, or not."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                value = self.__dict__.get(name)
                if is_dependent(constraint) or not isinstance(value, Tensor):
                    continue
                if not satisfied(constraint, value):
                    raise ValueError(
                        f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                        f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n"
                        f"{value}"
                    )
        # Programs combine distributions with classes of their own, which are made here.
        super().__init__()

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _check(self, value: Any) -> None:
        """Refuse values outside of the support, where arguments are validated."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        expected = self._batch_shape + self._event_shape
        for have, want in zip(reversed(value.shape), reversed(expected), strict=False):
            if have != want and have != 1 and want != 1:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        if self.support is not None and not satisfied(self.support, value):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({self.support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values drawn at random, of shape sample_shape + batch_shape + event_shape, without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        return self.sample((n,))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values drawn as a function of the parameters, which gradients flow back to."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability, or of its density, of values."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to these."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The values up to which the probabilities are these."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values there are, along a new first dimension."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An object for `expand` to fill: the given one, or a new one of this class if `cls` defines how it is made."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define "
                "a custom .expand() method."
            )
        return self.__new__(type(self))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution over a larger batch; `_instance`, of a subclass, is filled where it is given."""
        home, shape = home_of(type(self)), Size(batch_shape)
        if home in (Distribution, ExponentialFamily):
            raise NotImplementedError
        made = self._get_checked_instance(home, _instance)
        for name, value in self._wider(home, shape).items():
            setattr(made, name, value)
        Distribution.__init__(made, shape, self._event_shape, validate_args=False)
        # Last, and by assignment: a subclass may hand it on to what it is made of.
        made._validate_args = self._validate_args
        return made

    def _wider(self, home: Any, shape: Size) -> dict[str, Any]:
        """The attributes that `home` gives its objects, for a larger batch; a subclass sees to its own."""
        length = len(self._batch_shape)
        found = {name: getattr(self, name) for name in home._stay}
        for name in (*(name for name in home.arg_constraints if name in self.__dict__), *home._grow):
            value = getattr(self, name)
            own = value.shape if hasattr(value, "shape") else value.batch_shape
            found[name] = value.expand(shape + tuple(own[length:]))
        return found

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        texts = [
            f"{name}: {value.item() if value.numel() == 1 else value.shape}"
            for name in names
            if isinstance(value := self.__dict__[name], Tensor)
        ]
        return f"{type(self).__name__}({', '.join(texts)})"


class ExponentialFamily(Distribution):
    """A base for programs' own exponential families: the entropy follows from the log normalizer's gradient.

    Source: Nielsen and Nock 2010, International Conference on Image Processing.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        slopes = grad(normalizer.sum(), parameters, create_graph=True)
        found = normalizer - self._mean_carrier_measure
        for parameter, slope in zip(parameters, slopes, strict=True):
            found = found - (parameter * slope).reshape(tuple(self._batch_shape) + (-1,)).sum(-1)
        return found


def home_of(kind: type) -> Any:
    """The class of this library that a distribution's class is or extends."""
    return next(base for base in kind.__mro__ if base.__module__.rpartition(".")[0] == __package__)


def sum_rightmost(value: Tensor, count: int) -> Tensor:
    return value if count == 0 else value.reshape(value.shape[: value.dim() - count] + (-1,)).sum(-1)


class Independent(Distribution):
    """Another distribution whose last batch dimensions are parts of one event."""

    _grow = ("base_dist",)
    _stay = ("reinterpreted_batch_ndims",)

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        count = reinterpreted_batch_ndims
        if count > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{count} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        events = count + len(base_distribution.event_shape)
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        super().__init__(shape[: len(shape) - events], shape[len(shape) - events :], validate_args)

    has_rsample = read("base_dist.has_rsample")

    @property
    def support(self) -> Any:  # type: ignore[override]
        found = self.base_dist.support
        if found is None or not self.reinterpreted_batch_ndims:
            return found
        return independent(found, self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    mean = read("base_dist.mean")
    mode = read("base_dist.mode")
    variance = read("base_dist.variance")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


def numel(shape: Sequence[int]) -> int:
    """How many draws a shape holds."""
    return math.prod(shape)
