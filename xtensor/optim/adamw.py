"""AdamW: Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

from __future__ import annotations

from typing import Any

from .adam import Adam
from .optimizer import ParamsT

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly, apart from the gradient.

    Raises: ValueError for options out of their range, and for no parameters.

    Source: Loshchilov and Hutter 2019, arXiv:1711.05101.

    >>> weight = xtensor.tensor([1.0], requires_grad=True)
    >>> optimizer = xtensor.optim.AdamW([weight], lr=0.1)
    >>> (weight * weight).sum().backward()
    >>> optimizer.step()
    >>> weight
    tensor([0.8990], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
