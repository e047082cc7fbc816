"""RAdam (Liu et al., 2020): Adam whose first steps, of unknown variance, are those of momentum alone."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .optimizer import ParamsT, RuleOptimizer, check_options, options_of
from .rules import decoupled, moments

__all__ = ["RAdam"]


def radam(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter; adaptive once the length of the moving average is more than 5."""
    lr, beta1, beta2, eps, weight_decay = numbers.exact
    kind = param.dtype
    mean, square = state
    step = count + 1
    param, grad = decoupled(flags, lr, weight_decay, param, grad)
    mean, square = moments(mean, square, grad, beta1, beta2)
    bias = 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / bias
    adaptive = length > 5.0
    # The root is of a negative number where it is not used.
    known = jnp.where(adaptive, length, 6.0)
    excess = (known - 4) * (known - 2) * longest / ((longest - 4) * (longest - 2) * known)
    factor = jnp.sqrt(excess * bias).astype(kind) / (jnp.sqrt(square) + eps.astype(kind))
    scale = jnp.where(adaptive, factor, 1)
    return param - (lr / (1 - beta1**step)).astype(kind) * mean * scale, mean, square


class RAdam(RuleOptimizer):
    """Adam whose adaptive step is rectified by the variance that its mean square can have so far.

    Source: Liu et al. 2020, arXiv:1908.03265.
    """

    rule = staticmethod(radam)
    options = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"
    option_defaults = dict(
        maximize=False, foreach=None, capturable=False, differentiable=False, decoupled_weight_decay=False
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr, epsilon=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(params, options_of(locals(), self.options))

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (group["lr"], *group["betas"], group["eps"], group["weight_decay"])

    def flags_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return bool(group["maximize"]), group["weight_decay"] != 0, bool(group["decoupled_weight_decay"])

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq"
