"""Orthogonal polynomials: Chebyshev's four kinds, plain and shifted, Hermite's two, Laguerre's and Legendre's.

Each is the three-term recurrence of its degree, run on the device to the largest degree asked for; inside (-1, 1)
Chebyshev's of higher degree are cosines. None is differentiable, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import dtypes
from ...checks import not_implemented_for
from ...operators.declare import pointwise
from ...operators.promotion import float_operands, needs_tensor
from ...operators.schema import Array, Operand

__all__: list[str] = []

Step = Callable[[Any, Array, Array], Array]


def operands_of(name: str, x: Any, n: Any) -> tuple[Array, Array, Any]:
    """X in its float type and the degree as int64, broadcast; NotImplementedError for other dtypes."""
    needs_tensor(f"special_{name}", x, n)
    a, b, dtype = float_operands(x, n)
    if not jnp.issubdtype(dtype, jnp.floating) or jnp.dtype(dtype).itemsize < 4:
        raise not_implemented_for(f"{name}_cpu", dtypes.FROM_NUMPY[np.dtype(dtype)])
    a, b = jnp.broadcast_arrays(a, b)
    return a, b.astype(jnp.int64), dtype


def recurrence(first: Array, degree: Array, active: Array, step: Step) -> Array:
    """The polynomial of each element's degree (0 below 0): 1, `first`, and `step(k, last, last but one)` from k = 1 on.

    Elements that are not active do not lengthen the loop, nor do those that have become NaN.
    """
    one = jnp.ones_like(first)

    def running(state: Any) -> Any:
        k, _, q = state
        return jnp.any(active & (k < degree) & ~jnp.isnan(q))

    def advance(state: Any) -> Any:
        k, p, q = state
        going = k < degree
        return k + 1, jnp.where(going, q, p), jnp.where(going, step(k.astype(first.dtype), q, p), q)

    start = (jnp.ones((), jnp.int64), one, first)
    _, _, found = lax.while_loop(running, advance, start)
    return jnp.where(degree < 0, 0, jnp.where(degree == 0, one, found)).astype(first.dtype)


# ---- Chebyshev -----------------------------------------------------------------------------------------------------


def chebyshev(name: str, x: Any, n: Any, first: Callable[[Array], Array], wave: Any, shifted: bool) -> Array:
    """One of the four kinds: the first degree, and in (-1, 1) the ratio of waves that higher degrees are."""
    a, degree, dtype = operands_of(name, x, n)
    if shifted:
        a = a + a - 1
    inside = (jnp.abs(a) < 1) & (degree > 6)
    slow = recurrence(first(a), degree, ~inside, lambda k, q, p: (a + a) * q - p)
    angle = jnp.arccos(jnp.clip(a, -1, 1))
    quick = wave(jnp.where(inside, angle, 1), jnp.where(inside, degree, 1).astype(dtype))
    return jnp.where(inside, quick, slow).astype(dtype)


def wave_t(angle: Array, n: Array) -> Array:
    return jnp.cos(n * angle)


def wave_u(angle: Array, n: Array) -> Array:
    return jnp.sin((n + 1) * angle) / jnp.sin(angle)


def wave_v(angle: Array, n: Array) -> Array:
    return jnp.cos((n + 0.5) * angle) / jnp.cos(angle / 2)


def wave_w(angle: Array, n: Array) -> Array:
    return jnp.sin((n + 0.5) * angle) / jnp.sin(angle / 2)


@pointwise(name="special_chebyshev_polynomial_t", method=False, inplace=False, derivatives=None)
def chebyshev_polynomial_t(x: Operand, n: Operand) -> Array:
    """Chebyshev polynomials of the first kind: `cos(n * acos(x))`.

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return chebyshev("chebyshev_polynomial_t", x, n, lambda x: x, wave_t, False)


@pointwise(name="special_chebyshev_polynomial_u", method=False, inplace=False, derivatives=None)
def chebyshev_polynomial_u(x: Operand, n: Operand) -> Array:
    """Chebyshev polynomials of the second kind: `sin((n + 1) * a) / sin(a)` for a = acos(x).

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return chebyshev("chebyshev_polynomial_u", x, n, lambda x: x + x, wave_u, False)


@pointwise(name="special_chebyshev_polynomial_v", method=False, inplace=False, derivatives=None)
def chebyshev_polynomial_v(x: Operand, n: Operand) -> Array:
    """Chebyshev polynomials of the third kind: `cos((n + 1/2) * a) / cos(a / 2)` for a = acos(x).

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return chebyshev("chebyshev_polynomial_v", x, n, lambda x: x + x - 1, wave_v, False)


