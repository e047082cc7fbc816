"""Activation functions, element by element, and those along a dimension: softmax and its relatives."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from ... import dtypes
from ...checks import not_implemented_for, wrap_dim
from ...operators.declare import general, pointwise
from ...operators.promotion import as_dtype, is_bool, is_complex, is_float, operands
from ...operators.schema import Array, Number
from ...xla.platforms import on_cpu
from ...xla.symbolic import is_open
from .elementwise import logistic, sloped

__all__ = ["hardshrink", "log_softmax", "relu", "softmax"]


def computed(name: str, input: Array) -> tuple[Array, Any]:
    """A float input in the type to compute in, and its own dtype; NotImplementedError for any other input."""
    if not is_float(input):
        raise not_implemented_for(name, dtypes.FROM_NUMPY[input.dtype])
    return operands(input)


def ordered(input: Array) -> Array:
    """An input that has an order, as it is."""
    if is_complex(input):
        raise NotImplementedError("clamp is not supported for complex types")
    return input


def number(value: Any, like: Array) -> Array:
    """A Python number in the dtype of an array."""
    return jnp.asarray(value).astype(like.dtype)


# ---- piecewise linear ----------------------------------------------------------------------------------------------


@pointwise(zero_slope=True, derivatives=dict(input=lambda grad, result: jnp.where(result <= 0, 0, grad)))
def relu(input: Array) -> Array:
    """Every element, or 0 where it is negative; the derivative at 0 is 0.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex tensors; RuntimeError for bool tensors.

    >>> xtensor.relu(xtensor.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """
    if is_bool(input):
        raise RuntimeError("Boolean inputs not supported for relu")
    return jnp.maximum(ordered(input), 0)


def hardtanh_input(grad: Array, input: Array, min_val: Any, max_val: Any) -> Array:
    return jnp.where((input <= min_val) | (input >= max_val), 0, grad)


@pointwise(zero_slope=True, method=False, out=False, derivatives=dict(input=hardtanh_input))
def hardtanh(input: Array, min_val: Number = -1.0, max_val: Number = 1.0) -> Array:
    """Every element brought to [min_val, max_val]; the derivative at both bounds is 0.

    Raises: NotImplementedError for complex tensors; RuntimeError for bool tensors.
    """
    if is_bool(input):
        raise RuntimeError("Bool inputs not supported for hardtanh")
    x = ordered(input)
    return jnp.minimum(jnp.maximum(x, number(min_val, x)), number(max_val, x))


@pointwise(
    zero_slope=True,
    method=False,
    out=False,
    derivatives=dict(
        input=lambda grad, input, negative_slope: jnp.where(
            input > 0, grad, sloped(grad, number(negative_slope, operands(grad)[0]))
        )
    ),
)
def leaky_relu(input: Array, negative_slope: Number = 0.01) -> Array:
    """Every element, times `negative_slope` where it is not positive.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    x, dtype = computed("leaky_relu_cpu", input)
    return jnp.where(x > 0, x, x * number(negative_slope, x)).astype(dtype)


@pointwise(
    method=False,
    inplace=False,
    out=False,
    node="PreluKernel",
    derivatives=dict(
        input=lambda grad, input, weight: jnp.where(input > 0, grad, weight * grad),
        weight=lambda grad, input: jnp.where(input >= 0, 0, input * grad),
    ),
)
def prelu_kernel(input: Array, weight: Array) -> Array:
    """Every element, times its own weight where it is not positive."""
    x, dtype = computed("prelu_cpu", input)
    w, _ = operands(weight)
    return jnp.where(x > 0, x, w * x).astype(dtype)


@pointwise(
    zero_slope=True,
    method=False,
    derivatives=dict(
        input=lambda grad, input, threshold: jnp.where(operands(input)[0] <= threshold, 0, grad)
    ),
)
def threshold(input: Array, threshold: Number, value: Number) -> Array:
    """Every element, or `value` where it is at most `threshold`."""
    if is_bool(input) or is_complex(input):
        raise not_implemented_for("threshold_cpu", dtypes.FROM_NUMPY[input.dtype])
    x, _ = operands(input)
    return jnp.where(x <= number(threshold, x), number(value, input), input)


def hardsigmoid_input(grad: Array, input: Array) -> Array:
    x, _ = operands(input)
    return jnp.where((x > -3) & (x < 3), sloped(grad, number(1 / 6, x)), 0)


@pointwise(
    zero_slope=True,
    method=False,
    out=False,
    derivatives=dict(input=hardsigmoid_input),
)
def hardsigmoid(input: Array) -> Array:
    """`relu6(x + 3) / 6`.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    x, dtype = computed("hardsigmoid_cpu", input)
    return (jnp.minimum(jnp.maximum(x + 3, 0), 6) / 6).astype(dtype)


def hardswish_input(grad: Array, input: Array) -> Array:
    x, _ = operands(input)
    return sloped(grad, jnp.where(x <= -3, 0, jnp.where(x < 3, x / 3 + 0.5, 1)))


@pointwise(method=False, out=False, derivatives=dict(input=hardswish_input))
def hardswish(input: Array) -> Array:
    """`x * relu6(x + 3) / 6`.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    x, dtype = computed("hardswish_cpu", input)
    return (x * jnp.minimum(jnp.maximum(x + 3, 0), 6) / 6).astype(dtype)


def shrink_input(grad: Array, input: Array, lambd: Any) -> Array:
    return jnp.where((input >= -lambd) & (input <= lambd), 0, grad)


@pointwise(out="exact", inplace=False, derivatives=dict(input=shrink_input))
def hardshrink(input: Array, lambd: Number = 0.5) -> Array:
    """Every element, or 0 where it lies in [-lambd, lambd].

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex, bool and integer tensors.

    Source: Donoho and Johnstone 1994, Biometrika 81.
    """
    x, dtype = computed("hardshrink_cpu", input)
    bound = number(lambd, x)
    return jnp.where((x >= -bound) & (x <= bound), 0, x).astype(dtype)


@pointwise(out="exact", method=False, inplace=False, derivatives=dict(input=shrink_input))
def softshrink(input: Array, lambd: Number = 0.5) -> Array:
    """Every element moved towards 0 by `lambd`, and 0 where it lies in [-lambd, lambd].

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    x, dtype = computed("softshrink_check", input)
    bound = number(lambd, x)
    return jnp.where(x > bound, x - bound, jnp.where(x < -bound, x + bound, x * 0)).astype(dtype)


# ---- exponential ---------------------------------------------------------------------------------------------------


def elu_input(grad: Array, input: Array, alpha: Any, scale: Any, input_scale: Any) -> Array:
    # The slope at 0 is that of the left side, and the second derivative there 0.
    x, _ = operands(input)
    low = jnp.where(x < 0, x, 0) * input_scale
    return sloped(grad, jnp.where(x <= 0, input_scale * alpha * scale * jnp.exp(low), scale).astype(x.dtype))


@pointwise(method=False, out=False, derivatives=dict(input=elu_input))
def elu(input: Array, alpha: Number = 1.0, scale: Number = 1.0, input_scale: Number = 1.0) -> Array:
    """`scale * x` for positive x, `scale * alpha * (exp(input_scale * x) - 1)` for the others.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    x, dtype = computed("elu_cpu", input)
    low = jnp.where(x <= 0, x, 0) * number(input_scale, x)
    negative = jnp.expm1(low) * (number(alpha, x) * number(scale, x))
    return jnp.where(x <= 0, negative, x * number(scale, x)).astype(dtype)


def celu_input(grad: Array, input: Array, alpha: Any) -> Array:
    x, _ = operands(input)
    return sloped(grad, jnp.where(x <= 0, jnp.exp(jnp.where(x < 0, x, 0) / alpha), 1).astype(x.dtype))


@pointwise(method=False, out=False, derivatives=dict(input=celu_input))
def celu(input: Array, alpha: Number = 1.0) -> Array:
    """The element itself where it is positive, `alpha * (exp(x / alpha) - 1)` elsewhere."""
    x, dtype = computed("elu_cpu", input)
    a = number(alpha, x)
    return jnp.where(x <= 0, jnp.expm1(jnp.where(x <= 0, x, 0) / a) * a, x).astype(dtype)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@pointwise(
    method=False,
    out=False,
    node="Elu",
    derivatives=dict(input=lambda grad, input: elu_input(grad, input, SELU_ALPHA, SELU_SCALE, 1.0)),
)
def selu(input: Array) -> Array:
    """`elu` with the scales under which activations keep mean 0 and variance 1."""
    x, dtype = computed("elu_cpu", input)
    negative = jnp.expm1(jnp.where(x <= 0, x, 0)) * (SELU_ALPHA * SELU_SCALE)
    return jnp.where(x <= 0, negative, x * SELU_SCALE).astype(dtype)


def silu_input(grad: Array, input: Array) -> Array:
    x, _ = operands(input)
    s = logistic(x)
    return sloped(grad, jnp.conj(s * (1 + x * (1 - s))))


@pointwise(method=False, out=False, derivatives=dict(input=silu_input))
def silu(input: Array) -> Array:
    """`x * sigmoid(x)`.

    Raises: NotImplementedError for bool and integer tensors.
    """
    if not is_complex(input):
        computed("silu_cpu", input)
    x, dtype = operands(input)
    return (x * logistic(x)).astype(dtype)


def soft(x: Array) -> Array:
    """`log(1 + exp(x))` without overflow."""
    return jnp.logaddexp(x, jnp.zeros((), x.dtype))


def mish_input(grad: Array, input: Array) -> Array:
    x, _ = operands(input)
    t = jnp.tanh(soft(x))
    return sloped(grad, t + x * logistic(x) * (1 - t * t))


@pointwise(method=False, out=False, derivatives=dict(input=mish_input))
def mish(input: Array) -> Array:
    """`x * tanh(softplus(x))`.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    x, dtype = computed("mish_cpu", input)
    return (x * jnp.tanh(soft(x))).astype(dtype)


def softplus_input(grad: Array, input: Array, beta: Any, threshold: Any) -> Array:
    x, _ = operands(input)
    scaled = x * beta
    # At the threshold itself the second derivative is 0 already.
    curved = jnp.where(scaled < threshold, scaled, lax.stop_gradient(scaled))
    return sloped(grad, jnp.where(scaled > threshold, 1, logistic(curved)))


@pointwise(
    autocast=dict(accelerator="float32"),
    out="exact",
    method=False,
    inplace=False,
    derivatives=dict(input=softplus_input),
)
def softplus(input: Array, beta: Number = 1.0, threshold: Number = 20.0) -> Array:
    """`log(1 + exp(beta * x)) / beta`, and x itself where `beta * x` is above `threshold`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex, bool and integer tensors.

    Source: Dugas et al. 2001, Advances in Neural Information Processing Systems 13.

    >>> F.softplus(xtensor.tensor([0.0, 1.0]))
    tensor([0.6931, 1.3133])
    """
    x, dtype = computed("softplus_cpu", input)
    b = number(beta, x)
    scaled = x * b
    high = scaled > number(threshold, x)
    return jnp.where(high, x, jnp.log1p(jnp.exp(jnp.where(high, 0, scaled))) / b).astype(dtype)


@pointwise(
    out="exact",
    method=False,
    inplace=False,
    node="LogSigmoid",
    derivatives=dict(input=lambda grad, input: sloped(grad, logistic(-operands(input)[0]))),
)
def logsigmoid(input: Array) -> Array:
    """`log(sigmoid(x))` without overflow.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex, bool and integer tensors.

    >>> F.logsigmoid(xtensor.tensor([0.0, 2.0]))
    tensor([-0.6931, -0.1269])
    """
    x, dtype = computed("log_sigmoid_cpu", input)
    return (-soft(-x)).astype(dtype)


# ---- gelu ----------------------------------------------------------------------------------------------------------

GELU_SCALE, GELU_CUBE = math.sqrt(2 / math.pi), 0.044715


def gelu_input(grad: Array, input: Array, approximate: str) -> Array:
    x, _ = operands(input)
    if approximate == "tanh":
        t = jnp.tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x))
        inner = GELU_SCALE * (1 + 3 * GELU_CUBE * x * x)
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner
    else:
        slope = 0.5 * (1 + lax.erf(x * math.sqrt(0.5))) + x * jnp.exp(-0.5 * x * x) * (
            1 / math.sqrt(2 * math.pi)
        )
    return sloped(grad, slope)


@pointwise(method=False, inplace=False, derivatives=dict(input=gelu_input))
def gelu(input: Array, *, approximate: str = "none") -> Array:
    """`x` times the normal distribution function at x, or its approximation by tanh.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex, bool and integer tensors.

    Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.

    >>> F.gelu(xtensor.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    x, dtype = computed("GeluKernelImpl", input)
    if approximate == "tanh":
        return (0.5 * x * (1 + jnp.tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x)))).astype(dtype)
    if approximate != "none":
        raise RuntimeError("approximate argument must be either none or tanh.")
    # Through erf rather than erfc: less than half the time on a CPU.
    return (0.5 * x * (1 + lax.erf(x * math.sqrt(0.5)))).astype(dtype)


