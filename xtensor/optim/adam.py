"""Adam (Kingma and Ba, 2015), with AMSGrad (Reddi et al., 2018) and decoupled weight decay on request."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..tensor import Tensor
from .optimizer import ParamsT, RuleOptimizer, check_fused, check_options, options_of
from .rules import decoupled, moments

__all__ = ["Adam"]


def adam(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter; bias corrections are computed in float64 as PyTorch does on the host."""
    *common, amsgrad = flags
    lr, beta1, beta2, eps, weight_decay = numbers.exact
    kind = param.dtype
    param, grad = decoupled(common, lr, weight_decay, param, grad)
    mean, square = moments(state[0], state[1], grad, beta1, beta2)
    step = count + 1
    size = lr / (1 - beta1**step)
    root = jnp.sqrt(1 - beta2**step).astype(kind)
    largest: tuple[Any, ...] = (jnp.maximum(state[2], square),) if amsgrad else ()
    scale = jnp.sqrt(largest[0] if amsgrad else square) / root + eps.astype(kind)
    return param - size.astype(kind) * (mean / scale), mean, square, *largest


class Adam(RuleOptimizer):
    """Steps by the running mean of gradients over the root of that of their squares.

    Raises: ValueError for options out of their range, and for no parameters.

    Source: Kingma and Ba 2015, arXiv:1412.6980.

    >>> weight = xtensor.tensor([1.0], requires_grad=True)
    >>> optimizer = xtensor.optim.Adam([weight], lr=0.1)
    >>> (weight * weight).sum().backward()
    >>> optimizer.step()
    >>> weight
    tensor([0.9000], requires_grad=True)
    """

    rule = staticmethod(adam)
    options = "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay"
    option_defaults = dict(
        amsgrad=False,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        decoupled_weight_decay=False,
        fused=None,
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_options(lr=lr, epsilon=eps, betas=betas, weight_decay=weight_decay)
        kinds = [
            type(beta) if isinstance(beta, float) else Tensor
            for beta in betas
            if isinstance(beta, (float, Tensor))
        ]
        if len(kinds) != 2 or (kinds[0] is Tensor) != (kinds[1] is Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                if not capturable and foreach:
                    raise ValueError(
                        f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
                    )
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{i}] must be 1-element")
        betas = tuple(betas)
        super().__init__(params, options_of(locals(), self.options))
        check_fused(fused, foreach, differentiable)

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (group["lr"], *group["betas"], group["eps"], group["weight_decay"])

    def flags_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (
            bool(group["maximize"]),
            group["weight_decay"] != 0,
            bool(group["decoupled_weight_decay"]),
            bool(group["amsgrad"]),
        )

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")
