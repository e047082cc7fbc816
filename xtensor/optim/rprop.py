"""Rprop (Riedmiller and Braun, 1993): steps by the signs of gradients alone."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..ops.create.creation import full_like
from ..tensor import Tensor
from .optimizer import ParamsT, RuleOptimizer, as_float, check_options, options_of

__all__ = ["Rprop"]


def rprop(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter: sizes grow where the sign stays, shrink where it turns, and such a step is left out."""
    (maximize,) = flags
    smaller, larger, lowest, highest = numbers.own
    last, size = state
    if maximize:
        grad = -grad
    sign = jnp.sign(grad * last)
    turned = sign < 0
    factor = jnp.where(sign > 0, larger, jnp.where(turned, smaller, jnp.where(sign == 0, 1, sign)))
    size = jnp.clip(size * factor, lowest, highest)
    grad = jnp.where(turned, 0, grad)
    return param - jnp.sign(grad) * size, grad, size


class Rprop(RuleOptimizer):
    """Steps of a size per element that follows how the gradient's sign behaves.

    Source: Riedmiller and Braun 1993, IEEE International Conference on Neural Networks.
    """

    rule = staticmethod(rprop)
    options = "lr etas step_sizes foreach maximize differentiable capturable"
    option_defaults = dict(foreach=None, maximize=False, differentiable=False, capturable=False)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, options_of(locals(), self.options))

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (*group["etas"], *group["step_sizes"])

    def flags_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (bool(group["maximize"]),)

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "prev", "step_size"

    def first_state(self, name: str, group: dict[str, Any], param: Tensor) -> Tensor:
        if name == "prev":
            return super().first_state(name, group, param)
        size = as_float(group["lr"])
        return full_like(param, complex(size, size) if param.is_complex() else size, requires_grad=False)