# ---- along a dimension ---------------------------------------------------------------------------------------------


def split_halves(input: Array, dim: int) -> tuple[Array, Array]:
    if input.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    axis = wrap_dim(dim, input.ndim)
    size = input.shape[axis]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")
    return lax.slice_in_dim(input, 0, size // 2, axis=axis), lax.slice_in_dim(
        input, size // 2, size, axis=axis
    )


def glu_input(grad: Array, input: Array, dim: int) -> Array:
    (x, dtype), (g, _) = operands(input), operands(grad)
    a, b = split_halves(x, dim)
    gate = logistic(b)
    return jnp.concatenate([g * gate, g * a * gate * (1 - gate)], axis=wrap_dim(dim, x.ndim)).astype(dtype)


@general(formats=True, out=True, derivatives=dict(input=glu_input))
def glu(input: Array, dim: int = -1) -> Array:
    """The first half of a dimension times the sigmoid of its second half.

    Shape: `input` `(*, 2 * n, *)`, result `(*, n, *)`.

    Raises: NotImplementedError for complex, bool and integer tensors.

    Source: Dauphin et al. 2017, arXiv:1612.08083.

    >>> F.glu(xtensor.tensor([2.0, 0.0]))
    tensor([1.])
    """
    x, dtype = computed("glu_cpu", input)
    a, b = split_halves(x, dim)
    return (a * logistic(b)).astype(dtype)


