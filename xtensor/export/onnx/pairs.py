"""Primitives of complex numbers, as functions of pairs of arrays: the real and the imaginary parts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .kernels import decomposition

__all__: list[str] = []


@decomposition("mul", pairs=True)
def complex_mul(x: Any, y: Any, **rest: Any) -> Any:
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


@decomposition("div", pairs=True)
def complex_div(x: Any, y: Any, **rest: Any) -> Any:
    (a, b), (c, d) = x, y
    # The divisor is brought to about one, that its square neither overflows nor vanishes.
    scale = jnp.maximum(jnp.abs(c), jnp.abs(d))
    scale = jnp.where((scale == 0) | jnp.isinf(scale), 1, scale)
    c, d = c / scale, d / scale
    square = c * c + d * d
    return (a * c + b * d) / square / scale, (b * c - a * d) / square / scale


@decomposition("neg", pairs=True)
def complex_neg(x: Any, **rest: Any) -> Any:
    return -x[0], -x[1]


@decomposition("square", pairs=True)
def complex_square(x: Any, **rest: Any) -> Any:
    return complex_mul(x, x)


@decomposition("abs", pairs=True)
def complex_abs(x: Any, **rest: Any) -> Any:
    a, b = jnp.abs(x[0]), jnp.abs(x[1])
    high, low = jnp.maximum(a, b), jnp.minimum(a, b)
    plain = (high == 0) | jnp.isinf(high)
    ratio = low / jnp.where(plain, 1, high)
    return jnp.where(plain, high, high * jnp.sqrt(1 + ratio * ratio))


@decomposition("exp", pairs=True)
def complex_exp(x: Any, **rest: Any) -> Any:
    size = jnp.exp(x[0])
    return size * jnp.cos(x[1]), size * jnp.sin(x[1])


@decomposition("log", pairs=True)
def complex_log(x: Any, **rest: Any) -> Any:
    return jnp.log(complex_abs(x)), jax.lax.atan2(x[1], x[0])


@decomposition("sqrt", pairs=True)
def complex_sqrt(x: Any, **rest: Any) -> Any:
    a, b = x
    half = jnp.sqrt((complex_abs(x) + jnp.abs(a)) / 2)
    other = b / jnp.where(half == 0, 1, 2 * half)
    down = (b < 0) | ((b == 0) & (1 / b < 0))
    return jnp.where(a >= 0, half, jnp.abs(other)), jnp.where(a >= 0, other, jnp.where(down, -half, half))


@decomposition("sign", pairs=True)
def complex_sign(x: Any, **rest: Any) -> Any:
    size = complex_abs(x)
    safe = jnp.where(size == 0, 1, size)
    return x[0] / safe, x[1] / safe


@decomposition("integer_pow", pairs=True)
def complex_power(x: Any, y: int, **rest: Any) -> Any:
    found = (jnp.ones_like(x[0]), jnp.zeros_like(x[0]))
    for _ in range(abs(y)):
        found = complex_mul(found, x)
    return found if y >= 0 else complex_div((jnp.ones_like(x[0]), jnp.zeros_like(x[0])), found)


@decomposition("reduce_prod", pairs=True)
def complex_prod(x: Any, axes: Any, **rest: Any) -> Any:
    a, b = x
    for axis in sorted(axes, reverse=True):
        parts = [
            tuple([jax.lax.index_in_dim(v, i, axis, keepdims=False) for v in (a, b)])
            for i in range(a.shape[axis])
        ]
        a, b = parts[0]
        for part in parts[1:]:
            a, b = complex_mul((a, b), part)
    return a, b


@decomposition("dot_general", pairs=True)
def complex_dot(x: Any, y: Any, dimension_numbers: Any, **rest: Any) -> Any:
    def product(one: Any, two: Any) -> Any:
        return jax.lax.dot_general(one, two, dimension_numbers)

    (a, b), (c, d) = x, y
    return product(a, c) - product(b, d), product(a, d) + product(b, c)
