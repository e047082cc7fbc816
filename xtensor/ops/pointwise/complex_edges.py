"""Functions of complex numbers at signed zeros, infinities and NaN, as C99's annex G has them; XLA's forget some of these.

The inverse functions have branch cuts on which the sign of a zero decides the side: `sqrt(-1 - 0j)` is `-1j`. They are computed where both parts
are positive, and the signs are put back: the functions are odd or even in either part. Real arguments pass through.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "log",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

Function = Callable[[jax.Array], jax.Array]


def parts_of(z: jax.Array) -> tuple[jax.Array, jax.Array]:
    return lax.real(z), lax.imag(z)


def among_complex(rule: Callable[[Function, jax.Array], jax.Array]) -> Callable[[Function], Function]:
    """A function of real numbers by `function`, and of complex ones by `rule(function, z)`."""

    def of(function: Function) -> Function:
        def run(z: jax.Array) -> jax.Array:
            return rule(function, z) if jnp.iscomplexobj(z) else function(z)

        return run

    return of


def lost(x: jax.Array, y: jax.Array) -> jax.Array:
    """Where one part is NaN and none infinite."""
    return (jnp.isnan(x) | jnp.isnan(y)) & ~jnp.isinf(x) & ~jnp.isinf(y)


def _asinh(z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of a number whose parts are not negative."""
    x, y = parts_of(z)
    found, angle = parts_of(lax.asinh(z))
    found = jnp.where(lost(x, y), jnp.nan, jnp.where(jnp.isinf(x) | jnp.isinf(y), jnp.inf, found))
    return found, jnp.where(jnp.isnan(x) & (y == 0), y, jnp.where(lost(x, y), jnp.nan, angle))


