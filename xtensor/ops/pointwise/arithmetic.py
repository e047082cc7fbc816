"""Arithmetic, element by element: sums, products, quotients, remainders, and what is made of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import jax.numpy as jnp
from jax import lax

from ... import dtypes
from ...checks import not_implemented_for
from ...host.numbers import Exact
from ...operators.attach import attach_methods
from ...operators.declare import pointwise
from ...operators.functions.overloads import of_tensors
from ...operators.promotion import (
    category,
    float_operands,
    is_bool,
    is_complex,
    is_float,
    needs_tensor,
    operands,
    promote,
)
from ...operators.refusals import refuse_zero_divisors
from ...operators.schema import Array, Number, Operand
from ...tensor import Tensor

__all__ = [
    "abs",
    "absolute",
    "add",
    "addcdiv",
    "addcmul",
    "div",
    "divide",
    "floor_divide",
    "fmod",
    "lerp",
    "mul",
]
__all__ += ["multiply", "neg", "negative", "positive", "remainder", "rsub", "sgn", "sign", "signbit", "sub"]
__all__ += ["subtract", "true_divide"]


def not_implemented(name: str) -> Callable[..., NoReturn]:
    """A rule for an operator that is recorded but that PyTorch cannot differentiate."""

    def rule(grad: Any) -> NoReturn:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return rule


def zero(grad: Array) -> Array:
    """The rule of a function that is constant almost everywhere."""
    return jnp.zeros_like(grad)


# ---- sums ----------------------------------------------------------------------------------------------------------


def by_alpha(grad: Array, alpha: Any) -> Array:
    """`grad` times the conjugate of alpha; itself where alpha is its default, 1."""
    return grad if isinstance(alpha, int) else grad * jnp.conj(alpha)


def scaled(value: Array, alpha: Any) -> Array:
    """`alpha * value`, refusing an alpha that PyTorch would not accept for a result of this dtype."""
    if isinstance(alpha, int):
        return value
    dtype = value.dtype
    if is_bool(alpha) and dtype != jnp.bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if is_float(alpha) and not jnp.issubdtype(dtype, jnp.inexact):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if is_complex(alpha) and not jnp.issubdtype(dtype, jnp.complexfloating):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return value * alpha.astype(value.dtype)


def check_subtraction(input: Array, other: Operand) -> None:
    if is_bool(input) and is_bool(other):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if is_bool(input) or is_bool(other):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )


@pointwise(
    deprecated=(("input", "alpha", "other"),),
    exact=Exact(lambda a, b, alpha: a + alpha * b, floats=True),
    derivatives=dict(input=lambda grad: grad, other=lambda grad, alpha: by_alpha(grad, alpha)),
)
def add(input: Operand, other: Operand, *, alpha: Number = 1) -> Array:
    """`input + alpha * other`, element by element.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    >>> xtensor.add(xtensor.tensor([1, 2]), xtensor.tensor([[10], [20]]), alpha=2)
    tensor([[21, 22],
            [41, 42]])
    >>> xtensor.ones(2) + 1
    tensor([2., 2.])
    """
    a, b = promote(input, other)
    return a + scaled(b, alpha)


@pointwise(
    aliases=("subtract",),
    deprecated=(("input", "alpha", "other"),),
    exact=Exact(lambda a, b, alpha: a - alpha * b, floats=True),
    derivatives=dict(input=lambda grad: grad, other=lambda grad, alpha: -by_alpha(grad, alpha)),
)
def sub(input: Operand, other: Operand, *, alpha: Number = 1) -> Array:
    """`input - alpha * other`, element by element; RuntimeError for bool operands.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: RuntimeError for bool tensors.

    >>> xtensor.tensor([5, 7]) - xtensor.tensor([1, 2])
    tensor([4, 5])
    """
    check_subtraction(input, other)
    a, b = promote(input, other)
    return a - scaled(b, alpha)


@pointwise(
    method=False,
    inplace=False,
    derivatives=dict(input=lambda grad, alpha: -by_alpha(grad, alpha), other=lambda grad: grad),
)
def rsub(input: Array, other: Operand, *, alpha: Number = 1) -> Array:
    """`other - alpha * input`, element by element; RuntimeError for bool operands.

    Raises: RuntimeError for bool tensors.
    """
    check_subtraction(input, other)
    a, b = promote(input, other)
    return b - scaled(a, alpha)


@pointwise(
    out="exact",
    exact=Exact(operator.neg, floats=True),
    aliases=("negative",),
    derivatives=dict(input=lambda grad: -grad),
)
def neg(input: Array) -> Array:
    """Minus every element; RuntimeError for bool.

    Shape: `input` `(*)`, result `(*)`.

    Raises: RuntimeError for bool tensors.

    >>> -xtensor.tensor([1, -2])
    tensor([-1,  2])
    """
    if is_bool(input):
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    return -input


@of_tensors()
def positive(input: Tensor) -> Tensor:
    """The tensor itself; RuntimeError for bool.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool tensors.
    """
    if input.dtype is dtypes.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


# ---- products and quotients ----------------------------------------------------------------------------------------


@pointwise(
    aliases=("multiply",),
    derivatives=dict(
        input=lambda grad, other: grad * jnp.conj(other), other=lambda grad, input: grad * jnp.conj(input)
    ),
    exact=Exact(operator.mul, floats=True),
    several=False,
)
def mul(input: Operand, other: Operand) -> Array:
    """`input * other`, element by element.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    >>> xtensor.tensor([1, 2]) * xtensor.tensor([[10], [20]])
    tensor([[10, 20],
            [20, 40]])
    """
    a, b, dtype = operands(input, other)
    return (a * b).astype(dtype)


def divided(a: Array, b: Array) -> Array:
    """`a / b` of floats, correctly rounded.

    XLA turns a division by a broadcast operand into a multiplication by its inverse, by which 49 / 49 is below 1;
    the selection, which changes no value, keeps it from doing so.
    """
    if b.shape != jnp.broadcast_shapes(a.shape, b.shape) and is_float(a):
        b = jnp.where(a == a, b, a)
    return a / b


def floor_quotient(a: Array, b: Array) -> Array:
    """The quotient rounded down: of floats as Python's `//`, exact where `a / b` itself would round up."""
    a, b = jnp.broadcast_arrays(a, b)
    if not is_float(a):
        quotient = lax.div(a, b)
        return jnp.where((lax.rem(a, b) != 0) & ((a < 0) != (b < 0)), quotient - 1, quotient)
    rest = lax.rem(a, b)
    exact = (a - rest) / b
    exact = jnp.where((rest != 0) & ((b < 0) != (rest < 0)), exact - 1, exact)
    down = jnp.floor(exact)
    down = jnp.where(exact - down > 0.5, down + 1, down)
    down = jnp.where(exact == 0, jnp.copysign(jnp.zeros_like(a), a / b), down)
    return jnp.where(b == 0, a / b, down)