@pointwise(name="special_chebyshev_polynomial_w", method=False, inplace=False, derivatives=None)
def chebyshev_polynomial_w(x: Operand, n: Operand) -> Array:
    """Chebyshev polynomials of the fourth kind: `sin((n + 1/2) * a) / sin(a / 2)` for a = acos(x).

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return chebyshev("chebyshev_polynomial_w", x, n, lambda x: x + x + 1, wave_w, False)


@pointwise(name="special_shifted_chebyshev_polynomial_t", method=False, inplace=False, derivatives=None)
def shifted_chebyshev_polynomial_t(x: Operand, n: Operand) -> Array:
    """`chebyshev_polynomial_t` at `2 * x - 1`.

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return chebyshev("shifted_chebyshev_polynomial_t", x, n, lambda x: x, wave_t, True)


@pointwise(name="special_shifted_chebyshev_polynomial_u", method=False, inplace=False, derivatives=None)
def shifted_chebyshev_polynomial_u(x: Operand, n: Operand) -> Array:
    """`chebyshev_polynomial_u` at `2 * x - 1`.

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return chebyshev("shifted_chebyshev_polynomial_u", x, n, lambda x: x + x, wave_u, True)


@pointwise(name="special_shifted_chebyshev_polynomial_v", method=False, inplace=False, derivatives=None)
def shifted_chebyshev_polynomial_v(x: Operand, n: Operand) -> Array:
    """`chebyshev_polynomial_v` at `2 * x - 1`.

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return chebyshev("shifted_chebyshev_polynomial_v", x, n, lambda x: x + x - 1, wave_v, True)


@pointwise(name="special_shifted_chebyshev_polynomial_w", method=False, inplace=False, derivatives=None)
def shifted_chebyshev_polynomial_w(x: Operand, n: Operand) -> Array:
    """`chebyshev_polynomial_w` at `2 * x - 1`.

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return chebyshev("shifted_chebyshev_polynomial_w", x, n, lambda x: x + x + 1, wave_w, True)


# ---- the others ----------------------------------------------------------------------------------------------------


def plain(name: str, x: Any, n: Any, first: Callable[[Array], Array], step: Any, limit: Any = None) -> Array:
    a, degree, dtype = operands_of(name, x, n)
    reached = degree if limit is None else jnp.minimum(degree, limit(dtype))
    found = recurrence(first(a), reached, jnp.ones(a.shape, bool), step(a))
    if limit is not None:
        found = jnp.where(degree > limit(dtype), jnp.nan, found)
    return found.astype(dtype)


def hermite_limit(dtype: Any) -> int:
    """The degree beyond which PyTorch answers NaN."""
    return 128 if jnp.dtype(dtype) == jnp.float32 else 512


@pointwise(name="special_hermite_polynomial_h", method=False, inplace=False, derivatives=None)
def hermite_polynomial_h(x: Operand, n: Operand) -> Array:
    """Hermite's polynomials of physics; NaN beyond degree 128 (float32) or 512.

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return plain(
        "hermite_polynomial_h",
        x,
        n,
        lambda x: x + x,
        lambda x: lambda k, q, p: 2 * (x * q - k * p),
        hermite_limit,
    )


@pointwise(name="special_hermite_polynomial_he", method=False, inplace=False, derivatives=None)
def hermite_polynomial_he(x: Operand, n: Operand) -> Array:
    """Hermite's polynomials of probability; NaN beyond degree 128 (float32) or 512.

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return plain(
        "hermite_polynomial_he", x, n, lambda x: x, lambda x: lambda k, q, p: x * q - k * p, hermite_limit
    )


@pointwise(name="special_laguerre_polynomial_l", method=False, inplace=False, derivatives=None)
def laguerre_polynomial_l(x: Operand, n: Operand) -> Array:
    """Laguerre's polynomials.

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return plain(
        "laguerre_polynomial_l",
        x,
        n,
        lambda x: 1 - x,
        lambda x: lambda k, q, p: ((2 * k + 1 - x) * q - k * p) / (k + 1),
    )


@pointwise(name="special_legendre_polynomial_p", method=False, inplace=False, derivatives=None)
def legendre_polynomial_p(x: Operand, n: Operand) -> Array:
    """Legendre's polynomials.

    Shape: `x` and `n` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 18.3.
    """
    return plain(
        "legendre_polynomial_p",
        x,
        n,
        lambda x: x,
        lambda x: lambda k, q, p: ((2 * k + 1) * x * q - k * p) / (k + 1),
    )
