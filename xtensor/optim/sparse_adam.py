"""SparseAdam: Adam for the elements that a sparse gradient has. Gradients here are dense, and refused."""

from __future__ import annotations

from typing import Any

from ..engine import enable_grad
from .optimizer import Optimizer, ParamsT, check_one_element, check_option, check_options

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients.

    Differs from PyTorch: there are no sparse gradients, so that a step with any gradient raises PyTorch's error for a
    dense one.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_one_element(lr)
        check_option(lr > 0.0, "learning rate", lr)
        check_option(eps > 0.0, "epsilon value", eps)
        check_options(betas=betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        complexes = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, param in enumerate(group["params"])
            if param.is_complex()
        ]
        if complexes:
            raise ValueError(
                f"Complex params at indices {complexes}: SparseAdam does not support complex parameters"
            )

    def step(self, closure: Any = None) -> Any:
        """Call the closure; RuntimeError where a parameter has a gradient, which is dense."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            if any(param.grad is not None for param in group["params"]):
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead"
                )
        return loss
