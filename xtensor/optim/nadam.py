"""NAdam (Dozat, 2016): Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .. import dtypes
from ..ops.create.creation import ones
from ..tensor import Tensor
from .optimizer import ParamsT, RuleOptimizer, check_options, options_of
from .rules import decoupled, moments

__all__ = ["NAdam"]


def nadam(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter; `mu` is the momentum of this step, whose product over all steps corrects the bias."""
    lr, beta1, beta2, eps, weight_decay, momentum_decay = numbers.exact
    kind = param.dtype
    product, mean, square = state
    step = count + 1
    param, grad = decoupled(flags, lr, weight_decay, param, grad)
    mu = beta1 * (1 - 0.5 * 0.96 ** (step * momentum_decay))
    after = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
    product = product * mu.astype(kind)
    mean, square = moments(mean, square, grad, beta1, beta2)
    scale = jnp.sqrt(square / (1 - beta2**step).astype(kind)) + eps.astype(kind)
    now = (lr * (1 - mu) / (1 - product)).astype(kind)
    ahead = (lr * after / (1 - product * after)).astype(kind)
    return param - now * (grad / scale) - ahead * (mean / scale), product, mean, square


class NAdam(RuleOptimizer):
    """Adam whose step looks ahead by the momentum of the next one.

    Source: Dozat 2016, Incorporating Nesterov Momentum into Adam.
    """

    rule = staticmethod(nadam)
    options = "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable differentiable"
    option_defaults = dict(
        maximize=False, foreach=None, capturable=False, differentiable=False, decoupled_weight_decay=False
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(
            lr=lr, epsilon=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        super().__init__(params, options_of(locals(), self.options))

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        own = (group["eps"], group["weight_decay"], group["momentum_decay"])
        return (group["lr"], *group["betas"], *own)

    def flags_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return bool(group["maximize"]), group["weight_decay"] != 0, bool(group["decoupled_weight_decay"])

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "mu_product", "exp_avg", "exp_avg_sq"

    def first_state(self, name: str, group: dict[str, Any], param: Tensor) -> Tensor:
        if name != "mu_product":
            return super().first_state(name, group, param)
        double = dtypes.get_default_dtype() is dtypes.float64
        return ones((), dtype=dtypes.float64 if double else dtypes.float32, device=param.device)
