"""Comparisons, logic and bits, element by element; none of them is differentiable."""

from __future__ import annotations

import operator
from typing import Any

import jax.numpy as jnp
from jax import lax

from ... import checks, dtypes
from ...checks import not_implemented_for
from ...dtypes import dtype_of
from ...host.numbers import Exact
from ...operators.attach import attach_methods
from ...operators.declare import general, pointwise
from ...operators.promotion import is_bool, is_complex, is_float, needs_tensor, promote
from ...operators.schema import Array, Operand
from ...tensor import Tensor
from .arithmetic import zero

__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
]
__all__ += [
    "bitwise_xor",
    "eq",
    "equal",
    "gcd",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "isclose",
    "isfinite",
    "isinf",
]
__all__ += [
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "lcm",
    "le",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
]
__all__ += ["logical_or", "logical_xor", "lt", "ne", "not_equal"]


# What an in-place comparison makes of a gradient; the result of the others is no float and has none.
CONSTANT = dict(input=zero, other=zero)


# ---- comparisons ---------------------------------------------------------------------------------------------------


def ordered(name: str, input: Any, other: Any) -> list[Any]:
    """Both operands in their common dtype, which must have an order."""
    a, b = promote(input, other)
    if is_complex(a):
        raise not_implemented_for(f"{name}_cpu", dtype_of(a))
    return [a, b]


@pointwise(boolean=True, exact=Exact(operator.eq, floats=True), derivatives=CONSTANT)
def eq(input: Array, other: Operand) -> Array:
    """Where the elements are equal (NaN equals nothing).

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    >>> xtensor.tensor([1, 2, 3]) == 2
    tensor([False,  True, False])
    """
    a, b = promote(input, other)
    return a == b


@pointwise(aliases=("not_equal",), boolean=True, exact=Exact(operator.ne, floats=True), derivatives=CONSTANT)
def ne(input: Array, other: Operand) -> Array:
    """Where the elements differ.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    >>> xtensor.ne(xtensor.tensor([1, 2]), 1)
    tensor([False,  True])
    """
    a, b = promote(input, other)
    return a != b


@pointwise(aliases=("less",), boolean=True, exact=Exact(operator.lt, floats=True), derivatives=CONSTANT)
def lt(input: Array, other: Operand) -> Array:
    """Where `input < other`.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.tensor([1, 2, 3]) < 2
    tensor([ True, False, False])
    """
    a, b = ordered("lt", input, other)
    return a < b


@pointwise(aliases=("less_equal",), boolean=True, exact=Exact(operator.le, floats=True), derivatives=CONSTANT)
def le(input: Array, other: Operand) -> Array:
    """Where `input <= other`.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.le(xtensor.tensor([1, 2]), 1)
    tensor([ True, False])
    """
    a, b = ordered("le", input, other)
    return a <= b


@pointwise(aliases=("greater",), boolean=True, exact=Exact(operator.gt, floats=True), derivatives=CONSTANT)
def gt(input: Array, other: Operand) -> Array:
    """Where `input > other`.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.gt(xtensor.tensor([1, 2]), 1)
    tensor([False,  True])
    """
    a, b = ordered("gt", input, other)
    return a > b


