"""Powers, and numbers taken apart into mantissa and exponent."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from ... import dtypes
from ...checks import not_implemented_for
from ...operators.attach import attach_methods
from ...operators.declare import general, pointwise
from ...operators.functions.overloads import overloads
from ...operators.promotion import (
    as_dtype,
    common_dtype,
    float_operands,
    is_complex,
    is_float,
    is_integral,
    needs_tensor,
    operands,
)
from ...operators.schema import Array, Operand
from ...tensor import Tensor

__all__ = ["float_power", "frexp", "ldexp", "pow"]

# The exponents with a formula of their own; as in PyTorch, x ** 2 is x * x to the last bit.
FIXED: dict[float, Callable[[Array], Array]] = {
    0.0: jnp.ones_like,
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
    0.5: jnp.sqrt,
    -0.5: lambda x: lax.rsqrt(x),
    -1.0: lambda x: 1 / x,
    -1.5: lambda x: lax.rsqrt(x) / x,
    -2.0: lambda x: 1 / (x * x),
    -3.0: lambda x: 1 / (x * x * x),
}
NUMBERS = frozenset((int, float, bool))


def integer_power(base: Array, exponent: Array) -> Array:
    """Integer powers modulo the width; a negative exponent leaves 1 and -1 alone and sends the rest to 0."""

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        product, factor, left = state
        product = jnp.where(left & 1 == 1, product * factor, product)
        return product, factor * factor, left >> 1

    start = (jnp.ones_like(base), base, exponent)
    if not jnp.issubdtype(base.dtype, jnp.signedinteger):
        return lax.while_loop(lambda s: jnp.any(s[2] > 0), step, start)[0]
    start = (start[0], start[1], jnp.maximum(start[2], 0))
    positive = lax.while_loop(lambda s: jnp.any(s[2] > 0), step, start)[0]
    sign = jnp.where(exponent & 1 == 1, base, 1)
    return jnp.where(exponent >= 0, positive, jnp.where((base == 1) | (base == -1), sign, 0))


def raised(a: Array, b: Array) -> Array:
    """`a ** b` for arrays of one dtype."""
    a, b = jnp.broadcast_arrays(a, b)
    if is_integral(a):
        return integer_power(a, b)
    if is_complex(a):
        safe = jnp.where(a == 0, 1, a)
        at_zero = jnp.where(b.real > 0, 0, jnp.where(b == 0, 1, jnp.nan)).astype(a.dtype)
        return jnp.where(a == 0, at_zero, lax.pow(safe, b))
    return lax.pow(a, b)


def pow_input(grad: Array, input: Array, exponent: Operand, fixed: float | None) -> Array:
    if fixed is not None:
        if fixed == 0:
            return jnp.zeros_like(grad)
        x, dtype = operands(input)
        return grad * jnp.conj(fixed * FIXED[fixed - 1](x)).astype(dtype)
    x, e, _ = operands(input, exponent)
    # The second `where` keeps the derivative of the branch not taken finite.
    safe = jnp.where(e == 0, 1, e)
    return jnp.where(e == 0, 0, grad * jnp.conj(safe * raised(x, safe - 1)))


def pow_exponent(grad: Array, input: Operand, exponent: Array, result: Array) -> Array:
    x, e, _ = operands(input, exponent)
    flat = (x == 0) & ((e.real >= 0) & (e.imag == 0) if is_complex(e) else e >= 0)
    safe = jnp.where(flat, 1, x)
    return jnp.where(flat, 0, grad * jnp.conj(result * jnp.log(safe)))


@pointwise(
    autocast=dict(accelerator="float32"),
    name="pow",
    method=False,
    # By a number or by a tensor: an edge to the exponent is one.
    node=lambda node: "PowBackward0" if node._xt_edges[1] is None else "PowBackward1",
    derivatives=dict(input=pow_input, exponent=pow_exponent),
)
def power(input: Operand, exponent: Operand, fixed: float | None = None) -> Array:
    """`input ** exponent`, element by element; `fixed` is the exponent where it has a formula of its own."""
    needs_tensor("pow", input, exponent)
    a, b, dtype = operands(input, exponent)
    if dtype == jnp.bool_ and fixed is None:
        raise not_implemented_for("pow", dtypes.bool)
    return (raised(a, b) if fixed is None else FIXED[fixed](a)).astype(dtype)


def fixed_exponent(input: Any, exponent: Any) -> float | None:
    """The exponent if it has a formula of its own; RuntimeError for an integer's negative integer power."""
    if type(exponent) not in NUMBERS:
        return None
    if exponent < 0 and type(exponent) is int and isinstance(input, Tensor):
        dtype = input.dtype
        if not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError("Integers to negative integer powers are not allowed.")
    return float(exponent) if exponent in FIXED and exponent >= -2 else None


@overloads(
    "Tensor input, Tensor exponent, *, Tensor out = None",
    "Number self, Tensor exponent, *, Tensor out = None",
    "Tensor input, Number exponent, *, Tensor out = None",
)
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """`input ** exponent`, element by element; either may be a number.

    RuntimeError for integers raised to a negative Python integer; 0 ** 0 is 1, and its derivatives are 0.
    Differs from PyTorch: complex 0 ** 0 is 1 too, not NaN; second derivatives at a pole may be NaN, not infinite.

    Shape: `input` and `exponent` broadcast together; the result has their broadcast shape.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError
    for bool tensors.

    >>> xtensor.tensor([1, 2, 3]) ** 2
    tensor([1, 4, 9])
    >>> 2 ** xtensor.tensor([1.0, 2.0, 3.0])
    tensor([2., 4., 8.])
    """
    return power(input, exponent, fixed_exponent(input, exponent), out=out)


