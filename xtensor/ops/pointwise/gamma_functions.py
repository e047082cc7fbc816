"""Incomplete gamma functions and Hurwitz's zeta function."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ... import dtypes
from ...checks import not_implemented_for
from ...operators.declare import pointwise
from ...operators.derivatives import no_derivative
from ...operators.promotion import float_operands, is_float, needs_tensor, promote
from ...operators.schema import Array, Operand

__all__ = ["igamma", "igammac"]


# ---- incomplete gamma functions ------------------------------------------------------------------------------------


def igamma_other(grad: Array, input: Array, other: Array) -> Array:
    a, x, dtype = float_operands(input, other)
    return grad * jnp.exp((a - 1) * jnp.log(x) - x - lax.lgamma(a)).astype(dtype)


def incomplete(name: str, input: Array, other: Array, upper: bool) -> Array:
    """The lower or upper function, in float64: XLA's loses half of float32's digits where both are large."""
    first, _ = promote(input, other)
    if not is_float(first):
        raise not_implemented_for(f"{name}_cpu", dtypes.FROM_NUMPY[first.dtype])
    a, x = jnp.broadcast_arrays(input.astype(jnp.float64), other.astype(jnp.float64))
    usual = (a > 0) & (x > 0) & (a < jnp.inf) & (x < jnp.inf)
    found = (lax.igammac if upper else lax.igamma)(jnp.where(usual, a, 1), jnp.where(usual, x, 1))
    # What lies below x: all of it where a is 0 or x infinite, nothing where x is 0 or a infinite.
    ends = [
        ((a < 0) | (x < 0), jnp.nan),
        (a == 0, jnp.where(x > 0, 1, jnp.nan)),
        (x == 0, 0),
        (jnp.isinf(a), jnp.where(jnp.isinf(x), jnp.nan, 0)),
        (jnp.isinf(x), 1),
    ]
    below = jnp.select([where for where, _ in ends], [jnp.asarray(v, a.dtype) for _, v in ends], jnp.nan)
    return jnp.where(usual, found, 1 - below if upper else below).astype(first.dtype)


@pointwise(
    aliases=("special_gammainc",),
    derivatives=dict(input=no_derivative("igamma: input"), other=igamma_other),
)
def igamma(input: Array, other: Array) -> Array:
    """The regularized lower incomplete gamma function of shape `input` at `other`.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex, bool and integer tensors.

    Source: DLMF 8.2.
    """
    return incomplete("igamma", input, other, False)


@pointwise(
    aliases=("special_gammaincc",),
    derivatives=dict(
        input=no_derivative("igammac: input"),
        other=lambda grad, input, other: -igamma_other(grad, input, other),
    ),
)
def igammac(input: Array, other: Array) -> Array:
    """The regularized upper incomplete gamma function of shape `input` at `other`.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex, bool and integer tensors.

    Source: DLMF 8.2.
    """
    return incomplete("igammac", input, other, True)


# ---- zeta ----------------------------------------------------------------------------------------------------------


# B(2 j) / (2 j)!
BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)
START = 10  # from here on the sum is an integral with Euler's and Maclaurin's corrections


@jax.custom_jvp
def zeta_of(x: Array, q: Array) -> Array:
    """The sum of `(q + k) ** -x`: inf at x = 1 and at the poles of q, NaN for x below 1."""
    pole = (q <= 0) & (q == jnp.floor(q))
    # A negative base has a real power only for whole exponents.
    undefined = ((q < 0) & (x != jnp.floor(x))) | (jnp.isinf(x) & (q > 1))
    usual = ~(pole | undefined) & (x > 1) & (q == q)
    s, base = jnp.where(usual, x, 2), jnp.where(usual, q, START)

    def short(state: Any) -> Any:
        k, a, _ = state
        return (k < START) | jnp.any(a < START)

    def add(state: Any) -> Any:
        k, a, total = state
        more = (k < START) | (a < START)
        return k + 1, jnp.where(more, a + 1, a), jnp.where(more, total + jnp.power(a, -s), total)

    _, a, total = lax.while_loop(short, add, (jnp.zeros((), jnp.int32), base, jnp.zeros_like(base)))
    power = jnp.power(a, -s)
    tail = a / (s - 1) + 0.5
    term = s / a
    for j, b in enumerate(BERNOULLI):
        tail = tail + b * term
        term = term * (s + 2 * j + 1) / a * ((s + 2 * j + 2) / a)
    found = total + jnp.where(power == 0, 0, power * jnp.where(power == 0, 0, tail))
    odd = jnp.where((x == 1) | (pole & ~(x < 1)), jnp.inf, jnp.nan)
    return jnp.where(usual, found, odd)


@zeta_of.defjvp
def zeta_slope(primals: Any, tangents: Any) -> Any:
    """In q; there is no formula for the other, and nothing that asks for it."""
    (x, q), (_, dq) = primals, tangents
    return zeta_of(x, q), -x * zeta_of(x + 1, q) * dq


def zeta_other(grad: Array, input: Any, other: Any) -> Array:
    x, q, dtype = float_operands(input, other)
    return grad * (-x * zeta_of(x + 1, q)).astype(dtype)


@pointwise(
    name="special_zeta",
    method=False,
    inplace=False,
    derivatives=dict(input=no_derivative("zeta"), other=zeta_other),
)
def zeta(input: Operand, other: Operand) -> Array:
    """Hurwitz's zeta function: the sum of `(other + k) ** -input` over k from 0.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    Differs from PyTorch: 0 where `other` is inf, not NaN.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 25.11.
    """
    needs_tensor("special_zeta", input, other)
    x, q, dtype = float_operands(input, other)
    if not jnp.issubdtype(dtype, jnp.floating) or jnp.dtype(dtype).itemsize < 4:
        raise not_implemented_for("zeta_cpu", dtypes.FROM_NUMPY[dtype])
    return zeta_of(*jnp.broadcast_arrays(x, q)).astype(dtype)
