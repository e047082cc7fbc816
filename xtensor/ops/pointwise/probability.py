"""Functions of probability and information: the normal distribution's, the scaled error function, entropies."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ... import dtypes
from ...checks import not_implemented_for
from ...operators.declare import pointwise
from ...operators.promotion import float_operands, is_complex, needs_tensor
from ...operators.schema import Array, Operand
from . import chebyshev_tables as tables
from .accurate import log1p
from .bessel import clenshaw, full_unary
from .special import real_unary

__all__: list[str] = []

SQRT_2, SQRT_PI = math.sqrt(2), math.sqrt(math.pi)


# ---- the scaled error function -------------------------------------------------------------------------------------


@jax.custom_jvp
def scaled_erfc(x: Array) -> Array:
    """`exp(x * x) * erfc(x)`: `(1 + 2 x)` times it in Chebyshev polynomials of `(x - 3.75) / (x + 3.75)`.

    Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf" (1981).
    """
    size = jnp.abs(x)
    finite = jnp.where(jnp.isinf(size), 1, size)
    positive = clenshaw(tables.ERFCX, (finite - 3.75) / (finite + 3.75)) / (1 + 2 * finite)
    positive = jnp.where(size == 0, 1, jnp.where(jnp.isinf(size), 0, positive))
    return jnp.where(x < 0, 2 * squared_exponential(jnp.where(x < 0, x, 0)) - positive, positive)


def squared_exponential(x: Array) -> Array:
    """`exp(x * x)`, the square's rounding error made good."""
    bits = 2.0 ** (12 if x.dtype == jnp.float32 else 27) + 1
    split = jnp.where(jnp.abs(x) < 1e4, x, 1) * bits
    high = split - (split - jnp.where(jnp.abs(x) < 1e4, x, 1))
    low = jnp.where(jnp.abs(x) < 1e4, x, 1) - high
    product = x * x
    error = (high * high - product) + 2 * high * low + low * low
    error = jnp.where(jnp.abs(x) < 1e4, error, 0)
    return jnp.exp(product) * (1 + error)


@scaled_erfc.defjvp
def scaled_erfc_slope(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    y = scaled_erfc(x)
    return y, t * (2 * x * y - 2 / SQRT_PI)


@pointwise(
    name="special_erfcx",
    method=False,
    inplace=False,
    derivatives=dict(input=lambda grad, input, result: grad * (2 * input * result - 2 / SQRT_PI)),
)
def erfcx(input: Array) -> Array:
    """`exp(input * input) * erfc(input)`, which neither overflows nor vanishes for large elements.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 7.2.
    """
    return full_unary("erfcx", scaled_erfc, input)


# ---- the normal distribution ---------------------------------------------------------------------------------------


@pointwise(
    name="special_ndtr",
    method=False,
    inplace=False,
    derivatives=dict(input=lambda grad, input: grad * jnp.exp(-(input * input) / 2) / math.sqrt(2 * math.pi)),
)
def ndtr(input: Array) -> Array:
    """The standard normal distribution's cumulative function.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 7.2.
    """

    def of(x: Array) -> Array:
        scaled = x / SQRT_2
        return jnp.where(jnp.abs(scaled) < 1, 0.5 * (1 + lax.erf(scaled)), 0.5 * lax.erfc(-scaled))

    return real_unary("erf_vml_cpu", of, input)


def log_ndtr_of(x: Array) -> Array:
    low = jnp.where(x < -1, x, -1)
    infinite = jnp.isinf(low)
    low = jnp.where(infinite, -1, low)
    tail = jnp.log(scaled_erfc(-low / SQRT_2) / 2) - low * low / 2
    high = jnp.where(x < -1, -1, x)
    found = jnp.where(x < -1, jnp.where(infinite, -jnp.inf, tail), log1p(-lax.erfc(high / SQRT_2) / 2))
    return jnp.where(jnp.isnan(x), x, found)


@pointwise(
    name="special_log_ndtr",
    method=False,
    inplace=False,
    derivatives=dict(input=lambda grad, input: grad / scaled_erfc(-input / SQRT_2) * math.sqrt(2 / math.pi)),
)
def log_ndtr(input: Array) -> Array:
    """The logarithm of `ndtr`, exact far below zero.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 7.2.
    """
    return full_unary("log_ndtr", log_ndtr_of, input)


@pointwise(
    name="special_ndtri",
    method=False,
    inplace=False,
    derivatives=dict(input=lambda grad, result: grad * jnp.exp(result * result / 2) * math.sqrt(2 * math.pi)),
)
def ndtri(input: Array) -> Array:
    """The inverse of `ndtr`: -inf at 0, inf at 1, NaN outside.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 7.17.
    """

    def of(x: Array) -> Array:
        inside = (x > 0) & (x < 1)
        found = jax.scipy.special.ndtri(jnp.where(inside, x, 0.5))
        outside = jnp.where(x == 0, -jnp.inf, jnp.where(x == 1, jnp.inf, jnp.nan))
        return jnp.where(inside, found, outside)

    return full_unary("ndtri", of, input)


# ---- entropies -----------------------------------------------------------------------------------------------------


def entr_of(x: Array) -> Array:
    safe = jnp.where(x > 0, x, 1)
    found = jnp.where(x > 0, -x * jnp.log(safe), jnp.where(x == 0, 0, -jnp.inf))
    return jnp.where(jnp.isnan(x), x, found)


@pointwise(
    name="special_entr",
    method=False,
    inplace=False,
    derivatives=dict(input=lambda grad, input: grad * (-jnp.log(input) - 1)),
)
def entr(input: Array) -> Array:
    """`-input * log(input)`: 0 at 0, -inf below.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: Shannon 1948, Bell System Technical Journal 27.
    """
    return real_unary("entr_cpu", entr_of, input)


def xlog1py_input(grad: Array, input: Any, other: Any) -> Array:
    x, y, _ = float_operands(input, other)
    flat = (x == 0) & (y <= -1)
    return jnp.where(flat, 0, grad * log1p(jnp.where(flat, 0, y)))


@pointwise(
    name="special_xlog1py",
    method=False,
    inplace=False,
    derivatives=dict(input=xlog1py_input, other=lambda grad, input, other: grad * input / (other + 1)),
)
def xlog1py(input: Operand, other: Operand) -> Array:
    """`input * log1p(other)`, and 0 where `input` is 0 and `other` is no NaN.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.
    """
    needs_tensor("special_xlog1py", input, other)
    a, b, dtype = float_operands(input, other)
    if is_complex(a):
        raise not_implemented_for("xlog1py_cpu", dtypes.FROM_NUMPY[dtype])
    return (a * log1p(jnp.where((a == 0) & (b == b), 0, b))).astype(dtype)
