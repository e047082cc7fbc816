"""RMSprop (Hinton, 2012), centered (Graves, 2013) on request."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .optimizer import ParamsT, RuleOptimizer, check_options, options_of
from .rules import decayed

__all__ = ["RMSprop"]


def rmsprop(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter; states are the mean square, then the momentum and the mean where asked for."""
    *common, moves, centered = flags
    lr, alpha, eps, weight_decay, momentum = numbers.own
    grad = decayed(common, weight_decay, param, grad)
    rest = (1 - numbers.exact[1]).astype(param.dtype)
    square = alpha * state[0] + rest * (grad * grad)
    made = [square]
    if centered:
        mean = state[-1] + rest * (grad - state[-1])
        scale = jnp.sqrt(square - mean * mean) + eps
    else:
        mean = None
        scale = jnp.sqrt(square) + eps
    direction = grad / scale
    if moves:
        direction = momentum * state[1] + direction
        made.append(direction)
    if mean is not None:
        made.append(mean)
    return param - lr * direction, *made


class RMSprop(RuleOptimizer):
    """Steps by the gradient over the root of the running mean of its square.

    Raises: ValueError for options out of their range, and for no parameters.

    Source: Hinton 2012, Neural Networks for Machine Learning, lecture 6e; centered: Graves 2013,
    arXiv:1308.0850.

    >>> weight = xtensor.tensor([1.0], requires_grad=True)
    >>> optimizer = xtensor.optim.RMSprop([weight], lr=0.01)
    >>> (weight * weight).sum().backward()
    >>> optimizer.step()
    >>> weight
    tensor([0.9000], requires_grad=True)
    """

    rule = staticmethod(rmsprop)
    options = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
    option_defaults = dict(
        momentum=0, centered=False, foreach=None, maximize=False, differentiable=False, capturable=False
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr, epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, options_of(locals(), self.options))

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["alpha"], group["eps"], group["weight_decay"], group["momentum"]

    def flags_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        decays, moves = group["weight_decay"] != 0, group["momentum"] > 0
        return bool(group["maximize"]), decays, moves, bool(group["centered"])

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        names = ["square_avg"]
        if group["momentum"] > 0:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        return tuple(names)
