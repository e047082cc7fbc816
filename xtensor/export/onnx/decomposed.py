"""Primitives on every element that ONNX lacks, as functions of arrays made of those that it has."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .kernels import decomposition

__all__: list[str] = []

# ---- near zero and one


@decomposition("log1p")
def log1p(x: Any, **rest: Any) -> Any:
    # What rounding takes from 1 + x, dividing by u - 1 gives back.
    u = 1 + x
    near = jnp.where(u == 1, x, jnp.log(u) * x / jnp.where(u == 1, 1, u - 1))
    return jnp.where(jnp.abs(x) > 0.5, jnp.log(u), near)


@decomposition("expm1")
def expm1(x: Any, **rest: Any) -> Any:
    u = jnp.exp(x)
    odd = (u == 1) | (u <= 0)
    near = jnp.where(odd, x, (u - 1) * x / jnp.log(jnp.where(odd, 2, u)))
    return jnp.where(jnp.abs(x) > 0.5, u - 1, near)


@decomposition("erfc")
def erfc(x: Any, **rest: Any) -> Any:
    # A Chebyshev series for the tail, 1.2e-7 relative everywhere.
    a = jnp.abs(x)
    t = 1 / (1 + a / 2)
    series = -a * a - 1.26551223
    terms = (
        1.00002368,
        0.37409196,
        0.09678418,
        -0.18628806,
        0.27886807,
        -1.13520398,
        1.48851587,
        -0.82215223,
        0.17087277,
    )
    power = t
    for term in terms:
        series, power = series + term * power, power * t
    tail = t * jnp.exp(series)
    return jnp.where(a < 0.5, 1 - jax.lax.erf(x), jnp.where(x > 0, tail, 2 - tail))


@decomposition("erf_inv")
def erf_inv(x: Any, **rest: Any) -> Any:
    w = -jnp.log((1 - x) * (1 + x))
    near, far = w - 2.5, jnp.sqrt(w) - 3
    middle = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727,
              1.50140941)  # fmt: skip
    ends = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406,
            2.83297682)  # fmt: skip
    found = jnp.where(w < 5, polynomial(middle, near), polynomial(ends, far)) * x
    if x.dtype == np.float64:  # two steps of Newton's method
        for _ in range(2):
            found = found - (jax.lax.erf(found) - x) / (2 / math.sqrt(math.pi) * jnp.exp(-found * found))
    return jnp.where(jnp.abs(x) == 1, x * np.inf, found)


def polynomial(coefficients: Any, x: Any) -> Any:
    """A polynomial, the highest power first."""
    found = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        found = found * x + coefficient
    return found


# ---- gamma functions

LANCZOS = (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
           -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)  # fmt: skip


def log_gamma_above(x: Any) -> Any:
    """Log gamma(x) for x >= 0.5, by Lanczos' sum."""
    z = x - 1
    total = jnp.full_like(x, LANCZOS[0])
    for at, factor in enumerate(LANCZOS[1:], 1):
        total = total + factor / (z + at)
    t = z + 7.5
    # (z + 0.5) * log(t) - t in parts that do not cancel.
    return (z + 0.5) * (jnp.log(t) - 1) - 7 + jnp.log(total) + 0.5 * math.log(2 * math.pi)


@decomposition("lgamma")
def lgamma(x: Any, **rest: Any) -> Any:
    below = x < 0.5
    above = log_gamma_above(jnp.where(below, 1 - x, x))
    part = jnp.abs(x) - jnp.floor(jnp.abs(x))
    sine = jnp.abs(jnp.sin(math.pi * part))
    found = jnp.where(below, math.log(math.pi) - jnp.log(sine) - above, above)
    found = jnp.where((x <= 0) & (x == jnp.floor(x)), np.inf, found)
    return jnp.where(jnp.isinf(x), np.inf, found)


