"""Bessel functions, spherical and modified ones among them, and Airy's; not differentiable, as PyTorch's.

J, Y and Ai far from zero are waves whose amplitudes are expanded (Abramowitz and Stegun, 9.2.5 and 10.4.60); the modified
ones of the second kind have their logarithm taken out near zero (9.6.11). The rest is Chebyshev series.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...checks import not_implemented_for
from ...dtypes import dtype_of
from ...operators.declare import pointwise
from ...operators.promotion import is_complex
from ...operators.schema import Array
from . import chebyshev_tables as tables
from .elementwise import unary
from .special import real_unary

__all__: list[str] = []

EDGE = 8.0  # where the series of J and Y change
TURN = 2.0  # where those of K do


def clenshaw(values: Sequence[float], u: Array) -> Array:
    """The Chebyshev series at u, by Clenshaw's recurrence."""
    one = [np.asarray(v, u.dtype) for v in values]
    ahead, after = jnp.zeros_like(u), jnp.zeros_like(u)
    for v in reversed(one[1:]):
        ahead, after = 2 * u * ahead - after + v, ahead
    return u * ahead - after + one[0]


def full_unary(name: str, function: Callable[[Array], Array], input: Array) -> Array:
    """`function` of the input as a float; NotImplementedError for complex numbers and short floats."""
    own = dtype_of(input)
    if is_complex(input) or (own.is_floating_point and own.itemsize < 4):
        raise not_implemented_for(f"{name}_cpu", own)
    return unary(function, input)


# ---- J and Y -------------------------------------------------------------------------------------------------------


def waves(order: int, x: Array) -> tuple[Array, Array]:
    """J and Y of positive x beyond the edge."""
    t = (EDGE / x) ** 2
    u = 2 * t - 1
    p = clenshaw((tables.P0_FAR, tables.P1_FAR)[order], u)
    q = clenshaw((tables.Q0_FAR, tables.Q1_FAR)[order], u) * (EDGE / x)
    scale = jnp.sqrt(2 / (math.pi * x))
    angle = x - math.pi * (0.25 + 0.5 * order)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return scale * (p * cos - q * sin), scale * (p * sin + q * cos)


def first_kind(order: int, x: Array) -> Array:
    size = jnp.abs(x)
    near = jnp.minimum(size, EDGE)
    inner = clenshaw((tables.J0_NEAR, tables.J1_NEAR)[order], near * near / 32 - 1)
    inner = inner * near if order else inner
    found = jnp.where(size <= EDGE, inner, waves(order, jnp.maximum(size, EDGE))[0])
    return jnp.copysign(jnp.ones_like(x), x) * found if order else jnp.where(x == 0, 1, found)


def second_kind(order: int, x: Array) -> Array:
    near = jnp.where((x > 0) & (x <= EDGE), x, 1)
    inner = clenshaw((tables.Y0_NEAR, tables.Y1_NEAR)[order], near * near / 32 - 1)
    logarithm = jnp.log(near) * first_kind(order, near)
    inner = (
        inner * near + (2 / math.pi) * (logarithm - 1 / near) if order else inner + (2 / math.pi) * logarithm
    )
    found = jnp.where(x <= EDGE, inner, waves(order, jnp.maximum(x, EDGE))[1])
    return jnp.where(x == 0, -jnp.inf, jnp.where(x < 0, jnp.nan, found))


@pointwise(name="special_bessel_j0", method=False, inplace=False, derivatives=None)
def bessel_j0(input: Array) -> Array:
    """The Bessel function of the first kind of order 0.

    Shape: `input` `(*)`, result `(*)`.
    Differs from PyTorch: which is off by up to 9e-7 above 5, in float64 too.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.2.
    """
    return full_unary("bessel_j0", lambda x: first_kind(0, x), input)


@pointwise(name="special_bessel_j1", method=False, inplace=False, derivatives=None)
def bessel_j1(input: Array) -> Array:
    """The Bessel function of the first kind of order 1.

    Shape: `input` `(*)`, result `(*)`.
    Differs from PyTorch: which is off by up to 9e-7 above 5, in float64 too.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.2.
    """
    return full_unary("bessel_j1", lambda x: first_kind(1, x), input)


