"""Adadelta (Zeiler, 2012): steps in the units of the parameters."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .optimizer import ParamsT, RuleOptimizer, check_lr, check_option

__all__ = ["Adadelta"]


def adadelta(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter, with the running means of squared gradients and of squared steps."""
    maximize, decays = flags
    lr, rho, eps, weight_decay = numbers.own
    square, steps = state
    if maximize:
        grad = -grad
    if decays:
        grad = grad + weight_decay * param
    rest = (1 - numbers.exact[1]).astype(param.dtype)
    square = rho * square + rest * (grad * grad)
    delta = jnp.sqrt(steps + eps) / jnp.sqrt(square + eps) * grad
    return param - lr * delta, square, rho * steps + rest * (delta * delta)


class Adadelta(RuleOptimizer):
    """Steps by the gradient, scaled by the ratio of the roots of mean squared steps and gradients."""

    rule = staticmethod(adadelta)
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
        check_lr(lr)
        check_option(0.0 <= rho <= 1.0, "rho value", rho)
        check_option(eps >= 0.0, "epsilon value", eps)
        check_option(weight_decay >= 0.0, "weight_decay value", weight_decay)
        defaults = dict(
            lr=lr,
            rho=rho,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            capturable=capturable,
            foreach=foreach,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["rho"], group["eps"], group["weight_decay"]

    def flags_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return bool(group["maximize"]), group["weight_decay"] != 0

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "square_avg", "acc_delta"
