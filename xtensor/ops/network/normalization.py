"""Normalisations: batch, layer, group, instance and RMS norms, local responses, and vectors of unit norm.

Statistics are computed in float32 for shorter floats and in two passes: the mean, then the squares about it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...engine import modes
from ...operators.declare import composite, general
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import of_tensors
from ...operators.schema import Array
from ...operators.write import bump, store
from ...tensor import Tensor, array_of, sizes_of
from ...xla.levels import Dual, batches_of, layers
from ...xla.number_arrays import size_as
from ...xla.platforms import on_cpu
from ..reduce.reductions import computed

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
    "normalize",
    "rms_norm",
]


# ---- statistics and their gradients --------------------------------------------------------------------------------


def statistics(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """The mean, the variance and the reciprocal root of variance plus eps over `axes`, dimensions kept."""
    count = size_as(math.prod([x.shape[a] for a in axes]), x.dtype)
    mean = total(x, axes) / count
    centred = x - mean
    variance = total(centred * centred, axes) / count
    return mean, variance, lax.rsqrt(variance + jnp.asarray(eps, x.dtype))


def total(x: Any, axes: tuple[int, ...]) -> Any:
    """The sum over `axes`, dimensions kept; along rows first, which lie in one piece."""
    for axis in reversed(axes):
        x = jnp.sum(x, axis=axis, keepdims=True)
    return x


def statistics_grad(grads: Any, normal: Any, rstd: Any, count: Any) -> Any:
    """The gradient of an input through its mean and its reciprocal standard deviation, given theirs (0 for None)."""
    if grads is None:
        return np.zeros((), normal.dtype)
    grad_mean, grad_rstd = [g.astype(normal.dtype).reshape(rstd.shape) for g in grads]
    return (grad_mean - grad_rstd * rstd * rstd * normal) / count


def rows(array: Any) -> Any:
    """`(N, C, *)` as `(N, C, elements of a channel)`."""
    n, c, *rest = array.shape
    return array.reshape((n, c, math.prod(rest)))


def wide(array: Any) -> Any:
    """An array in the type in which its statistics are computed."""
    return computed(array, dtype_of(array))


def per_channel(array: Any, x: Any) -> Any:
    """A vector of channels in the shape that broadcasts over `x`, `(N, C, *)`."""
    return array.astype(x.dtype).reshape((1, -1) + (1,) * (x.ndim - 2))


# ---- batch norm ----------------------------------------------------------------------------------------------------


def _train_sums(grad: Any, mean: Any, x: Any) -> tuple[Any, Any, Any]:
    """By channel, of `(N, C, S)`: the sum of the gradient, and of it times the centred input, which comes third."""
    centred = x - mean
    return total(grad, (0, 2)), total(grad * centred, (0, 2)), centred


# The normalised input itself is not needed, and is often written next (`nn.ReLU(inplace=True)`).
def _train_input(grads: Any, undefined: Any, result1: Any, result2: Any, input: Array, weight: Any) -> Array:
    x = rows(wide(input))
    grad = rows(grads[0]).astype(x.dtype)
    mean, rstd = per_channel(result1, x), per_channel(result2, x)
    summed, along, centred = _train_sums(grad, mean, x)
    count = size_as(x.shape[0] * x.shape[2], x.dtype)
    scale = rstd if weight is None else rstd * per_channel(weight, x)
    through = grad * scale - centred * (along / count * rstd * rstd * scale) - summed / count * scale
    others = None if all(undefined[1:3]) else grads[1:3]
    return (through + statistics_grad(others, centred * rstd, rstd, count)).reshape(input.shape)


def _train_weight(grads: Any, result1: Any, result2: Any, input: Array) -> Array:
    x = rows(wide(input))
    if not x.size:  # the statistics of nothing are NaN
        return jnp.zeros((x.shape[1],), x.dtype)
    _, along, _ = _train_sums(rows(grads[0]).astype(x.dtype), per_channel(result1, x), x)
    return along.reshape(-1) * result2.astype(x.dtype)


def _train_bias(grads: Any) -> Array:
    return total(rows(wide(grads[0])), (0, 2)).reshape(-1)


@general(
    formats=True,
    name="batch_norm_training",
    node="NativeBatchNorm",
    derivatives=dict(input=_train_input, weight=_train_weight, bias=_train_bias),
)
def batch_norm_training(
    input: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    *,
    momentum: float,
    eps: float,
) -> tuple[Array, ...]:
    """The normalised input, the batch's mean and reciprocal deviation, and the new running statistics."""
    check_channels("batch_norm", input, running_mean, running_var, weight, bias)
    x = rows(wide(input))
    mean, variance, rstd = statistics(x, (0, 2), eps)
    out = affine(x - mean, rstd, weight, bias).reshape(input.shape)
    count = x.shape[0] * x.shape[2]
    found = [out.astype(input.dtype), mean.reshape(-1), rstd.reshape(-1)]
    unbiased = variance.reshape(-1) * (
        size_as(count, x.dtype) / size_as(count - 1, x.dtype) if count > 1 else np.nan
    )
    for running, new in ((running_mean, mean.reshape(-1)), (running_var, unbiased)):
        if running is None:
            found.append(jnp.zeros((0,), x.dtype))
            continue
        rate = np.asarray(momentum, running.dtype)
        found.append(running * (np.asarray(1, running.dtype) - rate) + new.astype(running.dtype) * rate)
    return tuple(found)