@pointwise(name="special_bessel_y0", method=False, inplace=False, derivatives=None)
def bessel_y0(input: Array) -> Array:
    """The Bessel function of the second kind of order 0: -inf at 0, NaN below.

    Shape: `input` `(*)`, result `(*)`.
    Differs from PyTorch: which is off by up to 9e-7 above 5, in float64 too.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.2.
    """
    return full_unary("bessel_y0", lambda x: second_kind(0, x), input)


@pointwise(name="special_bessel_y1", method=False, inplace=False, derivatives=None)
def bessel_y1(input: Array) -> Array:
    """The Bessel function of the second kind of order 1: -inf at 0, NaN below.

    Shape: `input` `(*)`, result `(*)`.
    Differs from PyTorch: which is off by up to 9e-7 above 5, in float64 too.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.2.
    """
    return full_unary("bessel_y1", lambda x: second_kind(1, x), input)


@pointwise(name="special_spherical_bessel_j0", method=False, inplace=False, derivatives=None)
def spherical_bessel_j0(x: Array) -> Array:
    """The spherical Bessel function of the first kind of order 0: `sin(x) / x`.

    Shape: `x` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.47.
    """

    def of(x: Array) -> Array:
        infinite = jnp.isinf(x)
        safe = jnp.where((x == 0) | infinite, 1, x)
        return jnp.where(infinite, 0, jnp.where(x == 0, 1, jnp.sin(safe) / safe))

    return full_unary("spherical_bessel_j0", of, x)


# ---- modified ones -------------------------------------------------------------------------------------------------


def modified_second(order: int, x: Array, scaled: bool) -> Array:
    """K, times exp(x) if scaled."""
    near = jnp.where((x > 0) & (x <= TURN), x, 1)
    inner = clenshaw((tables.K0_NEAR, tables.K1_NEAR)[order], near * near / 2 - 1)
    if order:
        inner = inner / near + jnp.log(near / 2) * jax.scipy.special.i1(near)
    else:
        inner = inner - jnp.log(near / 2) * jax.scipy.special.i0(near)
    far = jnp.maximum(x, TURN)
    outer = clenshaw((tables.K0_FAR, tables.K1_FAR)[order], 4 / far - 1) / jnp.sqrt(far)
    if scaled:
        inner = inner * jnp.exp(near)
    else:
        outer = outer * jnp.exp(-far)
    found = jnp.where(x <= TURN, inner, outer)
    return jnp.where(x == 0, jnp.inf, jnp.where(x < 0, jnp.nan, found))


