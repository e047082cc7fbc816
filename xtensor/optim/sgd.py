"""Stochastic gradient descent, with momentum and Nesterov's variant."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from ..tensor import Tensor
from .optimizer import ParamsT, RuleOptimizer, as_float, check_fused, check_option, check_options, options_of
from .rules import decayed

__all__ = ["SGD"]


def sgd(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter; at count 0 the momentum buffer starts as the gradient."""
    *common, nesterov = flags
    lr, momentum, dampening, weight_decay = numbers.own
    grad = decayed(common, weight_decay, param, grad)
    if not state:
        return (param - lr * grad,)
    # As in PyTorch, no gradient flows through the first buffer (`differentiable=True`).
    buffer = jnp.where(count == 0, lax.stop_gradient(grad), momentum * state[0] + (1 - dampening) * grad)
    direction = grad + momentum * buffer if nesterov else buffer
    return param - lr * direction, buffer


class SGD(RuleOptimizer):
    """Stochastic gradient descent.

    Raises: ValueError for options out of their range, and for no parameters.

    Source: momentum: Sutskever et al. 2013, International Conference on Machine Learning.

    >>> weight = xtensor.tensor([1.0], requires_grad=True)
    >>> optimizer = xtensor.optim.SGD([weight], lr=0.1)
    >>> (weight * weight).sum().backward()
    >>> optimizer.step()
    >>> weight
    tensor([0.8000], requires_grad=True)
    """

    rule = staticmethod(sgd)
    counted = False
    options = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
    option_defaults = dict(nesterov=False, maximize=False, foreach=None, differentiable=False, fused=False)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_options(lr=lr)
        check_option(not momentum < 0.0, "momentum value", momentum)
        check_option(not weight_decay < 0.0, "weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, options_of(locals(), self.options))
        check_fused(fused, foreach, differentiable)

    def sparse_step(
        self, group: dict[str, Any], param: Tensor, grad: Any, new: list[tuple[Tensor, Any]]
    ) -> None:
        """Add the rows that the gradient has; a momentum buffer is a sparse tensor, too."""
        grad = -grad if group["maximize"] else grad
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        momentum = group["momentum"]
        if momentum != 0:
            own = self.state[param]
            buffer = own.get("momentum_buffer")
            if buffer is None:
                new.append((param, param._xt_storage.array))
                buffer = own["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        param.add_(grad, alpha=-as_float(group["lr"]))

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["momentum"], group["dampening"], group["weight_decay"]

    def flags_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return bool(group["maximize"]), group["weight_decay"] != 0, bool(group["nesterov"])

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] != 0 else ()