def affine(centred: Any, rstd: Any, weight: Any, bias: Any) -> Any:
    """What was centred, scaled, and shifted channel by channel."""
    out = centred * (rstd if weight is None else rstd * per_channel(weight, centred))
    return out if bias is None else out + per_channel(bias, out)


def _scale(variance: Any, x: Any, eps: float) -> Any:
    return lax.rsqrt(per_channel(variance, x) + np.asarray(eps, x.dtype))


def _eval_input(grad: Array, running_var: Any, weight: Any, eps: float) -> Array:
    g = rows(wide(grad))
    scale = _scale(running_var, g, eps)
    return (g * (scale if weight is None else scale * per_channel(weight, g))).reshape(grad.shape)


def _eval_weight(grad: Array, input: Array, running_mean: Any, running_var: Any, eps: float) -> Array:
    x = rows(wide(input))
    along = total(rows(grad).astype(x.dtype) * (x - per_channel(running_mean, x)), (0, 2))
    return (along * _scale(running_var, x, eps)).reshape(-1)


@general(
    formats=True,
    name="batch_norm_inference",
    node="NativeBatchNorm",
    derivatives=dict(
        input=_eval_input,
        weight=_eval_weight,
        bias=lambda grad: total(rows(wide(grad)), (0, 2)).reshape(-1),
    ),
)
def batch_norm_inference(
    input: Array,
    running_mean: Array,
    running_var: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    eps: float,
) -> Array:
    """The input normalised by running statistics."""
    check_channels("batch_norm", input, running_mean, running_var, weight, bias)
    x = rows(wide(input))
    out = affine(x - per_channel(running_mean, x), _scale(running_var, x, eps), weight, bias)
    return out.reshape(input.shape).astype(input.dtype)


def check_channels(name: str, x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any) -> None:
    """PyTorch's errors for the dtype of an input and for the lengths of what goes with its channels."""
    channels = x.shape[1] if x.ndim > 1 else 0
    given = (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias))
    for what, vector in given:
        if vector is not None and vector.size != channels:
            raise RuntimeError(f"{what} should contain {channels} elements not {vector.size}")
    own = dtype_of(x)
    if not own.is_floating_point:
        raise checks.not_implemented_for(name, own)
    for _, vector in given:
        other = None if vector is None else dtype_of(vector)
        if other is not None and other is not own and not (own.itemsize == 2 and other is dtypes.float32):
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def check_statistics(training: bool, running_mean: Tensor | None, running_var: Tensor | None) -> None:
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        if running is not None and running.requires_grad:
            raise RuntimeError(
                f"The function 'native_batch_norm' is not differentiable with respect to argument '{name}'. This input "
                "cannot have requires_grad True."
            )