@pointwise(name="special_modified_bessel_i0", method=False, inplace=False, derivatives=None)
def modified_bessel_i0(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 0; `i0` has a derivative too.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.25.
    """
    return full_unary("modified_bessel_i0", jax.scipy.special.i0, input)


@pointwise(name="special_modified_bessel_i1", method=False, inplace=False, derivatives=None)
def modified_bessel_i1(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 1; `i1` has a derivative too.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.25.
    """
    return full_unary("modified_bessel_i1", jax.scipy.special.i1, input)


@pointwise(name="special_modified_bessel_k0", method=False, inplace=False, derivatives=None)
def modified_bessel_k0(input: Array) -> Array:
    """The modified Bessel function of the second kind of order 0: inf at 0, NaN below.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.25.
    """
    return full_unary("modified_bessel_k0", lambda x: modified_second(0, x, False), input)


@pointwise(name="special_modified_bessel_k1", method=False, inplace=False, derivatives=None)
def modified_bessel_k1(input: Array) -> Array:
    """The modified Bessel function of the second kind of order 1: inf at 0, NaN below.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.25.
    """
    return full_unary("modified_bessel_k1", lambda x: modified_second(1, x, False), input)


@pointwise(name="special_scaled_modified_bessel_k0", method=False, inplace=False, derivatives=None)
def scaled_modified_bessel_k0(x: Array) -> Array:
    """`exp(x) * modified_bessel_k0(x)`, without overflow.

    Shape: `x` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.25.
    """
    return full_unary("scaled_modified_bessel_k0", lambda x: modified_second(0, x, True), x)


@pointwise(name="special_scaled_modified_bessel_k1", method=False, inplace=False, derivatives=None)
def scaled_modified_bessel_k1(x: Array) -> Array:
    """`exp(x) * modified_bessel_k1(x)`, without overflow.

    Shape: `x` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.25.
    """
    return full_unary("scaled_modified_bessel_k1", lambda x: modified_second(1, x, True), x)


# ---- those of the first kind that have derivatives -----------------------------------------------------------------


def divided(numerator: Array, x: Array) -> Array:
    """`numerator / x`, and a half at 0, where these functions have slope a half."""
    zero = x == 0
    return jnp.where(zero, 0.5, numerator / jnp.where(zero, 1, x))


def i1_slope(x: Array) -> Array:
    return jnp.where(x == 0, 0.5, jax.scipy.special.i0(x) - divided(jax.scipy.special.i1(x), x))


def i1e_slope(x: Array) -> Array:
    own = lax.bessel_i1e(x)
    return jnp.where(x == 0, 0.5, lax.bessel_i0e(x) - jnp.sign(x) * own - divided(own, x))


@pointwise(
    name="special_i0e",
    method=False,
    inplace=False,
    derivatives=dict(
        input=lambda grad, input, result: grad * (unary(lax.bessel_i1e, input) - jnp.sign(input) * result)
    ),
)
def i0e(input: Array) -> Array:
    """`exp(-abs(input)) * i0(input)`, the exponentially scaled modified Bessel function of order 0.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.25.
    """
    return real_unary("i0e_cpu", lax.bessel_i0e, input)


@pointwise(
    name="special_i1",
    method=False,
    inplace=False,
    derivatives=dict(input=lambda grad, input: grad * unary(i1_slope, input)),
)
def i1(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 1.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.25.
    """
    return real_unary("i1_cpu", jax.scipy.special.i1, input)


@pointwise(
    name="special_i1e",
    method=False,
    inplace=False,
    derivatives=dict(input=lambda grad, input: grad * unary(i1e_slope, input)),
)
def i1e(input: Array) -> Array:
    """`exp(-abs(input)) * i1(input)`, the exponentially scaled modified Bessel function of order 1.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.25.
    """
    return real_unary("i1e_cpu", lax.bessel_i1e, input)


# ---- Airy's --------------------------------------------------------------------------------------------------------


def airy(x: Array) -> Array:
    middle = clenshaw(tables.AI_MIDDLE, (2 * jnp.clip(x, -5, 2) + 3) / 7)
    high = jnp.maximum(x, 2)
    zeta = high * jnp.sqrt(high) * (2 / 3)
    root = jnp.sqrt(jnp.sqrt(high))
    edge = 2 / 3 * 2**1.5
    decay = (
        clenshaw(tables.AI_DECAY, 2 * (edge / zeta) - 1) * jnp.exp(-zeta) / (2 * math.sqrt(math.pi) * root)
    )
    low = jnp.maximum(-x, 5)
    zeta = low * jnp.sqrt(low) * (2 / 3)
    root = jnp.sqrt(jnp.sqrt(low))
    ratio = (2 / 3 * 5**1.5) / zeta
    u = 2 * ratio * ratio - 1
    sine, cosine = clenshaw(tables.AI_SINE, u), clenshaw(tables.AI_COSINE, u) * ratio
    angle = zeta + math.pi / 4
    waves = (sine * jnp.sin(angle) - cosine * jnp.cos(angle)) / (math.sqrt(math.pi) * root)
    found = jnp.where(x > 2, decay, jnp.where(x < -5, waves, middle))
    return jnp.where(jnp.isfinite(x), found, jnp.nan)


@pointwise(name="special_airy_ai", method=False, inplace=False, derivatives=None)
def airy_ai(x: Array) -> Array:
    """The Airy function Ai; NaN at the infinities.

    Shape: `x` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 9.2.
    """
    return full_unary("airy_ai", airy, x)