def _atanh(z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of a number whose parts are not negative."""
    x, y = parts_of(z)
    found, angle = parts_of(lax.atanh(z))
    gone = lost(x, y)
    found = jnp.where(gone & (x != 0), jnp.nan, found)
    found = jnp.where((gone & (x == 0)) | jnp.isinf(x) | jnp.isinf(y), 0.0, found)
    angle = jnp.where(gone | (jnp.isinf(x) & jnp.isnan(y)), jnp.nan, angle)
    return found, jnp.where(jnp.isinf(y), math.pi / 2, angle)


def _signed(value: jax.Array, sign: jax.Array) -> jax.Array:
    return jnp.copysign(jnp.abs(value), sign)


def _turned(function: Callable[[jax.Array], tuple[jax.Array, jax.Array]], z: jax.Array) -> jax.Array:
    """`-i function(i z)`."""
    x, y = parts_of(z)
    b, a = function(lax.complex(jnp.abs(y), jnp.abs(x)))
    return lax.complex(_signed(a, x), _signed(b, y))


def _upright(function: Callable[[jax.Array], tuple[jax.Array, jax.Array]], z: jax.Array) -> jax.Array:
    """`function(z)`, odd in either part."""
    x, y = parts_of(z)
    a, b = function(lax.complex(jnp.abs(x), jnp.abs(y)))
    return lax.complex(_signed(a, x), _signed(b, y))


def _acos(z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of a number above the real axis; the imaginary part as it is below, which is positive."""
    x, y = parts_of(z)
    angle, height = parts_of(lax.acos(z))
    gone = lost(x, y)
    endless = jnp.isinf(x) | jnp.isinf(y)
    angle = jnp.where(gone & (x == 0), math.pi / 2, jnp.where(gone & (x != 0), jnp.nan, angle))
    angle = jnp.where(endless & (jnp.isnan(x) | jnp.isnan(y)), jnp.nan, angle)
    return angle, jnp.where(gone, jnp.nan, jnp.where(endless, jnp.inf, jnp.abs(height)))


@among_complex
def _by_asinh(function: Function, z: jax.Array) -> jax.Array:
    return _upright(_asinh, z)


@among_complex
def _by_atanh(function: Function, z: jax.Array) -> jax.Array:
    return _upright(_atanh, z)


@among_complex
def _turned_asinh(function: Function, z: jax.Array) -> jax.Array:
    return _turned(_asinh, z)


@among_complex
def _turned_atanh(function: Function, z: jax.Array) -> jax.Array:
    return _turned(_atanh, z)


@among_complex
def _by_acos(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    angle, height = _acos(lax.complex(x, jnp.abs(y)))
    return lax.complex(angle, _signed(height, -y))


@among_complex
def _turned_acos(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    angle, height = _acos(lax.complex(x, jnp.abs(y)))
    # Of 0 + NaN i the angle is known and the height is not.
    return lax.complex(height, _signed(angle, y))


@among_complex
def _root(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    a, b = parts_of(function(lax.complex(x, jnp.abs(y))))
    a = jnp.where(jnp.isinf(y) | (x == jnp.inf), jnp.inf, a)
    b = jnp.where(
        jnp.isinf(y) | (x == -jnp.inf), jnp.inf, jnp.where((x == jnp.inf) & jnp.isnan(y), jnp.nan, b)
    )
    a = jnp.where((x == -jnp.inf) & jnp.isnan(y), jnp.nan, a)
    return lax.complex(a, _signed(b, y))


@among_complex
def _logarithm(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    a, b = parts_of(function(z))
    return lax.complex(jnp.where(jnp.isinf(x) | jnp.isinf(y), jnp.inf, a), b)


def _endless(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Where the angle is no number, of an infinite length and of none."""
    unknown = ~jnp.isfinite(y)
    return unknown & jnp.isinf(x), unknown & (x == 0)


@among_complex
def _exponential(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    a, b = parts_of(function(z))
    endless, _ = _endless(x, y)
    a = jnp.where(endless, jnp.where(x > 0, jnp.inf, 0.0), a)
    return lax.complex(a, jnp.where(y == 0, y, jnp.where(endless, jnp.where(x > 0, jnp.nan, 0.0), b)))


@among_complex
def _hyperbolic_sine(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    a, b = parts_of(function(z))
    endless, none = _endless(x, y)
    a = jnp.where(x == 0, jnp.where(~none & (jnp.cos(y) < 0), -x, x), jnp.where(endless, x, a))
    return lax.complex(a, jnp.where(y == 0, y, b))


@among_complex
def _hyperbolic_cosine(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    a, b = parts_of(function(z))
    endless, none = _endless(x, y)
    b = jnp.where(y == 0, jnp.copysign(jnp.where(jnp.isnan(x), 0.0, 1.0), x) * y, jnp.where(none, 0.0, b))
    b = jnp.where((x == 0) & ~none, jnp.copysign(0.0, x) * jnp.sin(y), b)
    return lax.complex(jnp.where(endless, jnp.inf, a), b)


@among_complex
def _hyperbolic_tangent(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    a, b = parts_of(function(z))
    _, none = _endless(x, y)
    return lax.complex(jnp.where(none, x, _signed(a, x)), jnp.where(y == 0, y, b))


@among_complex
def _sine(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    a, b = parts_of(function(z))
    endless, none = _endless(y, x)
    b = jnp.where(y == 0, jnp.where(~none & (jnp.cos(x) < 0), -y, y), jnp.where(endless, y, b))
    return lax.complex(jnp.where(x == 0, x, a), b)


@among_complex
def _cosine(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    a, b = parts_of(function(z))
    endless, none = _endless(y, x)
    b = jnp.where(x == 0, jnp.copysign(jnp.where(jnp.isnan(y), 0.0, 1.0), -y) * x, jnp.where(none, 0.0, b))
    b = jnp.where((y == 0) & ~none, jnp.copysign(0.0, -y) * jnp.sin(x), b)
    return lax.complex(jnp.where(endless, jnp.inf, a), b)


@among_complex
def _tangent(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    a, b = parts_of(function(z))
    _, none = _endless(y, x)
    return lax.complex(jnp.where(x == 0, x, a), jnp.where(none, y, _signed(b, y)))


@among_complex
def _less_one(function: Function, z: jax.Array) -> jax.Array:
    x, y = parts_of(z)
    a, b = parts_of(function(z))
    endless, _ = _endless(x, y)
    a = jnp.where(endless, jnp.where(x > 0, jnp.inf, -1.0), a)
    return lax.complex(a, jnp.where(y == 0, y, jnp.where(endless, jnp.where(x > 0, jnp.nan, 0.0), b)))


asin, acos, atan = _turned_asinh(jnp.arcsin), _by_acos(jnp.arccos), _turned_atanh(jnp.arctan)
asinh, acosh = _by_asinh(jnp.arcsinh), _turned_acos(jnp.arccosh)
sqrt, exp = _root(jnp.sqrt), _exponential(jnp.exp)
sin, cos, tan, expm1 = _sine(jnp.sin), _cosine(jnp.cos), _tangent(jnp.tan), _less_one(jnp.expm1)
sinh, cosh, tanh = _hyperbolic_sine(jnp.sinh), _hyperbolic_cosine(jnp.cosh), _hyperbolic_tangent(jnp.tanh)


def atanh(function: Function) -> Function:
    """The inverse hyperbolic tangent, of real numbers by `function`."""
    return _by_atanh(function)


def log(function: Function) -> Function:
    """A logarithm, to whatever base `function` has."""
    return _logarithm(function)
