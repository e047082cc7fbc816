"""Arithmetic, element by element."""

from __future__ import annotations

import jax.numpy as jnp

from .declare import pointwise
from .promotion import promote, promote_float
from .schema import Array, Number, Operand

__all__ = ["add", "mul", "tanh"]


@pointwise(derivatives=dict(input=lambda grad: grad, other=lambda grad, alpha: grad * jnp.conj(alpha)))
def add(input: Array, other: Operand, *, alpha: Number = 1) -> Array:
    """`input + alpha * other`, element by element."""
    a, b = promote(input, other)
    return a + b if isinstance(alpha, int) else a + b * alpha.astype(a.dtype)


@pointwise(
    aliases=("multiply",),
    derivatives=dict(
        input=lambda grad, other: grad * jnp.conj(other), other=lambda grad, input: grad * jnp.conj(input)
    ),
)
def mul(input: Array, other: Operand) -> Array:
    """`input * other`, element by element."""
    a, b = promote(input, other)
    return a * b


@pointwise(derivatives=dict(input=lambda grad, result: grad * jnp.conj(1 - result * result)))
def tanh(input: Array) -> Array:
    """The hyperbolic tangent of every element."""
    (x,) = promote_float(input)
    return jnp.tanh(x)
