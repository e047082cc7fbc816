"""What parameters and values of distributions must satisfy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor

__all__ = [
    "Constraint",
    "boolean",
    "integer_interval",
    "interval",
    "lower_cholesky",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]


class Constraint:
    """A named test of each value; `event_dim` counts the last dimensions that are tested together."""

    def __init__(self, name: str, test: Callable[[Tensor], Tensor], event_dim: int = 0) -> None:
        self.name = name
        self.test = test
        self.event_dim = event_dim

    def check(self, value: Tensor) -> Tensor:
        """Whether each value satisfies it."""
        return self.test(value)

    def __repr__(self) -> str:
        return self.name


def interval(low: Any, high: Any) -> Constraint:
    """Numbers from `low` to `high`, ends included."""
    return Constraint(f"Interval(lower_bound={low}, upper_bound={high})", lambda v: (v >= low) & (v <= high))


def integer_interval(low: int, high: int) -> Constraint:
    """Whole numbers from `low` to `high`, ends included."""
    return Constraint(
        f"IntegerInterval(lower_bound={low}, upper_bound={high})",
        lambda v: (v % 1 == 0) & (v >= low) & (v <= high),
    )


real = Constraint("Real()", lambda v: v == v)
real_vector = Constraint("IndependentConstraint(Real(), 1)", lambda v: (v == v).all(-1), 1)
boolean = Constraint("Boolean()", lambda v: (v == 0) | (v == 1))
positive = Constraint("GreaterThan(lower_bound=0.0)", lambda v: v > 0)
nonnegative = Constraint("GreaterThanEq(lower_bound=0.0)", lambda v: v >= 0)
nonnegative_integer = Constraint("IntegerGreaterThan(lower_bound=0)", lambda v: (v % 1 == 0) & (v >= 0))
unit_interval = interval(0.0, 1.0)
simplex = Constraint("Simplex()", lambda v: (v >= 0).all(-1) & ((v.sum(-1) - 1).abs() < 1e-6), 1)
one_hot = Constraint("OneHot()", lambda v: ((v == 0) | (v == 1)).all(-1) & (v.sum(-1) == 1), 1)
lower_cholesky = Constraint(
    "LowerCholesky()",
    lambda v: (v.tril() == v).flatten(-2).all(-1) & (v.diagonal(dim1=-2, dim2=-1) > 0).all(-1),
    2,
)
