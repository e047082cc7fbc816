"""Adadelta (Zeiler, 2012): steps in the units of the parameters."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .optimizer import ParamsT, RuleOptimizer, check_option, check_options, options_of
from .rules import decayed

__all__ = ["Adadelta"]


def adadelta(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter, with the running means of squared gradients and of squared steps."""
    lr, rho, eps, weight_decay = numbers.own
    square, steps = state
    grad = decayed(flags, weight_decay, param, grad)
    rest = (1 - numbers.exact[1]).astype(param.dtype)
    square = rho * square + rest * (grad * grad)
    delta = jnp.sqrt(steps + eps) / jnp.sqrt(square + eps) * grad
    return param - lr * delta, square, rho * steps + rest * (delta * delta)


class Adadelta(RuleOptimizer):
    """Steps by the gradient, scaled by the ratio of the roots of mean squared steps and gradients.

    Source: Zeiler 2012, arXiv:1212.5701.
    """

    rule = staticmethod(adadelta)
    options = "lr rho eps weight_decay maximize capturable foreach differentiable"
    option_defaults = dict(foreach=None, maximize=False, differentiable=False, capturable=False)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr)
        check_option(0.0 <= rho <= 1.0, "rho value", rho)
        check_options(epsilon=eps, weight_decay=weight_decay)
        super().__init__(params, options_of(locals(), self.options))

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["rho"], group["eps"], group["weight_decay"]

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "square_avg", "acc_delta"