@pointwise(
    aliases=("greater_equal",), boolean=True, exact=Exact(operator.ge, floats=True), derivatives=CONSTANT
)
def ge(input: Array, other: Operand) -> Array:
    """Where `input >= other`.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.ge(xtensor.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    a, b = ordered("ge", input, other)
    return a >= b


@general(name="_equal", derivatives=None)
def all_equal(input: Array, other: Array) -> Array:
    """Whether two arrays of one shape hold equal elements, as a 0-d bool."""
    a, b = promote(input, other)
    return jnp.all(a == b)


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and equal elements (NaN equals nothing).

    Shape: any two; a bool.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.equal(xtensor.tensor([1, 2]), xtensor.tensor([1, 2]))
    True
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("equal", "input", 1, "Tensor", input)
    if not isinstance(other, Tensor):
        raise checks.argument_error("equal", "other", 2, "Tensor", other)
    return tuple(input.shape) == tuple(other.shape) and bool(all_equal(input, other))


@pointwise(derivatives=None, inplace=False, out=False)
def isclose(
    input: Array, other: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Array:
    """Where `|input - other| <= atol + rtol * |other|`, or both are the same infinity.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    >>> xtensor.isclose(xtensor.tensor([1.0, 2.0]), xtensor.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    if input.dtype != other.dtype:
        raise RuntimeError(f"{dtype_of(input).scalar_name} did not match {dtype_of(other).scalar_name}")
    if rtol < 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol}")
    if atol < 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol}")
    close = input == other
    if equal_nan and (is_float(input) or is_complex(input)):
        close = close | (jnp.isnan(input) & jnp.isnan(other))
    if rtol == 0 and atol == 0:
        return close
    if is_bool(input):
        return close
    if not is_float(input) and not is_complex(input):
        kind = dtypes.get_default_dtype().numpy
        # The distance of two integers may be as far as unsigned ones of their width reach.
        far = jnp.where(input > other, input - other, other - input).astype(f"uint{8 * input.dtype.itemsize}")
        distance = far.astype(kind)
        return close | (distance <= atol + jnp.abs(rtol * other.astype(kind)))
    allowed = atol + jnp.abs(rtol * other)
    distance = jnp.abs(input - other)
    return close | (jnp.isfinite(distance) & (distance <= allowed))


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether `isclose` holds everywhere.

    Shape: `input` and `other` broadcast; a bool.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.

    >>> xtensor.allclose(xtensor.tensor([1.0, 2.0]), xtensor.tensor([1.0, 2.000001]))
    True
    """
    for position, (name, value) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(value, Tensor):
            raise checks.argument_error("allclose", name, position, "Tensor", value)
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


# ---- kinds of values -----------------------------------------------------------------------------------------------


@pointwise(derivatives=None, inplace=False, out=False)
def isnan(input: Array) -> Array:
    """Where an element, or either part of a complex one, is NaN.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.isnan(xtensor.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """
    return input != input


@pointwise(derivatives=None, inplace=False, out=False)
def isinf(input: Array) -> Array:
    """Where an element, or either part of a complex one, is infinite.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.isinf(xtensor.tensor([1.0, float("inf")]))
    tensor([False,  True])
    """
    if is_complex(input):
        return jnp.isinf(jnp.real(input)) | jnp.isinf(jnp.imag(input))
    return jnp.isinf(input)


@pointwise(derivatives=None, inplace=False, out=False)
def isfinite(input: Array) -> Array:
    """Where an element is neither infinite nor NaN.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.isfinite(xtensor.tensor([1.0, float("inf")]))
    tensor([ True, False])
    """
    return jnp.isfinite(input)


@pointwise(out="exact", derivatives=None, inplace=False)
def isposinf(input: Array) -> Array:
    """Where an element is positive infinity; RuntimeError for complex input.

    Shape: `input` `(*)`, result `(*)`.

    Raises: RuntimeError for complex tensors.
    """
    if is_complex(input):
        raise RuntimeError("isposinf does not support complex inputs.")
    return input == jnp.inf if is_float(input) else jnp.zeros(input.shape, bool)


@pointwise(out="exact", derivatives=None, inplace=False)
def isneginf(input: Array) -> Array:
    """Where an element is negative infinity; RuntimeError for complex input.

    Shape: `input` `(*)`, result `(*)`.

    Raises: RuntimeError for complex tensors.
    """
    if is_complex(input):
        raise RuntimeError("isneginf does not support complex inputs.")
    return input == -jnp.inf if is_float(input) else jnp.zeros(input.shape, bool)


@pointwise(derivatives=None, inplace=False, out=False)
def isreal(input: Array) -> Array:
    """Where an element has no imaginary part.

    Shape: `input` `(*)`, result `(*)`.
    """
    return jnp.imag(input) == 0 if is_complex(input) else jnp.ones(input.shape, bool)


# ---- logic ---------------------------------------------------------------------------------------------------------


@pointwise(exact=Exact(lambda a, b: bool(a and b)), derivatives=None)
def logical_and(input: Array, other: Array) -> Array:
    """Where both elements are nonzero.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    >>> xtensor.logical_and(xtensor.tensor([True, True]), xtensor.tensor([True, False]))
    tensor([ True, False])
    """
    return (input != 0) & (other != 0)


@pointwise(exact=Exact(lambda a, b: bool(a or b)), derivatives=None)
def logical_or(input: Array, other: Array) -> Array:
    """Where an element of either is nonzero.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    >>> xtensor.logical_or(xtensor.tensor([True, False]), xtensor.tensor([False, False]))
    tensor([ True, False])
    """
    return (input != 0) | (other != 0)


@pointwise(derivatives=None)
def logical_xor(input: Array, other: Array) -> Array:
    """Where exactly one of both elements is nonzero.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    """
    return (input != 0) ^ (other != 0)


@pointwise(exact=Exact(operator.not_), derivatives=None)
def logical_not(input: Array) -> Array:
    """Where an element is zero.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.logical_not(xtensor.tensor([True, False]))
    tensor([False,  True])
    """
    return input == 0


# ---- bits ----------------------------------------------------------------------------------------------------------


def bits(name: str, input: Any, other: Any, *, logical: bool = True) -> list[Any]:
    """Both operands in their common dtype, which must be integral or (where `logical`) bool."""
    needs_tensor(name, input, other)
    a, b = promote(input, other)
    if is_float(a) or is_complex(a) or (is_bool(a) and not logical):
        raise not_implemented_for(f"{name}_cpu", dtype_of(a))
    return jnp.broadcast_arrays(a, b)


@pointwise(exact=Exact(operator.and_), derivatives=None)
def bitwise_and(input: Operand, other: Operand) -> Array:
    """The bits set in both; logical for bools.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    """
    a, b = bits("bitwise_and", input, other)
    return a & b


@pointwise(exact=Exact(operator.or_), derivatives=None)
def bitwise_or(input: Operand, other: Operand) -> Array:
    """The bits set in either; logical for bools.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    """
    a, b = bits("bitwise_or", input, other)
    return a | b


@pointwise(exact=Exact(operator.xor), derivatives=None)
def bitwise_xor(input: Operand, other: Operand) -> Array:
    """The bits set in exactly one; logical for bools.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    """
    a, b = bits("bitwise_xor", input, other)
    return a ^ b


@pointwise(out="exact", derivatives=None)
def bitwise_not(input: Array) -> Array:
    """Every bit flipped; logical for bools.

    Shape: `input` `(*)`, result `(*)`.
    """
    if is_float(input) or is_complex(input):
        raise not_implemented_for("bitwise_not_cpu", dtype_of(input))
    return ~input


@pointwise(derivatives=None)
def bitwise_left_shift(input: Operand, other: Operand) -> Array:
    """The bits moved `other` places up; 0 where `other` is negative or no less than the width.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    """
    a, b = bits("lshift", input, other, logical=False)
    width = a.dtype.itemsize * 8
    inside = (b >= 0) & (b < width)
    return jnp.where(inside, lax.shift_left(a, jnp.where(inside, b, 0)), jnp.zeros_like(a))


@pointwise(derivatives=None)
def bitwise_right_shift(input: Operand, other: Operand) -> Array:
    """The bits moved `other` places down; only the sign remains where `other` is negative or no less than the width.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    """
    a, b = bits("rshift", input, other, logical=False)
    width = a.dtype.itemsize * 8
    last = jnp.asarray(width - 1 if jnp.issubdtype(a.dtype, jnp.signedinteger) else width, b.dtype)
    if not jnp.issubdtype(a.dtype, jnp.signedinteger):
        inside = b < width
        return jnp.where(inside, lax.shift_right_logical(a, jnp.where(inside, b, 0)), jnp.zeros_like(a))
    return lax.shift_right_arithmetic(a, jnp.where((b >= 0) & (b < last), b, last))


# ---- divisors ------------------------------------------------------------------------------------------------------


@pointwise(derivatives=None)
def gcd(input: Array, other: Array) -> Array:
    """The greatest common divisor, never negative; `gcd(0, 0)` is 0.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    """
    a, b = bits("gcd", input, other, logical=False)
    return jnp.gcd(a, b)


@pointwise(derivatives=None)
def lcm(input: Array, other: Array) -> Array:
    """The least common multiple, never negative; 0 where either is 0.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    """
    a, b = bits("lcm", input, other, logical=False)
    return jnp.lcm(a, b)


not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge


def invert(input: Tensor) -> Tensor:
    """`~input`; TypeError unless it is an integer or a bool."""
    if input.dtype.is_floating_point or input.dtype.is_complex:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(input)


attach_methods(allclose, equal, __invert__=invert)