def softened(name: str, input: Array, dim: int, dtype: Any) -> tuple[Array, int, Any]:
    """The input less its maximum along `dim`, that dimension from the front, and the dtype of the result."""
    if dtype is not None:
        input = as_dtype(input, dtype)
    axis = wrap_dim(dim, input.ndim)
    kind = f"{name}_lastdim_kernel_impl" if axis >= input.ndim - 1 else f"{name}_kernel_impl"
    # PyTorch does not ask for a kernel where there is nothing.
    x, result = computed(kind, input) if input.size else (input.astype(jnp.float32), input.dtype)
    if input.ndim == 0:
        return x - lax.stop_gradient(x), axis, result
    if x.shape[axis] == 0:
        return x, axis, result
    return x - jnp.max(x, axis=axis, keepdims=True), axis, result


def summed(x: Array, axis: int) -> Array:
    return jnp.sum(x, axis=axis, keepdims=True) if x.ndim else x


LONG_ROW = 64
"""Elements from which a row's sum is a product with ones on the CPU, where what is summed up is computed and used again."""


def row_sums(x: Array, axis: int) -> Array:
    """`summed` of values that are used once more: as a product, XLA computes them once."""
    if x.ndim < 2 or axis != x.ndim - 1 or is_open(x.shape[axis]) or x.shape[axis] < LONG_ROW:
        return summed(x, axis)
    return on_cpu(
        "softmax",
        lambda x: jnp.matmul(x, jnp.ones((x.shape[-1], 1), x.dtype), precision=lax.Precision.HIGHEST),
        lambda x: summed(x, axis),
        x,
    )


