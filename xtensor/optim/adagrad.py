"""Adagrad (Duchi, Hazan and Singer, 2011): steps that shrink with the sum of squared gradients."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..ops.create.creation import full_like
from ..tensor import Tensor, array_of
from .optimizer import ParamsT, RuleOptimizer, as_float, check_fused, check_options, options_of
from .rows import RowUpdate, rows_of
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


@RowUpdate
def adagrad_total(total: Any, rows: Any, values: Any) -> Any:
    """The sums of squared gradients with some rows' added."""
    return total.at[rows].add(values * values, mode="drop")


@RowUpdate
def adagrad_rows(param: Any, rows: Any, values: Any, total: Any, size: Any, eps: Any) -> Any:
    """A parameter with some rows' steps made."""
    root = jnp.sqrt(total.at[rows].get(mode="fill", fill_value=1)) + eps.astype(param.dtype)
    return param.at[rows].add(-size.astype(param.dtype) * (values / root), mode="drop")


class Adagrad(RuleOptimizer):
    """Steps by the gradient over the root of the sum of all squared gradients so far.

    Source: Duchi, Hazan and Singer 2011, Journal of Machine Learning Research 12.
    """

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

    def sparse_step(
        self, group: dict[str, Any], param: Tensor, grad: Any, new: list[tuple[Tensor, Any]]
    ) -> None:
        """Make the step for the rows that the gradient has."""
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        own = self.state[param]
        own["step"] += 1
        lr, decay = as_float(group["lr"]), as_float(group["lr_decay"])
        size = lr / (1 + (float(own["step"]) - 1) * decay)
        rows, values = rows_of(-grad if group["maximize"] else grad)
        adagrad_total(own["sum"], rows, values)
        adagrad_rows(param, rows, values, array_of(own["sum"]), size, as_float(group["eps"]))

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], group["lr_decay"], group["weight_decay"], group["eps"]

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def first_state(self, name: str, group: dict[str, Any], param: Tensor) -> Tensor:
        start = group["initial_accumulator_value"]
        return full_like(param, complex(start, start) if param.is_complex() else start, requires_grad=False)