@decomposition("digamma")
def digamma(x: Any, **rest: Any) -> Any:
    below = x < 0.5
    y = jnp.where(below, 1 - x, x)
    shift = jnp.zeros_like(y)
    for _ in range(8):
        low = y < 8
        shift = shift + jnp.where(low, 1 / y, 0)
        y = jnp.where(low, y + 1, y)
    inverse = 1 / (y * y)
    series = polynomial((-1 / 12, 691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12, 0.0), inverse)
    found = jnp.log(y) - 0.5 / y + series - shift
    part = x - jnp.floor(x)
    found = jnp.where(below, found - math.pi * jnp.cos(math.pi * part) / jnp.sin(math.pi * part), found)
    found = jnp.where((x <= 0) & (x == jnp.floor(x)), np.nan, found)
    # 1 / x tells the sign of a zero.
    return jnp.where(x == 0, -1 / x, found)


def incomplete(a: Any, x: Any) -> tuple[Any, Any]:
    """The lower and the upper regularized incomplete gamma function: a series below a + 1, a continued fraction above."""
    steps = 400
    scale = jnp.exp(a * jnp.log(x) - x - lgamma(a))
    low = x < a + 1

    def add(n: Any, state: Any) -> Any:
        term, total = state
        term = term * x / (a + n + 1)
        return term, total + term

    start = 1 / a
    _, series = jax.lax.fori_loop(0, steps, add, (start, start))
    tiny = np.finfo(x.dtype).tiny * 1e10

    def deepen(n: Any, state: Any) -> Any:
        b, c, d, h = state
        i = (n + 1).astype(x.dtype)
        an, b = -i * (i - a), b + 2
        d, c = an * d + b, b + an / c
        d, c = jnp.where(jnp.abs(d) < tiny, tiny, d), jnp.where(jnp.abs(c) < tiny, tiny, c)
        return b, c, 1 / d, h * c / d

    b = jnp.where(low, 3 + a, x) + 1 - a
    first = 1 / b
    _, _, _, fraction = jax.lax.fori_loop(0, steps, deepen, (b, jnp.full_like(b, 1 / tiny), first, first))
    lower, upper = series * scale, fraction * scale
    return jnp.where(low, lower, 1 - upper), jnp.where(low, 1 - lower, upper)


def bounded(a: Any, x: Any, at_zero: Any, found: Any) -> Any:
    """The values at the ends, and outside."""
    found = jnp.where(x == 0, at_zero, jnp.where(jnp.isinf(x), 1 - at_zero, found))
    found = jnp.where((a == 0) & (x > 0), 1 - at_zero, found)
    found = jnp.where(jnp.isinf(a) & jnp.isfinite(x), at_zero, found)
    odd = (
        (x < 0)
        | (a < 0)
        | jnp.isnan(x)
        | jnp.isnan(a)
        | ((a == 0) & (x == 0))
        | (jnp.isinf(a) & jnp.isinf(x))
    )
    return jnp.where(odd, np.nan, found)


@decomposition("igamma")
def igamma(a: Any, x: Any, **rest: Any) -> Any:
    return bounded(a, x, 0.0, incomplete(a, x)[0])


@decomposition("igammac")
def igammac(a: Any, x: Any, **rest: Any) -> Any:
    return bounded(a, x, 1.0, incomplete(a, x)[1])


@decomposition("zeta")
def zeta(s: Any, q: Any, **rest: Any) -> Any:
    count = 9
    total = sum(((q + n) ** -s for n in range(1, count)), q**-s)
    a = q + count
    total = total + a ** (1 - s) / (s - 1) + 0.5 * a**-s
    # Euler's and Maclaurin's terms: Bernoulli numbers over factorials.
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    rising, power = s, a ** (-s - 1)
    for k, number in enumerate(bernoulli, 1):
        total = total + number / math.factorial(2 * k) * rising * power
        rising, power = rising * (s + 2 * k - 1) * (s + 2 * k), power / (a * a)
    found = jnp.where(s == 1, np.inf, total)
    whole = (q <= 0) & (q == jnp.floor(q))
    return jnp.where(s < 1, np.nan, jnp.where(whole, np.inf, found))


@decomposition("polygamma")
def polygamma(n: Any, x: Any, **rest: Any) -> Any:
    sign = 1 - 2 * jnp.abs((n + 1) - 2 * jnp.floor((n + 1) / 2))
    found = sign * jnp.exp(lgamma(n + 1)) * zeta(n + 1, x)
    return jnp.where(n == 0, digamma(x), found)