def update(running: Tensor | None, new: Tensor) -> None:
    """Write new running statistics, outside autograd."""
    if running is not None:
        store(running, new._xt_storage.operand if new._xt_view is None else array_of(new))
        bump(running, "batch_norm")


@of_tensors()
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`(N, C, *)` normalised channel by channel: by the batch's statistics when training, which also move the running
    ones, else by the running ones.

    Shape: `input` `(N, C, *)`, the others `(C)`; result as `input`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.

    Source: Ioffe and Szegedy 2015, arXiv:1502.03167.

    >>> F.batch_norm(xtensor.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if momentum is None:
        raise checks.argument_error("batch_norm", "momentum", 7, "float", momentum)
    if training:
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
        sizes = sizes_of(input)
        values = 1
        for d, size in enumerate(sizes):
            values *= size if d != 1 else 1
        if values == 1 and sizes:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size {checks.spelled('Size')}({list(sizes)})"
            )
    return normalised_batch(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@composite(out="exact")
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm` with the mean and reciprocal deviation that it used (empty when not training).

    Shape: `input` `(N, C, *)`; result the same, mean and reciprocal deviation `(C)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.
    """
    out, mean, rstd = normalised_batch(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    return out, *shown(input, (mean, rstd), weight, bias, running_mean, running_var)


def shown(input: Tensor, statistics: tuple[Tensor, Tensor], *others: Tensor | None) -> tuple[Tensor, Tensor]:
    """Statistics in the dtype of the input, or in float32 where a parameter of a short float is."""
    dtype = next((t.dtype for t in others if t is not None and t.dtype is not input.dtype), input.dtype)
    mean, rstd = statistics
    return mean.to(dtype), rstd.to(dtype)


def refuse_unbatched_statistics(input: Tensor, *running: Tensor | None) -> None:
    """RuntimeError where samples of a batch would move statistics that there are once for all."""
    own = batches_of(input._xt_storage.raw)
    given = [batches_of(r._xt_storage.raw) for r in running if r is not None]
    if any(level not in found for found in given for level in own):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
            "were not batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be "
            "False.If you are using a prebuilt module and do not need eval mode, please see the functorch website for "
            "resources on how to patch your module to work with vmap"
        )


def refuse_tangents(input: Tensor, *running: Tensor | None) -> None:
    """RuntimeError where running statistics have a tangent, and the input too."""
    if not modes.state.transforms:
        return

    def has_tangent(tensor: Tensor) -> bool:
        return any(type(layer) is Dual for layer in layers(tensor._xt_storage.raw))

    if has_tangent(input) and any(has_tangent(r) for r in running if r is not None):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"
        )


def normalised_batch(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float | Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    check_statistics(training, running_mean, running_var)
    refuse_tangents(input, running_mean, running_var)
    if input.dim() < 2 and input.numel() == 0:
        return input.clone(), input.new_empty((0,)), input.new_empty((0,))
    if not training:
        assert running_mean is not None and running_var is not None
        out = batch_norm_inference(input, running_mean, running_var, weight, bias, eps=eps)
        return out, input.new_empty((0,)), input.new_empty((0,))
    refuse_unbatched_statistics(input, running_mean, running_var)
    with_running = input.numel() > 0
    varies = isinstance(momentum, Tensor)
    out, mean, rstd, new_mean, new_var = batch_norm_training(
        input, weight, bias, running_mean, running_var, momentum=1.0 if varies else momentum, eps=eps
    )
    if with_running:
        with modes.no_grad():
            for running, new in ((running_mean, new_mean), (running_var, new_var)):
                if varies and running is not None:
                    new = running * (1 - momentum) + new * momentum
                update(running, new)
    return out, mean.detach(), rstd.detach()


# ---- layer norm ----------------------------------------------------------------------------------------------------


def last_axes(ndim: int, count: int) -> tuple[int, ...]:
    return tuple(range(ndim - count, ndim))


def _matrix(array: Any, shape: Any) -> Any:
    """An array as rows of what is normalised together."""
    length = math.prod(shape)
    return array.reshape((math.prod(array.shape[: array.ndim - len(shape)]), length))


def _layer_parts(grad: Any, result1: Any, input: Any, shape: Any) -> tuple[Any, Any, Any, Any]:
    """As rows: the gradient, the normalised input, and their product; and the reciprocal deviation."""
    x = _matrix(wide(input), shape)
    g = _matrix(grad, shape).astype(x.dtype)
    mean, rstd = result1.reshape(2, -1, 1)
    normal = (x - mean) * rstd
    return g, normal, g * normal, rstd


def _row_sums(array: Any, weight: Any) -> Any:
    """The sums of rows, times a weight per column where there is one."""
    if weight is None:
        return jnp.sum(array, axis=1, keepdims=True)
    return on_cpu(
        "layer norm",
        lambda a, w: jnp.matmul(a, w, precision=lax.Precision.HIGHEST)[:, None],
        lambda a, w: jnp.sum(a * w, axis=1, keepdims=True),
        array,
        weight,
    )


def _column_sums(array: Any) -> Any:
    """The sums of columns; as a product, before which XLA computes once what all gradients take."""
    return on_cpu(
        "layer norm",
        lambda a: jnp.matmul(jnp.ones(a.shape[0], a.dtype), a, precision=lax.Precision.HIGHEST),
        lambda a: jnp.sum(a, axis=0),
        array,
    )


def _layer_input(
    grads: Any, undefined: Any, result1: Any, input: Array, weight: Any, normalized_shape: Any
) -> Array:
    g, normal, product, rstd = _layer_parts(grads[0], result1, input, normalized_shape)
    count = size_as(g.shape[1], g.dtype)
    w = None if weight is None else weight.astype(g.dtype).reshape(-1)
    average, along = _row_sums(g, w) / count, _row_sums(product, w) / count
    scaled = g if w is None else g * w
    through = rstd * (scaled - average - normal * along)
    through = through + statistics_grad(None if undefined[1] else grads[1], normal, rstd, count)
    return through.reshape(input.shape)


def _layer_weight(grads: Any, result1: Any, input: Array, normalized_shape: Any) -> Array:
    _, _, product, _ = _layer_parts(grads[0], result1, input, normalized_shape)
    return _column_sums(product).reshape(tuple(normalized_shape))


def _layer_bias(grads: Any, normalized_shape: Any) -> Array:
    return _column_sums(_matrix(wide(grads[0]), normalized_shape)).reshape(tuple(normalized_shape))


def check_normalised(kernel: str, x: Any, shape: Any, weight: Any, bias: Any, comma: bool = True) -> None:
    """PyTorch's errors for the shapes and dtypes of a norm over the last dimensions."""
    if not isinstance(shape, tuple):
        raise checks.argument_error(
            "layer_norm" if comma else "rms_norm", "normalized_shape", 2, "tuple of ints", shape
        )
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != tuple(shape):
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(parameter.shape)} and normalized_shape = {list(shape)}"
            )
    if x.ndim < len(shape) or x.shape[x.ndim - len(shape) :] != tuple(shape):
        inner = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{', ' if comma else ''}{inner}], but got "
            f"input of size{list(x.shape)}"
        )
    own = dtype_of(x)
    if not own.is_floating_point and not (own.is_complex and not comma):
        raise checks.not_implemented_for(kernel, own)