def pow_(input: Tensor, exponent: Any) -> Tensor:
    """In-place version of `pow`.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a leaf that requires grad.
    """
    return POW_(input, exponent, fixed_exponent(input, exponent))


POW_: Any = power.operator.inplace


def power_of(input: Tensor, other: Any) -> Any:
    """`input ** other`."""
    if type(other) not in NUMBERS and not is_operand(other):
        return NotImplemented
    return power(input, other, fixed_exponent(input, other))


def power_in_place(input: Tensor, other: Any) -> Any:
    """`input **= other`."""
    return pow_(input, other) if is_operand(other) else NotImplemented


def power_by(input: Tensor, other: Any) -> Any:
    """`other ** input`."""
    return power(other, input) if is_operand(other) else NotImplemented


def is_operand(value: Any) -> bool:
    return isinstance(value, (Tensor, int, float, complex)) or getattr(value, "shape", None) == ()


def doubled(input: Any, exponent: Any) -> tuple[Any, Any]:
    """Both operands in double precision, complex if either is."""
    dtype = dtypes.complex128 if common_dtype(input, exponent).is_complex else dtypes.float64
    return as_dtype(input, dtype), as_dtype(exponent, dtype)


@pointwise(
    out="exact",
    inplace=False,
    derivatives=dict(
        input=lambda grad, input, exponent: pow_input(grad, *doubled(input, exponent), None),
        exponent=lambda grad, input, exponent, result: pow_exponent(grad, *doubled(input, exponent), result),
    ),
)
def float_power(input: Operand, exponent: Operand) -> Array:
    """`input ** exponent` in double precision.

    Shape: `input` and `exponent` broadcast together; the result has their broadcast shape.
    """
    needs_tensor("float_power", input, exponent)
    return raised(*doubled(input, exponent))


def float_power_(input: Tensor, exponent: Any) -> Tensor:
    """In-place `float_power`; RuntimeError unless `input` is double already.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a leaf that requires grad.
    """
    complex_ = (
        input.dtype.is_complex
        or type(exponent) is complex
        or (isinstance(exponent, Tensor) and exponent.dtype.is_complex)
    )
    needed = dtypes.complex128 if complex_ else dtypes.float64
    if input.dtype is not needed:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {input.dtype.scalar_name} but the operation's result requires "
            f"dtype {needed.scalar_name}"
        )
    return pow_(input, exponent)


def two_to(input: Any, other: Any) -> tuple[Any, Any, Any]:
    """The input as a float, `2 ** other` in its type, and the dtype of the result."""
    a, b, dtype = float_operands(input, other)
    return a, raised(jnp.asarray(2, b.dtype), b), dtype


def ldexp_input(grad: Array, input: Array, other: Array) -> Array:
    return grad * jnp.conj(two_to(input, other)[1])


@pointwise(
    derivatives=dict(
        input=ldexp_input,
        other=lambda grad, result: grad * jnp.conj(result * math.log(2)),
    )
)
def ldexp(input: Array, other: Array) -> Array:
    """`input * 2 ** other`, element by element.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    """
    a, factor, dtype = two_to(input, other)
    return (a * factor).astype(dtype)


def scaled_down(grad: Array, exponent: Array) -> Array:
    """`grad / 2 ** exponent`, in two steps that do not overflow; JAX's own `ldexp` has 1 for its derivative."""
    half = exponent >> 1
    return grad * jnp.exp2((-half).astype(grad.dtype)) * jnp.exp2((half - exponent).astype(grad.dtype))


@general(
    method=True,
    out="exact",
    returns=("mantissa", "exponent"),
    derivatives=dict(input=lambda grads, results: scaled_down(operands(grads[0])[0], results[1])),
)
def frexp(input: Array) -> tuple[Array, Array]:
    """Mantissas in [0.5, 1) and int32 exponents with `input = mantissa * 2 ** exponent`; only for floats.

    Shape: `input` `(*)`; mantissas `(*)` and exponents `(*)`.
    Differs from PyTorch: the results are contiguous whatever the strides of `input`.

    Raises: RuntimeError for complex, bool and integer tensors.
    """
    if not is_float(input):
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    x, dtype = operands(input)
    # XLA takes subnormal numbers for zero; their bits are a whole number of the smallest one.
    info = jnp.finfo(x.dtype)
    bits = lax.bitcast_convert_type(x, f"uint{info.bits}")
    part = bits & (2**info.nmant - 1)
    tiny = (part != 0) & ((bits >> info.nmant) & (2**info.nexp - 1) == 0)
    mantissa, exponent = jnp.frexp(jnp.where(tiny, jnp.copysign(part.astype(x.dtype), x), x))
    exponent = jnp.where(tiny, exponent + (info.minexp - info.nmant), exponent)
    finite = jnp.isfinite(x)
    return jnp.where(finite, mantissa, x).astype(dtype), jnp.where(finite, exponent, 0).astype(jnp.int32)


power_of.asked = pow  # pyright: ignore[reportFunctionMemberAccess]
power_in_place.asked = pow_  # pyright: ignore[reportFunctionMemberAccess]
attach_methods(float_power_, pow, pow_, __pow__=power_of, __rpow__=power_by, __ipow__=power_in_place)
