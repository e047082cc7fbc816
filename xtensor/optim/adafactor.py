"""Adafactor (Shazeer and Stern, 2018): mean squares of matrices kept as rows and columns."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..ops.create.creation import zeros
from ..tensor import Tensor
from .optimizer import ParamsT, RuleOptimizer, check_least, check_one_element, options_of

__all__ = ["Adafactor"]


def adafactor(flags: Any, numbers: Any, count: Any, param: Any, grad: Any, *state: Any) -> tuple[Any, ...]:
    """One step of one parameter; states are the row and column mean squares, or those of the elements of a vector."""
    maximize, decays, own_eps = flags
    lr, beta2_decay, eps2, d, weight_decay, *first = numbers.exact
    kind = param.dtype
    eps1 = first[0].astype(kind) if first else jnp.asarray(own_eps, kind)
    step = count + 1
    if maximize:
        grad = -grad
    rest = (step**beta2_decay).astype(kind)
    size = jnp.maximum(eps2, root_mean_square(param)) * jnp.minimum(lr, 1 / jnp.sqrt(step))
    if decays:
        param = param * (1 - lr * weight_decay).astype(kind)
    square = grad * grad
    if len(state) == 2:
        row, column = state
        row = row + rest * (jnp.mean(square, -1, keepdims=True) - row)
        column = column + rest * (jnp.mean(square, -2, keepdims=True) - column)
        mean = row * column / jnp.maximum(jnp.mean(row, -2, keepdims=True), eps1)
        made = (row, column)
    else:
        mean = state[0] + rest * (square - state[0])
        made = (mean,)
    update = grad / jnp.sqrt(jnp.maximum(mean, eps1 * eps1))
    clipped = size / jnp.maximum(1.0, root_mean_square(update) / d)
    return param - clipped.astype(kind) * update, *made


def root_mean_square(array: Any) -> Any:
    return jnp.sqrt(jnp.sum(array * array)).astype(jnp.float64) / array.size**0.5


class Adafactor(RuleOptimizer):
    """Steps relative to the size of the parameters, by mean squares whose memory is a row and a column per matrix.

    Source: Shazeer and Stern 2018, arXiv:1804.04235.
    """

    rule = staticmethod(adafactor)
    options = "lr beta2_decay eps d weight_decay foreach maximize"
    option_defaults = dict(foreach=None)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_one_element(lr)
        check_least("Learning rate", lr)
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            check_least("epsilon1", eps[0])
        check_least("epsilon2", eps[1])
        check_least("Clipping threshold d", d, 1)
        check_least("weight_decay", weight_decay)
        super().__init__(params, options_of(locals(), self.options))

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        eps1, eps2 = group["eps"]
        own = (group["lr"], group["beta2_decay"], eps2, group["d"], group["weight_decay"])
        return own if eps1 is None else (*own, eps1)

    def flags_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        first = next((p.dtype.numpy for p in group["params"] if p.grad is not None), None)
        own_eps = float(jnp.finfo(first).eps) if group["eps"][0] is None and first is not None else None
        return bool(group["maximize"]), group["weight_decay"] != 0, own_eps

    def states_for(self, group: dict[str, Any], param: Tensor) -> tuple[str, ...]:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        return ("row_var", "col_var") if param.dim() > 1 else ("variance",)

    def first_state(self, name: str, group: dict[str, Any], param: Tensor) -> Tensor:
        if name == "variance":
            return super().first_state(name, group, param)
        shape = list(param.shape)
        shape[-1 if name == "row_var" else -2] = 1
        return zeros(shape, dtype=param.dtype, device=param.device)
