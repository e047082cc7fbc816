"""A step that autograd follows, for `differentiable=True`: the rule of one parameter as an operator on Tensors."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..operators.derivatives import FROM_KERNEL
from ..operators.operator import Operator
from ..operators.schema import Array, Arrays, read_schema
from ..ops.create.ingest import tensor as make_tensor
from ..tensor import Tensor
from .update import Work, apply_rule

__all__ = ["run_differentiable"]


def optimizer_step(tensors: Arrays, rule: Any, flags: Any, states: int) -> tuple[Array, ...]:
    """The new parameter and states from parameter, states, gradient, count and hyperparameters, in this order."""
    mutable, (grad, count, *numbers) = tensors[: states + 1], tensors[states + 1 :]
    return apply_rule(rule, flags, list(numbers), count, mutable, grad)


operator = Operator(
    "general", "optimizer_step", read_schema(optimizer_step, "optimizer_step"), optimizer_step, FROM_KERNEL
)


def as_operand(value: Any, param: Tensor) -> Tensor:
    """A hyperparameter as float64 on the parameter's device; one that is a Tensor keeps its history."""
    if isinstance(value, Tensor):
        return value.to(dtype=dtypes.float64, device=param.device).reshape(())
    return make_tensor(float(value), dtype=dtypes.float64, device=param.device)


def run_differentiable(work: Work, numbers: tuple[Any, ...]) -> None:
    """Write the new values of parameters and states in place, with their history."""
    for param, grad, states, count in zip(work.params, work.grads, work.states, work.counts, strict=True):
        operands = [as_operand(value, param) for value in (count, *numbers)]
        # What the operator saves must not be what is written here.
        old = [tensor.clone() for tensor in (param, *states)]
        made = operator.call(([*old, grad, *operands], work.rule, work.flags, len(states)))
        for target, value in zip((param, *states), made, strict=True):
            target.copy_(value)
