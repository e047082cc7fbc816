"""SparseAdam: Adam for the rows that a sparse gradient has."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..engine import enable_grad, no_grad
from ..ops.create.creation import zeros_like
from ..tensor import array_of
from .optimizer import Optimizer, ParamsT, as_float, check_one_element, check_option, check_options
from .rows import RowUpdate, rows_of

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients: only the rows that a gradient has are moved, and their averages.

    Source: Kingma and Ba 2015, arXiv:1412.6980.
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
        for refused, of, why in (
            ("Sparse", lambda p: p.is_sparse, "requires dense parameter tensors"),
            ("Complex", lambda p: p.is_complex(), "does not support complex parameters"),
        ):
            groups = enumerate(self.param_groups)
            found = [[i, j] for i, group in groups for j, param in enumerate(group["params"]) if of(param)]
            if found:
                raise ValueError(f"{refused} params at indices {found}: SparseAdam {why}")

    def step(self, closure: Any = None) -> Any:
        """Make a step for the rows that gradients have; RuntimeError for a dense gradient."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._step(group, param, param.grad)
        return loss

    def _step(self, group: dict[str, Any], param: Any, grad: Any) -> None:
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        own = self.state[param]
        if not own:
            own["step"] = 0
            own["exp_avg"], own["exp_avg_sq"] = zeros_like(param), zeros_like(param)
        if not grad._nnz():
            return
        own["step"] += 1
        beta1, beta2 = group["betas"]
        rows, values = rows_of(-grad if group["maximize"] else grad)
        towards(own["exp_avg"], rows, values, 1.0 - beta1)
        towards(own["exp_avg_sq"], rows, values * values, 1.0 - beta2)
        lr = as_float(group["lr"])
        size = lr * (1 - beta2 ** own["step"]) ** 0.5 / (1 - beta1 ** own["step"])
        moments = array_of(own["exp_avg"]), array_of(own["exp_avg_sq"])
        moved(param, rows, *moments, float(size), float(group["eps"]))


@RowUpdate
def towards(average: Any, rows: Any, values: Any, share: Any) -> Any:
    """A moving average with some rows moved."""
    old = average.at[rows].get(mode="fill", fill_value=0)
    return average.at[rows].add((values - old) * share.astype(values.dtype), mode="drop")


@RowUpdate
def moved(param: Any, rows: Any, first: Any, second: Any, size: Any, eps: Any) -> Any:
    """A parameter with some rows' steps made."""
    root = jnp.sqrt(second.at[rows].get(mode="fill", fill_value=1)) + eps.astype(param.dtype)
    step = first.at[rows].get(mode="fill", fill_value=0) / root
    return param.at[rows].add(-size.astype(param.dtype) * step, mode="drop")