# ---- Bessel functions


def power_series(x: Any, order: int) -> Any:
    """The series of I0 or I1 for small arguments."""
    square = x * x / 4
    term = jnp.ones_like(x) if order == 0 else x / 2
    total = term
    for k in range(1, 40):
        term = term * square / (k * (k + order))
        total = total + term
    return total


def asymptotic(x: Any, order: int) -> Any:
    """exp(-x) times I0 or I1, for large arguments."""
    mu, term, total = 4 * order * order, jnp.ones_like(x), jnp.ones_like(x)
    for k in range(1, 16):
        term = -term * (mu - (2 * k - 1) ** 2) / (k * 8 * x)
        total = total + term
    return total / jnp.sqrt(2 * math.pi * x)


def scaled_bessel(x: Any, order: int) -> Any:
    a = jnp.abs(x)
    near = jnp.minimum(a, 16)
    return jnp.where(
        a <= 16, power_series(near, order) * jnp.exp(-near), asymptotic(jnp.maximum(a, 16), order)
    )


@decomposition("bessel_i0e")
def bessel_i0e(x: Any, **rest: Any) -> Any:
    return scaled_bessel(x, 0)


@decomposition("bessel_i1e")
def bessel_i1e(x: Any, **rest: Any) -> Any:
    return jnp.sign(x) * scaled_bessel(x, 1)


# ---- angles, roots, scans


@decomposition("atan2")
def atan2(y: Any, x: Any, **rest: Any) -> Any:
    far = jnp.isinf(x) & jnp.isinf(y)
    ratio = jnp.where(far, jnp.sign(y) * jnp.sign(x), y / jnp.where(x == 0, 1, x))
    below = (x < 0) | ((x == 0) & (1 / x < 0))
    negative = (y < 0) | ((y == 0) & (1 / y < 0))
    half = jnp.where(negative, -math.pi, math.pi).astype(x.dtype)
    found = jnp.arctan(ratio) + jnp.where(below, half, 0)
    upright = jnp.where(y == 0, jnp.where(below, half, y), half / 2)
    found = jnp.where(x == 0, upright, found)
    found = jnp.where((y == 0) & (x != 0), jnp.where(below, half, y), found)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), np.nan, found)


@decomposition("cbrt")
def cbrt(x: Any, **rest: Any) -> Any:
    return jnp.sign(x) * jnp.abs(x) ** (1 / 3)


@decomposition("cumlogsumexp")
def cumlogsumexp(x: Any, axis: int, reverse: bool, **rest: Any) -> Any:
    highest = jax.lax.cummax(x, axis=axis, reverse=reverse)
    size = x.shape[axis]
    moved, top = jnp.moveaxis(x, axis, -1), jnp.moveaxis(highest, axis, -1)
    seen = np.tril(np.ones((size, size), bool))
    seen = seen.T if reverse else seen
    safe = jnp.where(jnp.isinf(top), 0, top)
    terms = jnp.where(seen, jnp.exp(moved[..., None, :] - safe[..., :, None]), 0)
    found = jnp.where(top == np.inf, np.inf, jnp.log(terms.sum(-1)) + safe)
    return jnp.moveaxis(found, -1, axis)


@decomposition("reduce_xor")
def reduce_xor(x: Any, axes: Any, **rest: Any) -> Any:
    for axis in sorted(axes, reverse=True):
        parts = [jax.lax.index_in_dim(x, i, axis, keepdims=False) for i in range(x.shape[axis])]
        x = parts[0]
        for part in parts[1:]:
            x = x ^ part
    return x


@decomposition("ragged_dot_general")
def ragged_dot(x: Any, y: Any, sizes: Any, ragged_dot_dimension_numbers: Any, **rest: Any) -> Any:
    numbers = ragged_dot_dimension_numbers
    (left, right), (batch, _) = numbers.dot_dimension_numbers
    if (
        batch
        or tuple(numbers.lhs_ragged_dimensions) != (0,)
        or tuple(numbers.rhs_group_dimensions) != (0,)
        or left != (1,)
        or right != (1,)
    ):
        raise NotImplementedError("products of rows in groups along other dimensions")
    ends = jnp.cumsum(sizes)
    rows = jnp.arange(x.shape[0], dtype=ends.dtype)[:, None]
    own = (rows < ends) & (rows >= ends - sizes)
    return jnp.einsum("mg,mk,gkn->mn", own.astype(x.dtype), x, y)