def check_numeric(name: str, dtype: Any) -> None:
    if dtype == jnp.bool_ or jnp.issubdtype(dtype, jnp.complexfloating):
        raise not_implemented_for(name, dtypes.FROM_NUMPY[dtype])


def rounded_to(x: Array, dtype: Any) -> Array:
    """A float32 value rounded to a half type's precision, which a mere cast and back may not do under XLA."""
    if x.dtype == dtype:
        return x
    limits = jnp.finfo(dtype)
    return lax.reduce_precision(x, limits.nexp, limits.nmant)


def div_other(grad: Array, input: Array, other: Array, rounding_mode: str | None) -> Array:
    if rounding_mode is not None:
        return jnp.zeros_like(grad)
    other = jnp.conj(other)
    return -grad * (jnp.conj(input) / other / other)


@pointwise(
    aliases=("divide",),
    refuses=refuse_zero_divisors,
    derivatives=dict(
        input=lambda grad, other, rounding_mode: (
            grad / jnp.conj(other) if rounding_mode is None else zero(grad)
        ),
        other=div_other,
    ),
)
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Array:
    """`input / other`, element by element; `rounding_mode` "trunc" rounds towards zero and "floor" down.

    With a rounding mode, an integer divided by zero is a RuntimeError on a CPU; elsewhere its quotient is unspecified.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    >>> xtensor.tensor([7, -7]) / 2
    tensor([ 3.5000, -3.5000])
    >>> xtensor.div(xtensor.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
    if rounding_mode is None:
        a, b, dtype = float_operands(input, other)
        return divided(a, b).astype(dtype)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    a, b, dtype = operands(input, other)
    check_numeric(f"div_{rounding_mode}_cpu", dtype)
    if rounding_mode == "floor":
        return floor_quotient(a, b).astype(dtype)
    if jnp.issubdtype(a.dtype, jnp.integer):
        return lax.div(*jnp.broadcast_arrays(a, b))
    return jnp.trunc(rounded_to(divided(a, b), dtype)).astype(dtype)


@pointwise(
    aliases=(),
    exact=Exact(operator.floordiv),
    refuses=refuse_zero_divisors,
    node=lambda node: "torch::autograd::NotImplemented",
    derivatives=dict(input=not_implemented("floor_divide"), other=not_implemented("floor_divide")),
)
def floor_divide(input: Operand, other: Operand) -> Array:
    """`input / other` rounded down, element by element.

    An integer divided by zero is a RuntimeError on a CPU; elsewhere its quotient is unspecified.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex and bool tensors.

    >>> xtensor.tensor([7, -7]) // 2
    tensor([ 3, -4])
    """
    a, b, dtype = operands(input, other)
    check_numeric("div_floor_cpu", dtype)
    return floor_quotient(a, b).astype(dtype)


@pointwise(
    exact=Exact(operator.mod),
    refuses=refuse_zero_divisors,
    derivatives=dict(
        input=lambda grad: grad,
        other=lambda grad, input, other: (
            -grad * lax.stop_gradient(floor_quotient(*operands(input, other)[:2]))
        ),
    ),
)
def remainder(input: Operand, other: Operand) -> Array:
    """The remainder of `input / other` with the sign of `other`, as Python's `%`.

    An integer modulo zero is a RuntimeError on a CPU; elsewhere its remainder is unspecified.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex and bool tensors.

    >>> xtensor.tensor([7, -7]) % 3
    tensor([1, 2])
    """
    needs_tensor("remainder", input, other)
    a, b, dtype = operands(*promote(input, other))
    check_numeric("remainder_cpu", dtype)
    rest = lax.rem(*jnp.broadcast_arrays(a, b))
    return jnp.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest).astype(dtype)


def fmod_other(grad: Array, input: Array, other: Array) -> Array:
    a, b, _ = operands(input, other)
    return -grad * lax.stop_gradient(jnp.trunc(divided(a, b)))


@pointwise(refuses=refuse_zero_divisors, derivatives=dict(input=lambda grad: grad, other=fmod_other))
def fmod(input: Array, other: Operand) -> Array:
    """The remainder of `input / other` with the sign of `input`, as C's `fmod`.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.
    An integer modulo zero is a RuntimeError on a CPU; elsewhere its remainder is unspecified.

    Raises: NotImplementedError for complex and bool tensors.
    """
    a, b, dtype = operands(*promote(input, other))
    check_numeric("fmod_cpu", dtype)
    return lax.rem(*jnp.broadcast_arrays(a, b)).astype(dtype)


# ---- magnitude and sign --------------------------------------------------------------------------------------------


def direction(x: Array) -> Array:
    """`x / |x|`, and 0 at 0 and for NaN; differentiable there, as 0."""
    if not is_complex(x):
        return jnp.where(x > 0, 1, jnp.where(x < 0, -1, 0)).astype(x.dtype)
    safe = jnp.where(x == 0, 1, x)
    return jnp.where(x == 0, 0, safe / jnp.abs(safe))


def sgn_rule(grad: Array, input: Array, result: Array) -> Array:
    """Of `z / |z|`: what of the gradient is perpendicular to `z`, over `|z|`."""
    if not is_complex(input):
        return jnp.zeros_like(grad)
    safe = jnp.where(input == 0, 1, input)
    along = jnp.real(jnp.conj(grad) * safe) * safe / jnp.square(jnp.abs(safe))
    return jnp.where(input == 0, 0, (grad - along) / jnp.abs(safe))


@pointwise(
    out="exact",
    aliases=("absolute",),
    zero_slope=True,
    derivatives=dict(input=lambda grad, input: grad * direction(input)),
)
def abs(input: Array) -> Array:
    """The absolute value of every element: real for complex input.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for bool tensors.

    >>> xtensor.abs(xtensor.tensor([-1, 2, -3]))
    tensor([1, 2, 3])
    """
    if is_bool(input):
        raise not_implemented_for("abs_cpu", dtypes.bool)
    return jnp.abs(input)


@pointwise(out="exact", derivatives=dict(input=zero))
def sign(input: Array) -> Array:
    """-1, 0 or 1 for every element, and 0 for NaN; RuntimeError for complex input.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.tensor([-2.5, 0.0, 3.0]).sign()
    tensor([-1.,  0.,  1.])
    """
    if is_complex(input):
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    if is_bool(input):
        return input
    return direction(input)


@pointwise(out="exact", derivatives=dict(input=sgn_rule))
def sgn(input: Array) -> Array:
    """`input / |input|`, and 0 at 0: `sign` for complex numbers.

    Shape: `input` `(*)`, result `(*)`.
    """
    return input if is_bool(input) else direction(input)


@pointwise(out="exact", derivatives=None, inplace=False)
def signbit(input: Array) -> Array:
    """Whether the sign bit is set: True for -0.0.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors.
    """
    if is_complex(input):
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    if is_float(input):
        return jnp.signbit(input)
    return jnp.zeros(input.shape, bool) if is_bool(input) else input < 0


# ---- fused products ------------------------------------------------------------------------------------------------


def multiplied(value: Any, x: Array) -> Array:
    """`value * x`; RuntimeError for a complex value of a real result."""
    if isinstance(value, int):
        return x
    if is_complex(value) and not is_complex(x):
        name = {"float64": "double", "float32": "float"}.get(x.dtype.name, f"{x.dtype.name}_t")
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    return value.astype(x.dtype) * x


@pointwise(
    autocast=dict(accelerator="widest"),
    deprecated=(("input", "value", "tensor1", "tensor2"),),
    derivatives=dict(
        input=lambda grad: grad,
        tensor1=lambda grad, tensor2, value: grad * jnp.conj(tensor2 * value),
        tensor2=lambda grad, tensor1, value: grad * jnp.conj(tensor1 * value),
    ),
)
def addcmul(input: Array, tensor1: Operand, tensor2: Operand, *, value: Number = 1) -> Array:
    """`input + value * tensor1 * tensor2`, element by element.

    Shape: `input`, `tensor1` and `tensor2` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for bool tensors.
    """
    a, b, c, dtype = operands(input, tensor1, tensor2)
    if dtype == jnp.bool_:
        raise not_implemented_for("addcmul_cpu_out", dtypes.bool)
    return (a + multiplied(value, b) * c).astype(dtype)


@pointwise(
    autocast=dict(accelerator="widest"),
    deprecated=(("input", "value", "tensor1", "tensor2"),),
    derivatives=dict(
        input=lambda grad: grad,
        tensor1=lambda grad, tensor2, value: grad * jnp.conj(value / tensor2),
        tensor2=lambda grad, tensor1, tensor2, value: -grad * jnp.conj(value * tensor1 / (tensor2 * tensor2)),
    ),
)
def addcdiv(input: Array, tensor1: Operand, tensor2: Operand, *, value: Number = 1) -> Array:
    """`input + value * tensor1 / tensor2`, element by element; RuntimeError where both of them are integers.

    Shape: `input`, `tensor1` and `tensor2` broadcast together; the result has their broadcast shape.

    Raises: RuntimeError for bool and integer tensors.
    """
    if not any(is_float(t) or is_complex(t) for t in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )
    a, b, c, dtype = operands(input, tensor1, tensor2)
    return (a + divided(multiplied(value, b), c)).astype(dtype)


def lerp_weight(grad: Array, input: Array, end: Array) -> Array:
    return grad * jnp.conj(end - input)


@pointwise(
    out="exact tensors",
    derivatives=dict(
        input=lambda grad, weight: grad * jnp.conj(1 - jnp.asarray(weight)),
        end=lambda grad, weight: grad * jnp.conj(weight),
        weight=lerp_weight,
    ),
)
def lerp(input: Array, end: Array, weight: Operand) -> Array:
    """`input + weight * (end - input)`, exact at both ends.

    Shape: `input`, `end` and `weight` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for bool and integer tensors.

    >>> xtensor.lerp(xtensor.zeros(2), xtensor.tensor([10.0, 20.0]), 0.25)
    tensor([2.5000, 5.0000])
    """
    if input.dtype != end.dtype:
        names = {"float32": "float", "float64": "double"}
        want, have = (names.get(x.dtype.name, x.dtype.name) for x in (input, end))
        raise RuntimeError(f"expected dtype {want} for `end` but got dtype {have}")
    if not is_float(input) and not is_complex(input):
        kind = "scalar" if category(weight) == dtypes.WRAPPED else "tensor"
        raise not_implemented_for(f"lerp_kernel_{kind}", dtypes.FROM_NUMPY[input.dtype])
    a, b, w, dtype = operands(input, end, weight)
    if is_complex(w) and not is_complex(input):
        raise RuntimeError("value cannot be converted to type double without overflow")
    near = jnp.abs(w) < 0.5
    return jnp.where(near, a + w * (b - a), b - (b - a) * (1 - w)).astype(dtype)


def true_divide(input: Any, other: Any, *, out: Any = None) -> Tensor:
    """`input / other`, element by element.

    Shape: `input` and `other` broadcast; result as broadcast.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.
    """
    return div(input, other, out=out)


def true_divide_(input: Tensor, other: Any) -> Tensor:
    """`input /= other`.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a leaf that requires grad.
    """
    return input.div_(other)


absolute, divide, multiply, negative, subtract = abs, div, mul, neg, sub

abs_inplace: Any = abs.operator.inplace


def abs_(input: Tensor) -> Tensor:
    """In-place version of `abs`.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a leaf that requires grad.
    """
    if isinstance(input, Tensor) and input.is_complex():
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return abs_inplace(input)


attach_methods(abs_, positive, true_divide, true_divide_, absolute_=abs_, __pos__=positive)
