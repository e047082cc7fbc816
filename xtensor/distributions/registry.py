"""From regions to the maps that lead to them from all of the reals: `biject_to` and `transform_to`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """A table of maps by the class of region; calling it with a region gives the map."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Let `factory(region)` make the map to regions of this class; a decorator without a factory."""
        if factory is None:
            return lambda given: self.register(constraint, given)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> transforms.Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def both(*kinds: Any) -> Callable[[Factory], Factory]:
    def decorate(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return decorate


@both(constraints.real)
def _real(region: Any) -> transforms.Transform:
    return transforms.identity_transform


@biject_to.register(constraints.independent)
def _independent(region: Any) -> transforms.Transform:
    return transforms.IndependentTransform(
        biject_to(region.base_constraint), region.reinterpreted_batch_ndims
    )


@transform_to.register(constraints.independent)
def _independent_to(region: Any) -> transforms.Transform:
    return transforms.IndependentTransform(
        transform_to(region.base_constraint), region.reinterpreted_batch_ndims
    )


@both(constraints.positive, constraints.nonnegative)
def _positive(region: Any) -> transforms.Transform:
    if _is_zero(region.lower_bound):
        return transforms.ExpTransform()
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(region.lower_bound, 1)]
    )


def _is_zero(bound: Any) -> bool:
    return isinstance(bound, (int, float)) and bound == 0


@both(constraints.less_than)
def _less_than(region: Any) -> transforms.Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(region.upper_bound, -1)]
    )


@both(constraints.interval, constraints.half_open_interval)
def _interval(region: Any) -> transforms.Transform:
    low, high = region.lower_bound, region.upper_bound
    if _is_zero(low) and isinstance(high, (int, float)) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


@biject_to.register(constraints.simplex)
def _simplex(region: Any) -> transforms.Transform:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _simplex_to(region: Any) -> transforms.Transform:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(region: Any) -> transforms.Transform:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _positive_definite(region: Any) -> transforms.Transform:
    return transforms.PositiveDefiniteTransform()


@both(constraints.corr_cholesky)
def _corr_cholesky(region: Any) -> transforms.Transform:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.cat)
def _cat(region: Any) -> transforms.Transform:
    return transforms.CatTransform([biject_to(c) for c in region.cseq], region.dim, region.lengths)


@transform_to.register(constraints.cat)
def _cat_to(region: Any) -> transforms.Transform:
    return transforms.CatTransform([transform_to(c) for c in region.cseq], region.dim, region.lengths)


@biject_to.register(constraints.stack)
def _stack(region: Any) -> transforms.Transform:
    return transforms.StackTransform([biject_to(c) for c in region.cseq], region.dim)


@transform_to.register(constraints.stack)
def _stack_to(region: Any) -> transforms.Transform:
    return transforms.StackTransform([transform_to(c) for c in region.cseq], region.dim)
