"""Elementary functions, element by element: powers, exponentials, logarithms, trigonometry, rounding."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from ... import dtypes
from ...checks import not_implemented_for
from ...operators.declare import pointwise
from ...operators.promotion import float_operands, is_bool, is_complex, is_float, operands
from ...operators.schema import Array
from . import accurate, complex_edges
from .arithmetic import zero

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "asin",
    "asinh",
    "atan",
]
__all__ += [
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "deg2rad",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "frac",
    "log",
    "log10",
]
__all__ += [
    "log1p",
    "log2",
    "rad2deg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "square",
]
__all__ += ["tan", "tanh", "trunc"]


ATANH = complex_edges.atanh(accurate.atanh)
LOG_EDGES, LOG2_EDGES, LOG10_EDGES = map(complex_edges.log, (jnp.log, jnp.log2, jnp.log10))
LOG1P_EDGES = complex_edges.log(accurate.log1p)


def unary(function: Callable[[Array], Array], input: Array) -> Array:
    """`function` of the input as a float; half types compute in float32."""
    x, dtype = float_operands(input)
    return function(x).astype(dtype)


def sloped(grad: Array, slope: Array) -> Array:
    """A gradient times a slope that was computed wider: short floats are rounded once, as in PyTorch's kernels."""
    return (grad.astype(slope.dtype) * slope).astype(grad.dtype)


# ---- powers --------------------------------------------------------------------------------------------------------


@pointwise(derivatives=dict(input=lambda grad, input: grad * jnp.conj(2 * input)))
def square(input: Array) -> Array:
    """The square of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.square(xtensor.tensor([2, -3]))
    tensor([4, 9])
    """
    if is_bool(input):
        input = input.astype(jnp.int64)
    return input * input


@pointwise(derivatives=dict(input=lambda grad, result: grad / jnp.conj(2 * result)))
def sqrt(input: Array) -> Array:
    """The square root of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.sqrt(xtensor.tensor([2.0, 9.0]))
    tensor([1.4142, 3.0000])
    """
    return unary(complex_edges.sqrt, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    derivatives=dict(input=lambda grad, result: -0.5 * grad * jnp.conj(result * result * result)),
)
def rsqrt(input: Array) -> Array:
    """One over the square root of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.rsqrt(xtensor.tensor([2.0, 4.0]))
    tensor([0.7071, 0.5000])
    """
    return unary(lax.rsqrt, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    derivatives=dict(input=lambda grad, result: -grad * jnp.conj(result * result)),
)
def reciprocal(input: Array) -> Array:
    """One over every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.reciprocal(xtensor.tensor([2.0, 4.0]))
    tensor([0.5000, 0.2500])
    """
    return unary(lambda x: 1 / x, input)


# ---- exponentials and logarithms -----------------------------------------------------------------------------------

LN_2, LN_10 = 0.6931471805599453, 2.302585092994046


