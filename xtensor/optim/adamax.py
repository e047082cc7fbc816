"""Adamax (Kingma and Ba, 2015): Adam by the largest gradient instead of the mean square."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .optimizer import ParamsT, RuleOptimizer, check_options, options_of
from .rules import decayed

__all__ = ["Adamax"]


def adamax(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter; the bias correction is computed in float64."""
    lr, beta1, beta2, eps, weight_decay = numbers.exact
    kind = param.dtype
    mean, largest = state
    grad = decayed(flags, weight_decay, param, grad)
    mean = mean + (1 - beta1).astype(kind) * (grad - mean)
    largest = jnp.maximum(beta2.astype(kind) * largest, jnp.abs(grad) + eps.astype(kind))
    size = (lr / (1 - beta1 ** (count + 1))).astype(kind)
    return param - size * (mean / largest), mean, largest


class Adamax(RuleOptimizer):
    """Steps by the running mean of gradients over their largest size, which decays.

    Source: Kingma and Ba 2015, arXiv:1412.6980, section 7.1.
    """

    rule = staticmethod(adamax)
    options = "lr betas eps weight_decay foreach maximize differentiable capturable"
    option_defaults = dict(foreach=None, maximize=False, differentiable=False, capturable=False)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_options(lr=lr, epsilon=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(params, options_of(locals(), self.options))

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (group["lr"], *group["betas"], group["eps"], group["weight_decay"])

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "exp_avg", "exp_inf"