def check_mixed(x: Any, *parameters: Any) -> None:
    own = dtype_of(x)
    for parameter in parameters:
        other = None if parameter is None else dtype_of(parameter)
        if other is not None and other is not own and not (own.itemsize == 2 and other is dtypes.float32):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")


@general(
    autocast=dict(accelerator="float32"),
    hidden=1,
    node="NativeLayerNorm",
    derivatives=dict(input=_layer_input, weight=_layer_weight, bias=_layer_bias),
)
def layer_norm(
    input: Array,
    normalized_shape: Sequence[int],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> tuple[Array, ...]:
    """The input normalised over its last dimensions, `normalized_shape`, then scaled and shifted element by element.

    Shape: `input` `(*, *normalized_shape)`, `weight` and `bias` `normalized_shape`; result as `input`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for complex, bool and integer tensors.

    Source: Ba, Kiros and Hinton 2016, arXiv:1607.06450.

    >>> F.layer_norm(xtensor.tensor([[1.0, 3.0], [10.0, 30.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    check_normalised("LayerNormKernelImpl", input, normalized_shape, weight, bias)
    check_mixed(input, weight, bias)
    x = wide(input)
    mean, _, rstd = statistics(x, last_axes(x.ndim, len(normalized_shape)), eps)
    out = (x - mean) * rstd
    if weight is not None:
        out = out * weight.astype(x.dtype)
    if bias is not None:
        out = out + bias.astype(x.dtype)
    return out.astype(input.dtype), jnp.stack([mean, rstd])


@general(name="layer_statistics", derivatives=None)
def layer_statistics(input: Array, normalized_shape: Sequence[int], eps: float) -> tuple[Array, ...]:
    """The mean and reciprocal deviation over the last dimensions."""
    x = wide(input)
    mean, _, rstd = statistics(x, last_axes(x.ndim, len(normalized_shape)), eps)
    return mean, rstd


def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm` with the mean and reciprocal deviation that it used.

    Shape: `input` `(*, *normalized_shape)`; result the same, mean and reciprocal deviation with sizes 1
    there.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError
    for complex, bool and integer tensors.
    """
    out = layer_norm(input, normalized_shape, weight, bias, eps)
    return out, *shown(input, layer_statistics(input.detach(), normalized_shape, eps), weight, bias)


# ---- RMS norm ------------------------------------------------------------------------------------------------------


def _rms(input: Any, shape: Any, eps: float | None) -> tuple[Any, Any]:
    x = wide(input)
    axes = last_axes(x.ndim, len(shape))
    by = jnp.finfo(input.dtype).eps if eps is None else eps
    # Of complex numbers too the plain square, as in PyTorch.
    mean = jnp.sum(x * x, axis=axes, keepdims=True) / size_as(math.prod(shape), x.dtype)
    return x, lax.rsqrt(mean + jnp.asarray(by, x.dtype))


def _rms_input(grad: Array, input: Array, weight: Any, normalized_shape: Any, eps: float | None) -> Array:
    x, scale = _rms(input, normalized_shape, eps)
    g = grad.astype(x.dtype)
    if weight is not None:
        g = g * jnp.conj(weight.astype(x.dtype))
    axes = last_axes(x.ndim, len(normalized_shape))
    along = jnp.sum(g * jnp.conj(x), axis=axes, keepdims=True) / np.asarray(
        math.prod(normalized_shape), x.dtype
    )
    return g * jnp.conj(scale) - jnp.conj(x * scale * scale * scale) * along


def _rms_weight(grad: Array, input: Array, normalized_shape: Any, eps: float | None) -> Array:
    x, scale = _rms(input, normalized_shape, eps)
    return jnp.sum(
        grad.astype(x.dtype) * jnp.conj(x * scale), axis=tuple(range(x.ndim - len(normalized_shape)))
    )


@general(
    autocast=dict(accelerator="float32"),
    node="FusedRmsNorm",
    derivatives=dict(input=_rms_input, weight=_rms_weight),
)
def rms_norm(
    input: Array, normalized_shape: Sequence[int], weight: Array | None = None, eps: float | None = None
) -> Array:
    """The input divided by the root of the mean square over its last dimensions, then scaled element by element.

    Shape: `input` `(*, *normalized_shape)`, result the same.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool and integer tensors.

    Source: Zhang and Sennrich 2019, arXiv:1910.07467.

    >>> F.rms_norm(xtensor.tensor([3.0, 4.0]), (2,))
    tensor([0.8485, 1.1314])
    """
    check_normalised("rms_norm", input, normalized_shape, weight, None, comma=False)
    x, scale = _rms(input, normalized_shape, eps)
    out = x * scale
    if weight is not None:
        out = out * weight.astype(x.dtype)
    result = input.dtype
    if weight is not None:
        result = dtypes.promote_types(dtype_of(input), dtype_of(weight)).numpy
        result = input.dtype if input.dtype.itemsize == 2 and weight.dtype.itemsize == 4 else result
    return out.astype(result)


# ---- group norm ----------------------------------------------------------------------------------------------------


def _group_parts(grad: Any, result1: Any, input: Any) -> tuple[Any, Any, Any]:
    """As `(N, groups, channels, elements)`: the gradient, the centred input, and the reciprocal deviation."""
    mean, rstd = result1
    x = _grouped(wide(input), mean.shape[1])
    return _grouped(grad, mean.shape[1]).astype(x.dtype), x - mean, rstd


def _grouped(array: Any, groups: int) -> Any:
    n, c, *rest = array.shape
    return array.reshape((n, groups, c // groups, math.prod(rest)))


def _group_input(grads: Any, undefined: Any, result1: Any, input: Array, weight: Any) -> Array:
    g, centred, rstd = _group_parts(grads[0], result1, input)
    count = size_as(g.shape[2] * g.shape[3], g.dtype)
    w = None if weight is None else weight.astype(g.dtype).reshape(g.shape[1], g.shape[2], 1)
    average, along = [
        jnp.sum(s if w is None else s * w, axis=2, keepdims=True) / count
        for s in (total(g, (3,)), total(g * centred, (3,)))
    ]
    scaled = g * (rstd if w is None else rstd * w)
    through = scaled - average * rstd - centred * (along * rstd * rstd * rstd)
    through = through + statistics_grad(None if undefined[1] else grads[1], centred * rstd, rstd, count)
    return through.reshape(input.shape)


def _group_weight(grads: Any, result1: Any, input: Array) -> Array:
    g, centred, rstd = _group_parts(grads[0], result1, input)
    return jnp.sum(total(g * centred, (3,)) * rstd, axis=0).reshape(-1)


def _group_bias(grads: Any) -> Array:
    return total(rows(wide(grads[0])), (0, 2)).reshape(-1)


@general(
    formats=True,
    autocast=dict(accelerator="float32"),
    name="group_norm",
    hidden=1,
    node="NativeGroupNorm",
    derivatives=dict(input=_group_input, weight=_group_weight, bias=_group_bias),
)
def group_norm_kernel(
    input: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> tuple[Array, ...]:
    """The input normalised over groups of channels."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if input.shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != (input.shape[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(parameter.shape)} and input of shape {list(input.shape)}"
            )
    if not dtype_of(input).is_floating_point:
        raise checks.not_implemented_for("GroupNormKernelImpl", dtype_of(input))
    check_mixed(input, weight, bias)
    x = _grouped(wide(input), num_groups)
    mean, _, rstd = statistics(x, (2, 3), eps)
    scale, shift = [
        None if v is None else v.astype(x.dtype).reshape(1, x.shape[1], x.shape[2], 1) for v in (weight, bias)
    ]
    out = (x - mean) * (rstd if scale is None else rstd * scale)
    if shift is not None:
        out = out + shift
    return out.reshape(input.shape).astype(input.dtype), jnp.stack([mean, rstd])


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`(N, C, *)` normalised over each of `num_groups` groups of channels, then scaled channel by channel.

    Shape: `input` `(N, C, *)`, `weight` and `bias` `(C)`; result as `input`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for complex, bool and integer tensors.

    Source: Wu and He 2018, arXiv:1803.08494.

    >>> F.group_norm(xtensor.ones(3, 6, 4, 4), 2).shape
    xtensor.Size([3, 6, 4, 4])
    """
    sizes = sizes_of(input)
    if num_groups == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    if len(sizes) >= 2 and num_groups > 0:
        values = sizes[0] * (sizes[1] // num_groups)
        for size in sizes[2:]:
            values *= size
        if values == 1:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size {list(sizes)}"
            )
    return group_norm_kernel(input, num_groups, weight, bias, eps)


@general(name="group_statistics", derivatives=FROM_KERNEL)
def group_statistics(input: Array, groups: int, eps: float) -> tuple[Array, ...]:
    """The mean and reciprocal deviation of every group of channels."""
    mean, _, rstd = statistics(_grouped(wide(input), groups), (2, 3), eps)
    return mean[..., 0, 0], rstd[..., 0, 0]


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm` with the mean and reciprocal deviation of every group.

    Shape: `input` `(N, C, *)`; result the same, mean and reciprocal deviation `(N, group)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError
    for complex, bool and integer tensors.
    """
    out = group_norm_kernel(input, group, weight, bias, eps)
    return out, *shown(input, group_statistics(input, group, eps), weight, bias)


# ---- instance norm, local responses, unit vectors ------------------------------------------------------------------


@of_tensors()
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`(N, C, *)` normalised over every channel of every sample.

    Shape: `input` `(N, C, *)`, result `(N, C, *)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.

    Source: Ulyanov, Vedaldi and Lempitsky 2016, arXiv:1607.08022.
    """
    sizes = tuple(sizes_of(input))
    if use_input_stats and math.prod(sizes[2:]) <= 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {checks.spelled('Size')}({list(sizes)})"
        )
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, c = sizes[0], sizes[1]
    several = [None if v is None else v.repeat((n,)) for v in (weight, bias, running_mean, running_var)]
    one = input.contiguous().view((1, n * c, *sizes[2:]))
    scale, shift, mean, var = several
    out = normalised_batch(one, scale, shift, mean, var, use_input_stats, momentum, eps)[0]
    if use_input_stats:
        with modes.no_grad():
            for running, moved in ((running_mean, several[2]), (running_var, several[3])):
                if running is not None and moved is not None:
                    update(running, moved.view((n, c)).mean(0))
    return out.view(sizes)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Every element divided by `(k + alpha * mean of squares over `size` neighbouring channels) ** beta`.

    Shape: `input` `(N, C, *)`, result `(N, C, *)`.

    Raises: ValueError for fewer than three dimensions.

    Source: Krizhevsky, Sutskever and Hinton 2012, Advances in Neural Information Processing Systems 25.
    """
    sizes = sizes_of(input)
    if len(sizes) < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {len(sizes)} dimensions)"
        )
    if input.numel() == 0:
        return input
    if size <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kH: {size} kW: 1")
    return input / (channel_windows(input * input, size) * alpha + k).pow(beta)


def _channel_transpose(grad: Array, size: int) -> Array:
    return _channel_mean(grad, size, flipped=True)


def _channel_mean(x: Any, size: int, flipped: bool = False) -> Any:
    before, after = size // 2, (size - 1) // 2
    if flipped:
        before, after = after, before
    config = [(0, 0, 0)] * x.ndim
    config[1] = (before, after, 0)
    padded = lax.pad(x, jnp.zeros((), x.dtype), config)
    total: Any = None
    for start in range(size):
        part = lax.slice_in_dim(padded, start, start + x.shape[1], axis=1)
        total = part if total is None else total + part
    if jnp.issubdtype(x.dtype, jnp.integer):
        return total // np.asarray(size, x.dtype)
    return total / np.asarray(size, x.dtype)


@general(name="channel_windows", derivatives=dict(input=_channel_transpose))
def channel_windows(input: Array, size: int) -> Array:
    """The mean over `size` neighbouring channels, those beyond the border counting as zero."""
    return _channel_mean(input, size)


def normalize(
    input: Tensor, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """The input divided by its p-norm over `dim`, or by `eps` where that is larger.

    Shape: `input` `(*)`, result `(*)`.

    Raises: IndexError where `dim` is out of range; RuntimeError for bool and integer tensors.

    >>> F.normalize(xtensor.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    from_norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input.div(from_norm) if out is None else input.div(from_norm, out=out)
