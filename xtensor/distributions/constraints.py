"""What parameters and values of distributions must satisfy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .. import dtypes
from ..linalg import cholesky_ex, eigvalsh
from ..ops.create.creation import ones, zeros
from ..ops.pointwise.comparison import isclose
from ..ops.shape.joining import cat as joined
from ..ops.shape.joining import stack as stacked
from ..tensor import Tensor

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of values; `event_dim` counts the last dimensions that are tested together."""

    is_discrete: bool = False
    event_dim: int = 0
    by_element: ClassVar[bool] = False
    """Whether `check` looks at each element alone, by comparisons with its bounds, and so takes NumPy's arrays too where these are numbers."""
    _bounds: tuple[str, ...] = ()

    def check(self, value: Any) -> Tensor:
        """Whether each value lies in the region."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}()"


class _Bounded(Constraint):
    """A region whose bounds are written in its name."""

    lower_bound: Any
    upper_bound: Any

    def __init__(self, **bounds: Any) -> None:
        self.__dict__.update(bounds)
        self._bounds = tuple(bounds)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)}" for name in self._bounds)
        return f"{type(self).__name__.lstrip('_')}({values})"


class _Above(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound)


class _Between(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)


class _Dependent(Constraint):
    """A region that follows from other values: it cannot be tested by itself."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> _Dependent:
        return _Dependent(
            is_discrete=self.is_discrete if is_discrete is None else is_discrete,
            event_dim=self.event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Any) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property that gives the region of an instance; on the class it stands for a dependent region."""

    def __init__(self, fn: Any = None, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


class _IndependentConstraint(Constraint):
    """Another region whose last dimensions are tested together."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Tensor:
        found, count = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if found.dim() < count:
            raise ValueError(
                f"Expected value.dim() >= {self.base_constraint.event_dim + count} but got {value.dim()}"
            )
        return found.reshape(found.shape[: found.dim() - count] + (-1,)).all(-1) if count else found.all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture: its components', tested for each of them."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Any) -> Tensor:
        unsqueezed = value.unsqueeze(-1 - self.event_dim)
        found = self.base_constraint.check(unsqueezed)
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        shape = value.shape[: value.dim() - self.event_dim]
        return found.reshape(*shape, -1).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete, by_element = True, True

    def check(self, value: Any) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Any) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _IntegerInterval(_Between):
    is_discrete, by_element = True, True

    def check(self, value: Any) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    is_discrete, by_element = True, True

    def check(self, value: Any) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    by_element = True

    def check(self, value: Any) -> Tensor:
        return value == value


class _GreaterThan(_Above):
    by_element = True

    def check(self, value: Any) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    by_element = True

    def check(self, value: Any) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    by_element = True

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Any) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    by_element = True

    def check(self, value: Any) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    def check(self, value: Any) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Any) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        # A row's norm differs from 1 by a rounding error for each of its elements.
        tolerance = dtypes.finfo(value.dtype).eps * value.size(-1) * 10
        unit = ((value.detach() ** 2).sum(-1).sqrt() - 1).abs().le(tolerance).all(-1)
        return lower_cholesky.check(value) & unit


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        good = value.shape[-2] == value.shape[-1]
        make = ones if good else zeros
        return make(tuple(value.shape[:-2]), dtype=dtypes.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Tensor:
        found = super().check(value)
        return isclose(value, value.mT, atol=1e-6).all(-2).all(-1) if found.all() else found


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Tensor:
        found = super().check(value)
        return eigvalsh(value).ge(0).all(-1) if found.all() else found


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Tensor:
        found = super().check(value)
        return cholesky_ex(value)[1].eq(0) if found.all() else found


class _Parts(Constraint):
    """Regions of parts of a value along one dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return max(c.event_dim for c in self.cseq)


class _Cat(_Parts):
    """Regions of pieces laid end to end."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.cseq)

    def check(self, value: Any) -> Tensor:
        pieces = value.split(self.lengths, self.dim)
        return joined([c.check(v) for v, c in zip(pieces, self.cseq, strict=True)], self.dim)


class _Stack(_Parts):
    """Regions of slices."""

    def check(self, value: Any) -> Tensor:
        slices = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        return stacked([c.check(v) for v, c in zip(slices, self.cseq, strict=True)], self.dim)


def is_dependent(constraint: Any) -> bool:
    """Whether a region follows from other values."""
    return isinstance(constraint, _Dependent)


dependent = _Dependent()
dependent_property: Callable[..., Any] = _DependentProperty
independent = _IndependentConstraint
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
multinomial, cat, stack = _Multinomial, _Cat, _Stack
boolean, one_hot, real = _Boolean(), _OneHot(), _Real()
real_vector = _IndependentConstraint(real, 1)
positive, nonnegative = _GreaterThan(0.0), _GreaterThanEq(0.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
unit_interval = _Interval(0.0, 1.0)
simplex, corr_cholesky = _Simplex(), _CorrCholesky()
lower_triangular, lower_cholesky = _LowerTriangular(), _LowerCholesky()
square, symmetric = _Square(), _Symmetric()
positive_definite, positive_semidefinite = _PositiveDefinite(), _PositiveSemidefinite()
