"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .. import dtypes
from ..ops.create.ingest import tensor as make_tensor
from ..tensor import Tensor
from .optimizer import ParamsT, RuleOptimizer, as_float, check_options, options_of
from .rules import decayed

__all__ = ["ASGD"]


def asgd(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter, and of its average `ax`; `eta` and `mu` are this step's size and averaging weight."""
    lr, lambd, alpha, t0, weight_decay = numbers.exact
    kind = param.dtype
    eta, mu, average = state
    grad = decayed(flags, weight_decay, param, grad)
    param = param * (1 - lambd * eta).astype(kind) - eta * grad
    average = jnp.where(mu == 1, param, average + (param - average) * mu)
    step = count + 1
    return param, lr / (1 + lambd * lr * step) ** alpha, 1 / jnp.maximum(1.0, step - t0), average


class ASGD(RuleOptimizer):
    """Gradient descent with a decaying step, and the average of the parameters from step `t0` on in state "ax".

    Source: Polyak and Juditsky 1992, SIAM Journal on Control and Optimization 30.
    """

    rule = staticmethod(asgd)
    options = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
    option_defaults = dict(foreach=None, maximize=False, differentiable=False, capturable=False)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_options(lr=lr, weight_decay=weight_decay)
        super().__init__(params, options_of(locals(), self.options))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for param in group["params"]:
                own = self.state.get(param) or {}
                for name in ("eta", "mu"):
                    if name in own and not isinstance(own[name], Tensor):
                        own[name] = self.scalar_state(float(own[name]), param)

    def scalar_state(self, value: float, param: Tensor) -> Tensor:
        """A number as a state, on the parameter's device."""
        double = dtypes.get_default_dtype() is dtypes.float64
        return make_tensor(value, dtype=dtypes.float64 if double else dtypes.float32, device=param.device)

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["lambd"], group["alpha"], group["t0"], group["weight_decay"]

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "eta", "mu", "ax"

    def first_state(self, name: str, group: dict[str, Any], param: Tensor) -> Tensor:
        if name == "ax":
            return super().first_state(name, group, param)
        return self.scalar_state(1.0 if name == "mu" else as_float(group["lr"]), param)
