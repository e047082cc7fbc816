"""Muon (Jordan et al., 2024): momentum made orthogonal, for the matrices of hidden layers."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from ..tensor import Tensor
from .optimizer import ParamsT, RuleOptimizer, check_least, check_one_element, options_of

__all__ = ["Muon"]


COEFFICIENTS = (3.4445, -4.775, 2.0315)


def muon(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one matrix."""
    nesterov, steps, adjustment = flags
    lr, weight_decay, momentum, eps, *coefficients = numbers.exact
    kind = param.dtype
    buffer = state[0] + (1 - momentum).astype(kind) * (grad - state[0])
    update = grad + momentum.astype(kind) * (buffer - grad) if nesterov else buffer
    update = orthogonal(update, coefficients, steps, eps).astype(kind)
    rows, columns = param.shape
    ratio = 0.2 * math.sqrt(max(rows, columns)) if adjustment else math.sqrt(max(1, rows / columns))
    return param * (1 - lr * weight_decay).astype(kind) - (lr * ratio).astype(kind) * update, buffer


def orthogonal(matrix: Any, coefficients: list[Any], steps: int, eps: Any) -> Any:
    """The nearest matrix with orthonormal rows or columns, roughly: `steps` of Newton and Schulz in bfloat16."""
    short = jnp.bfloat16
    a, b, c = [number.astype(jnp.float32) for number in coefficients]
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.T if tall else matrix).astype(short).astype(jnp.float32)
    size = jnp.maximum(jnp.sqrt(jnp.sum(x * x)).astype(short).astype(jnp.float32), eps.astype(jnp.float32))
    x = (x / size.astype(short).astype(jnp.float32)).astype(short)

    def product(one: Any, two: Any) -> Any:
        return jnp.matmul(one, two, preferred_element_type=jnp.float32)

    for _ in range(steps):
        gram = product(x, x.T).astype(short)
        change = (b * gram.astype(jnp.float32) + c * product(gram, gram)).astype(short)
        x = (a * x.astype(jnp.float32) + product(change, x)).astype(short)
    return x.T if tall else x


class Muon(RuleOptimizer):
    """Steps by the momentum of a matrix, made orthogonal.

    Source: Jordan et al. 2024, kellerjordan.github.io/posts/muon.
    """

    rule = staticmethod(muon)
    counted = False
    options = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_one_element(lr)
        check_least("Learning rate", lr)
        check_least("momentum", momentum)
        check_least("weight decay", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, options_of(locals(), self.options))
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        if len(group["ns_coefficients"]) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        return (
            group["lr"],
            group["weight_decay"],
            group["momentum"],
            group["eps"],
            *group["ns_coefficients"],
        )

    def flags_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        if group["ns_steps"] >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        return bool(group["nesterov"]), group["ns_steps"], group["adjust_lr_fn"] == "match_rms_adamw"

    def states_for(self, group: dict[str, Any], param: Tensor) -> tuple[str, ...]:
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return ("momentum_buffer",)