# ---- bits of numbers


@decomposition("bitcast_convert_type")
def bitcast(x: Any, new_dtype: Any, **rest: Any) -> Any:
    old, new = np.dtype(x.dtype), np.dtype(new_dtype)
    if old.itemsize != new.itemsize or "c" in (old.kind, new.kind):
        raise NotImplementedError("bits of another width")
    if old.kind != "f" and new.kind != "f":
        return x.astype(new)
    if old.kind == "f":
        return bits_of(x).astype(new)
    return float_of(x.astype(np.dtype(f"int{old.itemsize * 8}")), new)


def power_of_two(exponent: Any, dtype: Any) -> Any:
    """Two to whole powers, exactly, from a table."""
    info = np.finfo(dtype)
    low = info.minexp - info.nmant
    table = np.ldexp(np.ones((), dtype), np.arange(low, info.maxexp + 1)).astype(dtype)
    return jnp.asarray(table)[jnp.clip(exponent - low, 0, len(table) - 1)]


def bits_of(x: Any) -> Any:
    """The bits of floating point numbers, by arithmetic that rounds nothing."""
    info = np.finfo(x.dtype)
    wide, mantissa, bias = np.dtype(f"int{info.bits}"), info.nmant, info.maxexp - 1
    a = jnp.abs(x)
    tiny = a < info.tiny
    source = jnp.where(tiny | jnp.isinf(a) | jnp.isnan(a), 1, a)
    exponent = jnp.clip(
        jnp.floor(jnp.log(source) * (1 / math.log(2))).astype(wide), info.minexp, info.maxexp - 1
    )
    exponent = exponent - (source < power_of_two(exponent, x.dtype)).astype(wide)
    exponent = exponent + (source >= 2 * power_of_two(exponent, x.dtype)).astype(wide)
    fraction = source / power_of_two(exponent, x.dtype) - 1
    usual = (exponent + bias) * 2**mantissa + (fraction * 2.0**mantissa).astype(wide)
    small = (a * 2.0**bias * 2.0 ** (mantissa - 1)).astype(wide)
    found = jnp.where(tiny, small, usual)
    found = jnp.where(jnp.isinf(a), (2 * bias + 1) * 2**mantissa, found)
    found = jnp.where(jnp.isnan(a), (2 * bias + 1) * 2**mantissa + 2 ** (mantissa - 1), found)
    negative = (x < 0) | ((x == 0) & (1 / x < 0))
    return jnp.where(negative, found + np.iinfo(wide).min, found)


def float_of(bits: Any, dtype: Any) -> Any:
    """The floating point numbers of bits."""
    info = np.finfo(dtype)
    mantissa, bias = info.nmant, info.maxexp - 1
    negative = bits < 0
    rest = jnp.where(negative, bits - np.iinfo(bits.dtype).min, bits)
    exponent, fraction = rest // 2**mantissa, (rest % 2**mantissa).astype(dtype)
    usual = (1 + fraction * 2.0**-mantissa) * power_of_two(exponent - bias, dtype)
    small = fraction * info.smallest_subnormal
    found = jnp.where(exponent == 0, small, usual)
    special = jnp.where(fraction == 0, np.inf, np.nan).astype(dtype)
    found = jnp.where(exponent == 2 * bias + 1, special, found)
    return jnp.where(negative, -found, found)


@decomposition("nextafter")
def nextafter(x: Any, y: Any, **rest: Any) -> Any:
    bits = bits_of(x)
    up = (y > x) == (x > 0)
    moved = float_of(bits + jnp.where(up, 1, -1).astype(bits.dtype), x.dtype)
    least = np.finfo(x.dtype).smallest_subnormal
    found = jnp.where(x == 0, jnp.sign(y) * least, moved)
    found = jnp.where(x == y, y, found)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), np.nan, found)
