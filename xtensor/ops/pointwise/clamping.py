"""Values between bounds: clamp, the larger and the smaller of two, and values that are replaced."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from ... import dtypes
from ...checks import not_implemented_for
from ...operators.declare import pointwise
from ...operators.promotion import category, float_operands, is_bool, is_complex, is_float, promote
from ...operators.schema import Array, Number, Operand
from .arithmetic import not_implemented, zero

__all__ = [
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "copysign",
    "fmax",
    "fmin",
    "heaviside",
    "maximum",
    "minimum",
]
__all__ += ["nan_to_num", "nextafter"]


def refuse_complex(message: str, *values: Any, error: type[Exception] = NotImplementedError) -> None:
    if any(v is not None and is_complex(v) for v in values):
        raise error(message)


# ---- clamp ---------------------------------------------------------------------------------------------------------


def clamp_operands(name: str, input: Array, *bounds: Any) -> list[Any]:
    refuse_complex("clamp is not supported for complex types", input, *bounds)
    numbers = [category(b) == dtypes.WRAPPED for b in bounds if b is not None]
    if any(numbers) and not all(numbers) and all(jnp.ndim(b) == 0 for b in bounds):
        # Beside a number, a tensor of no dimensions is one.
        numbers = [True, True]
    values = promote(input, *bounds, numbers=any(numbers))
    if any(numbers) and not all(numbers):
        raise TypeError(
            f"{name}() received an invalid combination of arguments: one bound is a Tensor, one a Number"
        )
    if is_bool(values[0]) and (all(numbers) or len(numbers) == 2):
        raise not_implemented_for(f"{name}_scalar_cpu" if all(numbers) else f"{name}_cpu", dtypes.bool)
    return values


def inside(input: Array, min: Any, max: Any) -> Array:
    """Where the input lies between the bounds, these included."""
    result = jnp.ones((), bool)
    if min is not None:
        result = result & (input >= min)
    if max is not None:
        result = result & (input <= max)
    return result


def clamp_min_bound(grad: Array, input: Array, min: Array, max: Any) -> Array:
    taken = input < min if max is None else (input < min) & (min < max)
    return jnp.where(taken, grad, 0)


def clamp_max_bound(grad: Array, input: Array, min: Any, max: Array) -> Array:
    taken = input > max if min is None else (input > max) | (max < min)
    return jnp.where(taken, grad, 0)


@pointwise(
    out="exact numbers",
    aliases=("clip",),
    # By numbers or by tensors: an edge to a bound is one.
    node=lambda node: "ClampBackward1" if node._xt_edges[1:] == (None, None) else "ClampBackward0",
    derivatives=dict(
        input=lambda grad, input, min, max: jnp.where(inside(input, min, max), grad, 0),
        min=clamp_min_bound,
        max=clamp_max_bound,
    ),
)
def clamp(input: Array, min: Operand | None = None, max: Operand | None = None) -> Array:
    """Every element brought between two bounds (numbers or tensors); `max` wins where they cross, NaN stays.

    Shape: `input`, `min` and `max` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.clamp(xtensor.tensor([-2.0, 0.5, 3.0]), min=-1, max=1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    x, low, high = clamp_operands("clamp", input, min, max)
    if low is not None:
        x = jnp.maximum(x, low)
    return x if high is None else jnp.minimum(x, high)


@pointwise(
    out="exact numbers",
    derivatives=dict(
        input=lambda grad, input, min: jnp.where(input >= min, grad, 0),
        min=lambda grad, input, min: jnp.where(input < min, grad, 0),
    ),
)
def clamp_min(input: Array, min: Operand) -> Array:
    """Every element, or the bound where that is larger.

    Shape: `input` and `min` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.
    """
    x, low = clamp_operands("clamp_min", input, min)
    return jnp.maximum(x, low)


@pointwise(
    out="exact numbers",
    derivatives=dict(
        input=lambda grad, input, max: jnp.where(input <= max, grad, 0),
        max=lambda grad, input, max: jnp.where(input > max, grad, 0),
    ),
)
def clamp_max(input: Array, max: Operand) -> Array:
    """Every element, or the bound where that is smaller.

    Shape: `input` and `max` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.
    """
    x, high = clamp_operands("clamp_max", input, max)
    return jnp.minimum(x, high)


# ---- the larger and the smaller ------------------------------------------------------------------------------------


def shared(grad: Array, tie: Array, lost: Array) -> Array:
    """The gradient of one of two candidates: half of it where both are equal, none where the other was taken."""
    return jnp.where(tie, grad / 2, jnp.where(lost, 0, grad))


@pointwise(
    inplace=False,
    derivatives=dict(
        input=lambda grad, input, other: shared(grad, input == other, input < other),
        other=lambda grad, input, other: shared(grad, input == other, input > other),
    ),
)
def maximum(input: Array, other: Array) -> Array:
    """The larger of two elements, or NaN where either is NaN.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: RuntimeError for complex tensors.

    >>> xtensor.maximum(xtensor.tensor([1, 5]), xtensor.tensor([3, 2]))
    tensor([3, 5])
    """
    refuse_complex("maximum not implemented for complex tensors.", input, other, error=RuntimeError)
    return jnp.maximum(*promote(input, other))


@pointwise(
    inplace=False,
    derivatives=dict(
        input=lambda grad, input, other: shared(grad, input == other, input > other),
        other=lambda grad, input, other: shared(grad, input == other, input < other),
    ),
)
def minimum(input: Array, other: Array) -> Array:
    """The smaller of two elements, or NaN where either is NaN.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: RuntimeError for complex tensors.

    >>> xtensor.minimum(xtensor.tensor([1, 5]), xtensor.tensor([3, 2]))
    tensor([1, 2])
    """
    refuse_complex("minimum not implemented for complex tensors.", input, other, error=RuntimeError)
    return jnp.minimum(*promote(input, other))


@pointwise(
    inplace=False,
    derivatives=dict(
        input=lambda grad, input, other: jnp.where((input >= other) | (other != other), grad, 0),
        other=lambda grad, input, other: jnp.where((input >= other) | (other != other), 0, grad),
    ),
)
def fmax(input: Array, other: Array) -> Array:
    """The larger of two elements, the number where one of them is NaN.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: RuntimeError for complex tensors.
    """
    refuse_complex("fmax not implemented for complex tensors.", input, other, error=RuntimeError)
    a, b = promote(input, other)
    return jnp.where((a != a) | (a < b), b, a)


@pointwise(
    inplace=False,
    derivatives=dict(
        input=lambda grad, input, other: jnp.where((input <= other) | (other != other), grad, 0),
        other=lambda grad, input, other: jnp.where((input <= other) | (other != other), 0, grad),
    ),
)
def fmin(input: Array, other: Array) -> Array:
    """The smaller of two elements, the number where one of them is NaN.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: RuntimeError for complex tensors.
    """
    refuse_complex("fmin not implemented for complex tensors.", input, other, error=RuntimeError)
    a, b = promote(input, other)
    return jnp.where((a != a) | (a > b), b, a)


# ---- replaced values -----------------------------------------------------------------------------------------------


@pointwise(out="exact", derivatives=dict(input=lambda grad, input: grad * jnp.isfinite(input)))
def nan_to_num(
    input: Array, nan: Number | None = None, posinf: Number | None = None, neginf: Number | None = None
) -> Array:
    """NaN replaced by `nan` (0), infinities by `posinf` and `neginf` (the largest and smallest finite value).

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.nan_to_num(xtensor.tensor([1.0, float("nan")]))
    tensor([1., 0.])
    """
    if is_complex(input):
        real = replaced(jnp.real(input), nan, posinf, neginf)
        return lax.complex(real, replaced(jnp.imag(input), nan, posinf, neginf))
    return replaced(input, nan, posinf, neginf) if is_float(input) else input


def replaced(x: Array, nan: Any, posinf: Any, neginf: Any) -> Array:
    limits = jnp.finfo(x.dtype)

    def chosen(value: Any, otherwise: Any) -> Array:
        return jnp.asarray(otherwise if value is None else value).astype(x.dtype)

    x = jnp.where(jnp.isnan(x), chosen(nan, 0), x)
    x = jnp.where(x == jnp.inf, chosen(posinf, limits.max), x)
    return jnp.where(x == -jnp.inf, chosen(neginf, limits.min), x)


def copysign_input(grad: Array, input: Array, result: Array) -> Array:
    safe = jnp.where(input == 0, 1, input)
    return jnp.where(input == 0, 0, grad * (result / safe))


@pointwise(derivatives=dict(input=copysign_input, other=zero))
def copysign(input: Array, other: Operand) -> Array:
    """The magnitude of `input` with the sign of `other`, that of -0.0 included.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex tensors.
    """
    a, b, dtype = float_operands(input, other)
    if is_complex(a):
        raise not_implemented_for("copysign_cpu", dtypes.FROM_NUMPY[dtype])
    return jnp.copysign(a, b).astype(dtype)


@pointwise(
    derivatives=dict(input=lambda grad, input, other: jnp.where(input == other, 0, grad), other=zero),
)
def nextafter(input: Array, other: Array) -> Array:
    """The next float after `input` towards `other`.

    Shape: `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    a, b = promote(input, other)
    if not is_float(a):
        raise not_implemented_for("nextafter_cpu", dtypes.FROM_NUMPY[a.dtype])
    return lax.nextafter(*jnp.broadcast_arrays(a, b))


@pointwise(
    out="exact numbers",
    node=lambda node: "torch::autograd::NotImplemented",
    derivatives=dict(input=not_implemented("heaviside"), values=not_implemented("heaviside")),
)
def heaviside(input: Array, values: Array) -> Array:
    """0 for negative elements, 1 for positive ones, `values` at 0; both of one real dtype.

    Shape: `input` and `values` broadcast together; the result has their broadcast shape.

    Raises: RuntimeError for complex tensors.
    """
    refuse_complex("heaviside is not yet implemented for complex tensors.", input, values, error=RuntimeError)
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return jnp.where(input == 0, values, (input > 0).astype(input.dtype))


clip = clamp
