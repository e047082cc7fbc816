"""Special functions and functions of two variables, element by element."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ... import dtypes
from ...checks import not_implemented_for
from ...operators.attach import attach_methods
from ...operators.declare import pointwise
from ...operators.promotion import float_operands, is_bool, is_complex, is_float, needs_tensor, promote
from ...operators.schema import Array, Number, Operand
from ...operators.write import check_castable
from ...tensor import Tensor
from .elementwise import unary
from .gamma_functions import zeta_of

__all__ = [
    "angle",
    "arctan2",
    "atan2",
    "conj_physical",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "hypot",
    "i0",
    "lgamma",
]
__all__ += ["logaddexp", "logaddexp2", "logit", "mvlgamma", "polygamma", "sinc", "xlogy"]


def real_unary(name: str, function: Callable[[Array], Array], input: Array) -> Array:
    """As `unary`; NotImplementedError for complex input."""
    if is_complex(input):
        raise not_implemented_for(name, dtypes.FROM_NUMPY[input.dtype])
    return unary(function, input)


# ---- complex parts -------------------------------------------------------------------------------------------------


def angle_input(grad: Array, input: Array) -> Array:
    if not is_complex(input):
        return jnp.zeros_like(grad)
    x, y = jnp.real(input), jnp.imag(input)
    length = jnp.where(input == 0, 1, x * x + y * y)
    return jnp.where(input == 0, 0, lax.complex(-y * grad / length, x * grad / length))


@pointwise(inplace=False, derivatives=dict(input=angle_input))
def angle(input: Array) -> Array:
    """The angle of every element in radians: 0 or pi where it is real.

    Shape: `input` `(*)`, result `(*)`.
    """
    if is_complex(input):
        return jnp.angle(input)
    return unary(lambda x: jnp.where(x < 0, math.pi, jnp.where(jnp.isnan(x), x, 0)).astype(x.dtype), input)


@pointwise(out="exact", derivatives=dict(input=lambda grad: jnp.conj(grad)))
def conj_physical(input: Array) -> Array:
    """The complex conjugate, computed at once; the input where it is real.

    Shape: `input` `(*)`, result `(*)`.
    """
    return jnp.conj(input) if is_complex(input) else input


# ---- the error function and the logistic one -----------------------------------------------------------------------


def erf_slope(grad: Array, input: Array) -> Array:
    return grad * (2 / math.sqrt(math.pi)) * jnp.exp(-(input * input))


@pointwise(derivatives=dict(input=erf_slope))
def erf(input: Array) -> Array:
    """The error function.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 7.2.

    >>> xtensor.erf(xtensor.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    return real_unary("erf_vml_cpu", lax.erf, input)


@pointwise(derivatives=dict(input=lambda grad, input: -erf_slope(grad, input)))
def erfc(input: Array) -> Array:
    """`1 - erf(input)`, exact for large elements.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 7.2.
    """
    return real_unary("erfc_vml_cpu", lax.erfc, input)


def erf_inverse(x: Array) -> Array:
    """`lax.erf_inv`, which loses digits near 1, after a Newton step on `erfc`, which keeps them there."""
    first, size = lax.erf_inv(x), jnp.abs(x)
    near = (size > 0.5) & (size < 1)
    y = jnp.where(near, jnp.abs(first), jnp.ones_like(x))
    better = y + (lax.erfc(y) - (1 - size)) * jnp.exp(y * y) * (math.sqrt(math.pi) / 2)
    return jnp.where(near, jnp.sign(x) * better, first)


@pointwise(
    autocast=dict(accelerator="float32"),
    derivatives=dict(input=lambda grad, result: grad * (math.sqrt(math.pi) / 2) * jnp.exp(result * result)),
)
def erfinv(input: Array) -> Array:
    """The inverse of the error function.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 7.17.
    """
    return real_unary("erfinv_vml_cpu", erf_inverse, input)


def logit_input(grad: Array, input: Array, eps: Any) -> Array:
    low, high = (0, 1) if eps is None else (eps, 1 - eps)
    outside = ~((input >= low) & (input <= high))
    safe = jnp.where(outside, 0.5, input)
    return jnp.where(outside, jnp.nan if eps is None else 0, grad / (safe * (1 - safe)))


@pointwise(derivatives=dict(input=logit_input))
def logit(input: Array, eps: Number | None = None) -> Array:
    """`log(input / (1 - input))`, the input first clamped to `[eps, 1 - eps]`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: Berkson 1944, Journal of the American Statistical Association 39.
    """

    def of(x: Array) -> Array:
        if eps is not None:
            low = jnp.asarray(eps).astype(x.dtype)
            x = jnp.where(x < low, low, jnp.where(x > 1 - low, 1 - low, x))
        return jnp.log(x / (1 - x))

    return real_unary("logit_cpu", of, input)


# ---- the gamma function --------------------------------------------------------------------------------------------


def digamma_of(x: Array) -> Array:
    """The digamma function with its poles: -inf at 0.0, inf at -0.0, NaN at the negative integers."""
    found = jax.scipy.special.digamma(jnp.where(x == 0, 1, x))
    return jnp.where(x == 0, jnp.copysign(jnp.inf, -x), found)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def polygamma_of(n: int, x: Array) -> Array:
    """The n-th derivative of the digamma function; of negative x by recurrence for n above 1, as PyTorch's."""
    if n == 0:
        return digamma_of(x)
    if n == 1:
        # Reflection: trigamma(1 - x) + trigamma(x) = (pi / sin(pi x)) ** 2.
        low = x < 0.5
        found = jax.scipy.special.polygamma(1, jnp.where(low, 1 - x, jnp.where(x == jnp.inf, 1, x)))
        found = jnp.where(x == jnp.inf, 0, found)
        return jnp.where(low, jnp.square(jnp.pi / jnp.sin(jnp.pi * jnp.where(low, x, 0.5))) - found, found)
    return (1 if n % 2 else -1) * math.factorial(n) * zeta_of(jnp.full_like(x, n + 1), x)


@polygamma_of.defjvp
def polygamma_slope(n: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Each is the derivative of the one before, at the poles too, where JAX's derivative of the formulas is 0."""
    return polygamma_of(n, *primals), tangents[0] * polygamma_of(n + 1, *primals)


@pointwise(derivatives=dict(input=lambda grad, input: grad * unary(lambda x: polygamma_of(0, x), input)))
def lgamma(input: Array) -> Array:
    """The logarithm of the absolute value of the gamma function.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 5.2.
    """
    return real_unary("lgamma_vml_cpu", lax.lgamma, input)


@pointwise(derivatives=dict(input=lambda grad, input: grad * unary(lambda x: polygamma_of(1, x), input)))
def digamma(input: Array) -> Array:
    """The derivative of `lgamma`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 5.2.
    """
    return real_unary("digamma", digamma_of, input)


@pointwise(
    method=False,
    inplace=False,
    derivatives=dict(input=lambda grad, input, n: grad * unary(lambda x: polygamma_of(n + 1, x), input)),
)
def polygamma(n: int, input: Array) -> Array:
    """The n-th derivative of `digamma`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 5.15.
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return real_unary("polygamma", lambda x: polygamma_of(n, x), input)


def halves(x: Array, p: int) -> Array:
    """`x - j / 2` for j from 0 to p - 1, along a new last dimension."""
    return x[..., None] - jnp.arange(p, dtype=x.dtype) / 2


@pointwise(
    derivatives=dict(
        input=lambda grad, input, p: grad * unary(lambda x: jnp.sum(polygamma_of(0, halves(x, p)), -1), input)
    )
)
def mvlgamma(input: Array, p: int) -> Array:
    """The logarithm of the multivariate gamma function of dimension p.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors; RuntimeError for bool tensors.

    Source: DLMF 35.3.
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if is_bool(input):
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    constant = p * (p - 1) / 4 * math.log(math.pi)
    return real_unary("lgamma_vml_cpu", lambda x: jnp.sum(lax.lgamma(halves(x, p)), -1) + constant, input)


# ---- bessel and sinc -----------------------------------------------------------------------------------------------


@pointwise(derivatives=dict(input=lambda grad, input: grad * unary(jax.scipy.special.i1, input)))
def i0(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 0.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    Source: DLMF 10.25.
    """
    return real_unary("i0_vml_cpu", jax.scipy.special.i0, input)


def sinc_of(x: Array) -> Array:
    safe = jnp.pi * jnp.where(x == 0, 1, x)
    return jnp.where(x == 0, 1, jnp.sin(safe) / safe).astype(x.dtype)


def sinc_input(grad: Array, input: Array) -> Array:
    x, dtype = float_operands(input)
    safe = jnp.where(x == 0, 1, x)
    slope = (jnp.cos(jnp.pi * safe) - jnp.sin(jnp.pi * safe) / (jnp.pi * safe)) / safe
    # At 0 the first term of the series, whose own derivative is right there.
    return grad * jnp.conj(jnp.where(x == 0, -(jnp.pi**2) / 3 * x, slope)).astype(dtype)


@pointwise(derivatives=dict(input=sinc_input))
def sinc(input: Array) -> Array:
    """`sin(pi * input) / (pi * input)`, and 1 at 0.

    Shape: `input` `(*)`, result `(*)`.

    Source: Woodward and Davies 1952, Proceedings of the IEE 99.
    """
    return unary(sinc_of, input)


# ---- two variables -------------------------------------------------------------------------------------------------


def float_pair(name: str, input: Any, other: Any, *, complex: bool = False) -> tuple[Any, ...]:
    """Two floats of one dtype, computed in float32 if shorter; NotImplementedError for anything else."""
    a, _ = promote(input, other)
    if not is_float(a) and not (complex and is_complex(a)):
        raise not_implemented_for(name, dtypes.FROM_NUMPY[a.dtype])
    return float_operands(input, other)


def atan2_factor(grad: Array, input: Array, other: Array) -> Array:
    length = input * input + other * other
    return jnp.where(length == 0, 0, grad / jnp.where(length == 0, 1, length))


@pointwise(
    autocast=dict(accelerator="widest"),
    aliases=("arctan2",),
    derivatives=dict(
        input=lambda grad, input, other: atan2_factor(grad, input, other) * other,
        other=lambda grad, input, other: -atan2_factor(grad, input, other) * input,
    ),
)
def atan2(input: Array, other: Array) -> Array:
    """The angle of the point (other, input) in radians, from -pi to pi.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    Differs from PyTorch: at the origin the second derivatives are 0, as the first, not NaN.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.atan2(xtensor.tensor([1.0, -1.0]), xtensor.tensor([1.0, 1.0]))
    tensor([ 0.7854, -0.7854])
    """
    a, b, dtype = float_operands(input, other)
    if is_complex(a):
        raise not_implemented_for("atan2_cpu", dtypes.FROM_NUMPY[dtype])
    return jnp.arctan2(a, b).astype(dtype)


@pointwise(
    derivatives=dict(
        input=lambda grad, input, result: grad * (input / result),
        other=lambda grad, other, result: grad * (other / result),
    )
)
def hypot(input: Array, other: Array) -> Array:
    """The length of the vector (input, other).

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    a, b, dtype = float_pair("hypot_cpu", input, other)
    return jnp.hypot(a, b).astype(dtype)


@pointwise(
    inplace=False,
    derivatives=dict(
        input=lambda grad, input, other: grad / jnp.conj(1 + jnp.exp(other - input)),
        other=lambda grad, input, other: grad / jnp.conj(1 + jnp.exp(input - other)),
    ),
)
def logaddexp(input: Array, other: Array) -> Array:
    """`log(exp(input) + exp(other))` without overflow.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for bool and integer tensors.
    """
    a, b, dtype = float_pair("logaddexp_cpu", input, other, complex=True)
    if is_complex(a):
        first = jnp.real(a) >= jnp.real(b)
        high, low = jnp.where(first, a, b), jnp.where(first, b, a)
        return high + jnp.log1p(jnp.exp(low - high))
    return jnp.logaddexp(a, b).astype(dtype)


@pointwise(
    inplace=False,
    derivatives=dict(
        input=lambda grad, input, other: grad / (1 + jnp.exp2(other - input)),
        other=lambda grad, input, other: grad / (1 + jnp.exp2(input - other)),
    ),
)
def logaddexp2(input: Array, other: Array) -> Array:
    """`log2(2 ** input + 2 ** other)` without overflow.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    a, b, dtype = float_pair("logaddexp2_cpu", input, other)
    return jnp.logaddexp2(a, b).astype(dtype)


def xlogy_input(grad: Array, input: Array, other: Any) -> Array:
    x, y, _ = float_operands(input, other)
    flat = (x == 0) & (y <= 0)
    return jnp.where(flat, 0, grad * jnp.log(jnp.where(flat, 1, y)))


@pointwise(derivatives=dict(input=xlogy_input, other=lambda grad, input, other: grad * input / other))
def xlogy(input: Operand, other: Operand) -> Array:
    """`input * log(other)`, and 0 where `input` is 0 and `other` is no NaN.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.
    """
    needs_tensor("xlogy", input, other)
    a, b, dtype = float_operands(input, other)
    if is_complex(a):
        raise not_implemented_for("xlogy_cpu", dtypes.FROM_NUMPY[dtype])
    product = a * jnp.log(jnp.where((a == 0) & (b == b), 1, b))
    return product.astype(dtype)


def polygamma_of_order(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of `digamma`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: RuntimeError for a negative `n`.
    """
    return polygamma(n, input)


def polygamma_(input: Tensor, n: int) -> Tensor:
    """In-place `polygamma`.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a leaf that requires grad.
    """
    # The derivative needs the values from before the write.
    result = polygamma(n, input.clone())
    check_castable(result.dtype.numpy, input.dtype.numpy)
    return input.copy_(result)


arctan2 = atan2

attach_methods(polygamma_, polygamma=polygamma_of_order)