@pointwise(
    autocast=dict(accelerator="float32"), derivatives=dict(input=lambda grad, result: grad * jnp.conj(result))
)
def exp(input: Array) -> Array:
    """Euler's number to the power of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.exp(xtensor.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    return unary(complex_edges.exp, input)


@pointwise(derivatives=dict(input=lambda grad, result: grad * jnp.conj(result) * LN_2))
def exp2(input: Array) -> Array:
    """2 to the power of every element.

    Shape: `input` `(*)`, result `(*)`.

    Source: IEEE 754-2019, 9.2.
    """
    return unary(accurate.exp2, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    derivatives=dict(input=lambda grad, result: grad * jnp.conj(result + 1)),
)
def expm1(input: Array) -> Array:
    """`exp(input) - 1`, exact for small elements.

    Shape: `input` `(*)`, result `(*)`.

    Source: IEEE 754-2019, 9.2.

    >>> xtensor.expm1(xtensor.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """
    return unary(complex_edges.expm1, input)


@pointwise(
    autocast=dict(accelerator="float32"), derivatives=dict(input=lambda grad, input: grad / jnp.conj(input))
)
def log(input: Array) -> Array:
    """The natural logarithm of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.log(xtensor.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """
    return unary(LOG_EDGES, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    derivatives=dict(input=lambda grad, input: grad / jnp.conj(input * LN_2)),
)
def log2(input: Array) -> Array:
    """The logarithm to base 2 of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.log2(xtensor.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """
    return unary(LOG2_EDGES, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    derivatives=dict(input=lambda grad, input: grad / jnp.conj(input * LN_10)),
)
def log10(input: Array) -> Array:
    """The logarithm to base 10 of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.log10(xtensor.tensor([1.0, 100.0]))
    tensor([0., 2.])
    """
    return unary(LOG10_EDGES, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    derivatives=dict(input=lambda grad, input: grad / jnp.conj(input + 1)),
)
def log1p(input: Array) -> Array:
    """`log(1 + input)`, exact for small elements.

    Shape: `input` `(*)`, result `(*)`.

    Source: IEEE 754-2019, 9.2.

    >>> xtensor.log1p(xtensor.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """
    return unary(LOG1P_EDGES, input)


def sigmoid_input(grad: Array, result: Array) -> Array:
    r, _ = operands(result)
    return sloped(grad, jnp.conj((1 - r) * r))


@pointwise(derivatives=dict(input=sigmoid_input))
def sigmoid(input: Array) -> Array:
    """The logistic function `1 / (1 + exp(-input))` of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.sigmoid(xtensor.tensor([-1.0, 0.0, 1.0]))
    tensor([0.2689, 0.5000, 0.7311])
    """
    return unary(logistic, input)


def logistic(x: Array) -> Array:
    return 1 / (1 + jnp.exp(-x)) if is_complex(x) else lax.logistic(x)


# ---- trigonometry --------------------------------------------------------------------------------------------------


@pointwise(derivatives=dict(input=lambda grad, input: grad * jnp.conj(jnp.cos(input))))
def sin(input: Array) -> Array:
    """The sine of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.sin(xtensor.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """
    return unary(complex_edges.sin, input)


@pointwise(derivatives=dict(input=lambda grad, input: grad * -jnp.conj(jnp.sin(input))))
def cos(input: Array) -> Array:
    """The cosine of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.cos(xtensor.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """
    return unary(complex_edges.cos, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    derivatives=dict(input=lambda grad, result: grad * jnp.conj(1 + result * result)),
)
def tan(input: Array) -> Array:
    """The tangent of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.tan(xtensor.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """
    return unary(complex_edges.tan, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    aliases=("arcsin",),
    derivatives=dict(input=lambda grad, input: grad * jnp.conj(lax.rsqrt(1 - input * input))),
)
def asin(input: Array) -> Array:
    """The inverse sine of every element.

    Shape: `input` `(*)`, result `(*)`.
    """
    return unary(complex_edges.asin, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    aliases=("arccos",),
    derivatives=dict(input=lambda grad, input: grad * -jnp.conj(lax.rsqrt(1 - input * input))),
)
def acos(input: Array) -> Array:
    """The inverse cosine of every element.

    Shape: `input` `(*)`, result `(*)`.
    """
    return unary(complex_edges.acos, input)


@pointwise(
    aliases=("arctan",), derivatives=dict(input=lambda grad, input: grad / jnp.conj(input * input + 1))
)
def atan(input: Array) -> Array:
    """The inverse tangent of every element.

    Shape: `input` `(*)`, result `(*)`.
    """
    return unary(complex_edges.atan, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    derivatives=dict(input=lambda grad, input: grad * jnp.conj(jnp.cosh(input))),
)
def sinh(input: Array) -> Array:
    """The hyperbolic sine of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.sinh(xtensor.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """
    return unary(complex_edges.sinh, input)


@pointwise(
    autocast=dict(accelerator="float32"),
    derivatives=dict(input=lambda grad, input: grad * jnp.conj(jnp.sinh(input))),
)
def cosh(input: Array) -> Array:
    """The hyperbolic cosine of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.cosh(xtensor.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """
    return unary(complex_edges.cosh, input)


def tanh_input(grad: Array, result: Array) -> Array:
    r, _ = operands(result)
    return sloped(grad, jnp.conj(1 - r * r))


@pointwise(derivatives=dict(input=tanh_input))
def tanh(input: Array) -> Array:
    """The hyperbolic tangent of every element.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.tanh(xtensor.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.7616,  0.0000,  0.7616])
    """
    return unary(complex_edges.tanh, input)


@pointwise(
    aliases=("arcsinh",),
    derivatives=dict(input=lambda grad, input: grad * jnp.conj(lax.rsqrt(input * input + 1))),
)
def asinh(input: Array) -> Array:
    """The inverse hyperbolic sine of every element.

    Shape: `input` `(*)`, result `(*)`.
    """
    return unary(complex_edges.asinh, input)


@pointwise(
    aliases=("arccosh",),
    derivatives=dict(
        input=lambda grad, input: (
            grad * jnp.conj(lax.rsqrt(input - 1) * lax.rsqrt(input + 1))
            if is_complex(input)
            else grad * lax.rsqrt(input * input - 1)
        )
    ),
)
def acosh(input: Array) -> Array:
    """The inverse hyperbolic cosine of every element.

    Shape: `input` `(*)`, result `(*)`.
    """
    return unary(complex_edges.acosh, input)


@pointwise(
    aliases=("arctanh",), derivatives=dict(input=lambda grad, input: grad / jnp.conj(1 - input * input))
)
def atanh(input: Array) -> Array:
    """The inverse hyperbolic tangent of every element.

    Shape: `input` `(*)`, result `(*)`.
    """
    return unary(ATANH, input)


RADIANS, DEGREES = 0.017453292519943295, 57.29577951308232


@pointwise(derivatives=dict(input=lambda grad: grad * RADIANS))
def deg2rad(input: Array) -> Array:
    """Degrees as radians; RuntimeError for complex input.

    Shape: `input` `(*)`, result `(*)`.

    Raises: RuntimeError for complex tensors.
    """
    if is_complex(input):
        raise RuntimeError("deg2rad is not supported for complex tensors.")
    return unary(lambda x: x * RADIANS, input)


@pointwise(derivatives=dict(input=lambda grad: grad * DEGREES))
def rad2deg(input: Array) -> Array:
    """Radians as degrees; RuntimeError for complex input.

    Shape: `input` `(*)`, result `(*)`.

    Raises: RuntimeError for complex tensors.
    """
    if is_complex(input):
        raise RuntimeError("rad2deg is not supported for complex tensors.")
    return unary(lambda x: x * DEGREES, input)


# ---- rounding ------------------------------------------------------------------------------------------------------


def rounded(name: str, function: Callable[[Array], Array], input: Array) -> Array:
    """`function` of floats, and integers as they are; RuntimeError for complex input."""
    if is_complex(input):
        raise NotImplementedError(f"{name} is not supported for complex inputs")
    if is_bool(input):
        raise not_implemented_for(f"{name}_vml_cpu", dtypes.bool)
    return function(input) if is_float(input) else input


@pointwise(out="exact", derivatives=dict(input=zero))
def floor(input: Array) -> Array:
    """Every element rounded down.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex and bool tensors.

    >>> xtensor.floor(xtensor.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """
    return rounded("floor", jnp.floor, input)


@pointwise(out="exact", derivatives=dict(input=zero))
def ceil(input: Array) -> Array:
    """Every element rounded up.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex and bool tensors.

    >>> xtensor.ceil(xtensor.tensor([-0.5, 1.2]))
    tensor([-0., 2.])
    """
    return rounded("ceil", jnp.ceil, input)


@pointwise(out="exact", aliases=("fix",), derivatives=dict(input=zero))
def trunc(input: Array) -> Array:
    """Every element rounded towards zero.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex and bool tensors.

    >>> xtensor.trunc(xtensor.tensor([-1.5, 2.7]))
    tensor([-1.,  2.])
    """
    return rounded("trunc", jnp.trunc, input)


@pointwise(out="exact", derivatives=dict(input=lambda grad: grad))
def frac(input: Array) -> Array:
    """What `trunc` drops, with the sign of the element; only for floats.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    if not is_float(input):
        raise not_implemented_for("frac_cpu", dtypes.FROM_NUMPY[input.dtype])
    return input - jnp.trunc(input)


@pointwise(out="exact", derivatives=dict(input=zero), several=True)
def round(input: Array, *, decimals: int = 0) -> Array:
    """Every element rounded to `decimals` places, halves to even.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex and bool tensors.

    >>> xtensor.round(xtensor.tensor([0.5, 1.5, 2.4]))
    tensor([0., 2., 2.])
    """
    if decimals == 0:
        return rounded("round", jnp.round, input)
    if not is_float(input):
        raise not_implemented_for("round_vml_cpu", dtypes.FROM_NUMPY[input.dtype])
    x, dtype = float_operands(input)
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    if decimals > 0:
        return (jnp.round(x * scale) / scale).astype(dtype)
    return (jnp.round(x / scale) * scale).astype(dtype)


arccos, arccosh, arcsin, arcsinh, arctan, arctanh = acos, acosh, asin, asinh, atan, atanh
fix = trunc
