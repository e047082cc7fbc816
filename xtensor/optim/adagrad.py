"""Adagrad (Duchi, Hazan and Singer, 2011): steps that shrink with the sum of squared gradients."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..ops.create.creation import full_like
from ..tensor import Tensor
from .optimizer import ParamsT, RuleOptimizer, check_fused, check_options, options_of
from .rules import decayed

__all__ = ["Adagrad"]


def adagrad(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter; the learning rate falls with the steps."""
    lr, lr_decay, weight_decay, eps = numbers.exact
    kind = param.dtype
    grad = decayed(flags, weight_decay, param, grad)
    total = state[0] + grad * grad
    size = (lr / (1 + count * lr_decay)).astype(kind)
    return param - size * (grad / (jnp.sqrt(total) + eps.astype(kind))), total


class Adagrad(RuleOptimizer):
    """Steps by the gradient over the root of the sum of all squared gradients so far."""

    rule = staticmethod(adagrad)
    options = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"
    option_defaults = dict(foreach=None, maximize=False, differentiable=False, fused=None)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_options(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        super().__init__(params, options_of(locals(), self.options))
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                self.init_state(self.state[param], group, param)

    def share_memory(self) -> None:
        """Nothing: the states are arrays of this process. Differs from PyTorch: no shared memory between processes."""

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["lr_decay"], group["weight_decay"], group["eps"]

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def first_state(self, name: str, group: dict[str, Any], param: Tensor) -> Tensor:
        start = group["initial_accumulator_value"]
        return full_like(param, complex(start, start) if param.is_complex() else start, requires_grad=False)
