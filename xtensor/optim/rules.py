"""What the rules of several optimizers share: pure functions of arrays."""

from __future__ import annotations

from typing import Any

__all__ = ["decayed", "decoupled", "moments"]


def decayed(flags: Any, weight_decay: Any, param: Any, grad: Any) -> Any:
    """The gradient to go down by: its opposite where the first flag says so, with that of the decay by the second."""
    maximize, decays = flags
    if maximize:
        grad = -grad
    return grad + weight_decay.astype(param.dtype) * param if decays else grad


def decoupled(flags: Any, lr: Any, weight_decay: Any, param: Any, grad: Any) -> tuple[Any, Any]:
    """Parameter and gradient after `decayed`; with the third flag the decay shrinks the parameter instead."""
    maximize, decays, apart = flags
    if decays and apart:
        param = param * (1 - lr * weight_decay).astype(param.dtype)
    return param, decayed((maximize, decays and not apart), weight_decay, param, grad)


def moments(mean: Any, square: Any, grad: Any, beta1: Any, beta2: Any) -> tuple[Any, Any]:
    """The running means of the gradients and of their squares after one more."""
    kind = grad.dtype
    mean = mean + (1 - beta1).astype(kind) * (grad - mean)
    return mean, beta2.astype(kind) * square + (1 - beta2).astype(kind) * (grad * grad)