def softmax_input(grad: Array, result: Array, dim: int) -> Array:
    (g, dtype), (y, _) = operands(grad), operands(result)
    product = g * y
    return (product - y * row_sums(product, wrap_dim(dim, y.ndim))).astype(dtype)


@general(
    autocast=dict(accelerator="float32"), method=True, out="exact", derivatives=dict(input=softmax_input)
)
def softmax(input: Array, dim: int, dtype: dtypes.dtype | None = None) -> Array:
    """`exp(input)` over its sum along `dim`, the input first converted to `dtype`; half types in float32.

    Shape: `input` `(*)`, result `(*)`, which sums to one along `dim`.

    Raises: NotImplementedError for complex, bool and integer tensors.

    Source: Bridle 1990, Neurocomputing.

    >>> xtensor.softmax(xtensor.tensor([1.0, 1.0, 2.0]), dim=0)
    tensor([0.2119, 0.2119, 0.5761])
    """
    x, axis, result = softened("softmax", input, dim, dtype)
    e = jnp.exp(x)
    return (e / summed(e, axis)).astype(result)


def log_softmax_input(grad: Array, result: Array, dim: int) -> Array:
    (g, dtype), (y, _) = operands(grad), operands(result)
    return (g - jnp.exp(y) * summed(g, wrap_dim(dim, y.ndim))).astype(dtype)


@general(
    autocast=dict(accelerator="float32"), method=True, out="exact", derivatives=dict(input=log_softmax_input)
)
def log_softmax(input: Array, dim: int, dtype: dtypes.dtype | None = None) -> Array:
    """`log(softmax(input, dim))` without overflow; half types in float32.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for complex, bool and integer tensors.

    Source: Bridle 1990, Neurocomputing.

    >>> xtensor.log_softmax(xtensor.tensor([1.0, 1.0, 2.0]), dim=0)
    tensor([-1.5514, -1.5514, -0.5514])
    """
    x, axis, result = softened("log_softmax", input, dim, dtype)
    return (x - jnp.log(summed(jnp.exp(x), axis))).astype(result)
