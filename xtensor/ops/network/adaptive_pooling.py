"""Adaptive pooling, whose windows are laid out to give an output of a wanted size, and the inverse of max pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.attach import named
from ...operators.declare import general
from ...operators.index_bounds import in_bounds, readable
from ...operators.schema import Array
from ...tensor import Tensor, array_of, sizes_of
from ..reduce.reductions import argument, mean_dtype
from .pooling import better, lowest, scatter_flat
from .tables import NONE, combine, transposed

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


# ---- windows -------------------------------------------------------------------------------------------------------


def bounds(size: int, out: int) -> tuple[Any, Any]:
    """Where the windows of one dimension begin and end."""
    number = np.arange(out)
    return (number * size) // out, -((-(number + 1) * size) // out)


def members(size: int, out: int) -> tuple[Any, Any]:
    """The indices in every window, `(out, longest)`, and which of them belong to it."""
    start, stop = bounds(size, out)
    longest = int((stop - start).max()) if out else 0
    index = start[:, None] + np.arange(longest)
    return np.minimum(index, max(size - 1, 0)).astype(np.int32), index < stop[:, None]


def resolve(name: str, n: int, output_size: Any, sizes: Sequence[int]) -> tuple[int, ...]:
    """The wanted size of every dimension; None keeps the input's."""
    if isinstance(output_size, int) or output_size is None:
        output_size = (output_size,) * n
    if len(output_size) != n:
        if n == 1:
            raise RuntimeError(
                f"{name}() argument 'output_size' should contain one int (got {len(output_size)})"
            )
        if "max" in name:
            raise RuntimeError(f"{name}(): internal error: output_size.size() must be {n}")
        raise RuntimeError(f"{name}: output_size must be {n}")
    out = tuple(size if wanted is None else wanted for wanted, size in zip(output_size, sizes, strict=True))
    if any(o < 0 for o in out):
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{', '.join(map(str, out))}}}"
        )
    if math.prod(out) >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    if math.prod(out) >= 2**60:  # PyTorch counts bytes, and the elements before
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(out)}")
    return out


def check_image(name: str, n: int, x: Any, output_size: Any) -> None:
    if n > 1 and isinstance(output_size, tuple) and x.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    if x.ndim not in (n + 1, n + 2):
        if n == 1:
            checks.check_dim_range(name, argument(x, "self", 1), 2, 3)
        colon = ":" if "max" in name else ""
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} {list(x.shape)}")
    first = 1 if "max" in name else x.ndim - n
    if n == 1 and "avg" in name:
        shape, called = (*x.shape[:-1], 1, x.shape[-1]), "adaptive_avg_pool2d"
        first = len(shape) - 2
    else:
        shape, called = x.shape, name
    for d in range(first, len(shape)):
        if shape[d] == 0:
            raise RuntimeError(
                f"{called}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {d} being empty"
            )


# ---- averages ------------------------------------------------------------------------------------------------------


def average(x: Any, out: tuple[int, ...]) -> Any:
    """The means of the windows, one dimension after the other; linear in `x`."""
    own = x.dtype
    x = x.astype(dtypes.compute_type(dtype_of(x)).numpy)
    lead = x.ndim - len(out)
    for i, wanted in enumerate(out):
        axis = lead + i
        size = x.shape[axis]
        if wanted and size % wanted == 0:
            shape = (*x.shape[:axis], wanted, size // wanted, *x.shape[axis + 1 :])
            x = jnp.sum(x.reshape(shape), axis=axis + 1) / np.asarray(size // wanted, x.dtype)
            continue
        table, count = windows(size, wanted)
        x = combine(x, axis, table, np.ones(table.shape)) / along(count, x, axis)
    return x.astype(own)


def average_back(grad: Any, sizes: tuple[int, ...], out: tuple[int, ...]) -> Any:
    """The transpose of `average`, of an image of `sizes`."""
    own = grad.dtype
    grad = grad.astype(dtypes.compute_type(dtype_of(grad)).numpy)
    for i, (size, wanted) in reversed(list(enumerate(zip(sizes, out, strict=True)))):
        axis = grad.ndim - len(out) + i
        if wanted and size % wanted == 0:
            each = grad / np.asarray(size // wanted, grad.dtype)
            grad = jnp.repeat(each, size // wanted, axis=axis)
            continue
        table, count = windows(size, wanted)
        grad = combine(grad / along(count, grad, axis), axis, *transposed(table, np.ones(table.shape), size))
    return grad.astype(own)


def windows(size: int, wanted: int) -> tuple[Any, Any]:
    """The windows as a table, and how many elements each has."""
    index, inside = members(size, wanted)
    return np.where(inside, index, NONE), inside.sum(axis=1)


def along(count: Any, x: Any, axis: int) -> Any:
    return jnp.asarray(count.reshape((-1,) + (1,) * (x.ndim - axis - 1)), x.dtype)


def _average(n: int, input: Any, output_size: Any) -> Any:
    name = f"adaptive_avg_pool{n}d"
    check_image(name, n, input, output_size)
    out = resolve(name, n, output_size, input.shape[-n:])
    own = dtype_of(input)
    if set(out) == {1}:
        mean_dtype("mean", input, None)
    elif not own.is_floating_point:
        raise checks.not_implemented_for("adaptive_avg_pool2d" if n < 3 else "adaptive_avg_pool3d_cpu", own)
    return average(input, out)


def refuse_empty(name: str, n: int, grad: Any) -> None:
    """PyTorch's error for gradients of windows of which there are none; those along one dimension are of an image one high."""
    sizes = grad.shape if n > 1 else (*grad.shape[:-1], 1, grad.shape[-1])
    for d in range(1, len(sizes)):
        if sizes[d] == 0:
            raise RuntimeError(
                f"{name}{max(n, 2)}d_backward(): Expected grad_output to have non-zero size for non-batch dimensions, "
                f"but grad_output has sizes {list(sizes)} with dimension {d} being empty"
            )


def average_rule(n: int) -> dict[str, Any]:
    def rule(grad: Any, input_shape: Any, output_size: Any) -> Any:
        refuse_empty("adaptive_avg_pool", n, grad)
        sizes = tuple(input_shape)[-n:]
        return average_back(grad, sizes, resolve("", n, output_size, sizes))

    return {"input": rule}


@general(formats=True, node="SqueezeBackward1", derivatives=average_rule(1))
def adaptive_avg_pool1d(input: Array, output_size: int | Sequence[int]) -> Array:
    """The means of `output_size` windows over the last dimension.

    Shape: `input` `(*, S)`, result `(*, output_size)`.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    return _average(1, input, output_size)


@general(formats=True, node="AdaptiveAvgPool2D", derivatives=average_rule(2))
def adaptive_avg_pool2d(input: Array, output_size: int | Sequence[int | None] | None) -> Array:
    """The means of windows over the last two dimensions, as many as `output_size` (None: as many as elements).

    Shape: `input` `(N, C, H, W)` or `(C, H, W)`; result `(N, C, *output_size)` or `(C, *output_size)`.

    Raises: NotImplementedError for complex, bool and integer tensors.

    >>> F.adaptive_avg_pool2d(xtensor.zeros(1, 8, 10, 9), (5, None)).shape
    xtensor.Size([1, 8, 5, 9])
    """
    return _average(2, input, output_size)


@general(autocast=dict(cpu="float32"), node="AdaptiveAvgPool3D", derivatives=average_rule(3))
def adaptive_avg_pool3d(input: Array, output_size: int | Sequence[int | None] | None) -> Array:
    """The means of windows over the last three dimensions, as many as `output_size` (None: as many as elements).

    Shape: `input` `(*, D, H, W)`, result `(*, *output_size)`.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    return _average(3, input, output_size)


# ---- maxima --------------------------------------------------------------------------------------------------------


def maxima(x: Any, out: tuple[int, ...]) -> tuple[Any, Any]:
    """The maximum of every window and its flat index: the first of equals, the last of NaNs."""
    n = len(out)
    lead = x.ndim - n
    sizes = x.shape[lead:]
    flat = x.reshape((*x.shape[:lead], math.prod(sizes)))
    where = np.zeros((1,) * (2 * n), np.int64)
    inside = np.ones((1,) * (2 * n), bool)
    for i, (size, wanted) in enumerate(zip(sizes, out, strict=True)):
        index, belongs = members(size, wanted)
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = index.shape
        where = where * size + index.reshape(shape)
        inside = inside & belongs.reshape(shape)
    inside = np.broadcast_to(inside, where.shape)
    window = math.prod(where.shape[n:])
    if 0 in out:
        empty = (*x.shape[:lead], *out)
        return jnp.zeros(empty, x.dtype), jnp.zeros(empty, jnp.int64)
    where, inside = where.reshape((*out, window)).astype(np.int32), inside.reshape((*out, window))
    best = jnp.full((*x.shape[:lead], *out), lowest(x.dtype), x.dtype)
    found = jnp.broadcast_to(jnp.asarray(where[..., 0]), best.shape)
    for k in range(window):
        part = jnp.take(flat, where[..., k].reshape(-1), axis=lead).reshape(best.shape)
        take = better(part, best) & inside[..., k]
        best, found = jnp.where(take, part, best), jnp.where(take, where[..., k], found)
    return best, found.astype(jnp.int64)


def _maxima(n: int, input: Any, output_size: Any) -> tuple[Any, Any]:
    name = f"adaptive_max_pool{n}d"
    check_image(name, n, input, output_size)
    out = resolve(name, n, output_size, input.shape[-n:])
    own = dtype_of(input)
    if not own.is_floating_point:
        raise checks.not_implemented_for(f"adaptive_max_pool{max(n, 2)}d", own)
    return maxima(input, out)


def maximum_rule(n: int) -> dict[str, Any]:
    """The derivative of windows' maxima, given with where they lie: each goes back to its place."""

    def rule(grads: Any, result1: Any, input_shape: Any) -> Any:
        refuse_empty("adaptive_max_pool", n, grads[0])
        return scatter_flat(grads[0], result1, tuple(input_shape), n)

    return {"input": rule}


@general(formats=True, name="adaptive_max_pool1d", node="SqueezeBackward1", derivatives=maximum_rule(1))
def maxima1d(input: Array, output_size: Any) -> tuple[Array, ...]:
    """`adaptive_max_pool1d` with indices."""
    return _maxima(1, input, output_size)


@general(formats=True, name="adaptive_max_pool2d", node="AdaptiveMaxPool2D", derivatives=maximum_rule(2))
def maxima2d(input: Array, output_size: Any) -> tuple[Array, ...]:
    """`adaptive_max_pool2d` with indices."""
    return _maxima(2, input, output_size)


@general(
    autocast=dict(cpu="float32"),
    name="adaptive_max_pool3d",
    node="AdaptiveMaxPool3D",
    derivatives=maximum_rule(3),
)
def maxima3d(input: Array, output_size: Any) -> tuple[Array, ...]:
    """`adaptive_max_pool3d` with indices."""
    return _maxima(3, input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int], return_indices: bool = False) -> Any:
    """The maxima of `output_size` windows over the last dimension, with `return_indices` also where they lie.

    Shape: `input` `(*, S)`, result `(*, output_size)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    values, indices = maxima1d(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of windows over the last two dimensions, with `return_indices` also where they lie.

    Shape: `input` `(*, H, W)`, result `(*, *output_size)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    values, indices = maxima2d(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of windows over the last three dimensions, with `return_indices` also where they lie.

    Shape: `input` `(*, D, H, W)`, result `(*, *output_size)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    values, indices = maxima3d(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> Any:
    """The maxima of windows over the last dimension, and where they lie.

    Shape: `input` `(*, S)`, result `(*, output_size)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    return maxima1d(input, output_size)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of windows over the last two dimensions, and where they lie.

    Shape: `input` `(*, H, W)`, result `(*, *output_size)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    return maxima2d(input, output_size)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of windows over the last three dimensions, and where they lie.

    Shape: `input` `(*, D, H, W)`, result `(*, *output_size)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    return maxima3d(input, output_size)


# ---- the inverse of max pooling ------------------------------------------------------------------------------------


def _unpool_grad(grad: Array, indices: Array, input_shape: Any, output_size: Any) -> Array:
    n = len(output_size)
    lead = math.prod(tuple(input_shape)[: len(input_shape) - n])
    flat = grad.reshape((lead, -1))
    return jnp.take_along_axis(flat, indices.reshape((lead, -1)), axis=1).reshape(tuple(input_shape))


def unpooled(node: Any) -> str:
    """The name of the node, by the dimensions that are pooled."""
    n = len(node.argument("output_size"))
    return f"MaxUnpool{n}DBackward0" if n > 1 else "SqueezeBackward1"


@general(
    formats=True,
    autocast=dict(cpu="float32"),
    name="max_unpool",
    node=unpooled,
    derivatives=dict(input=_unpool_grad),
)
def unpool(input: Array, indices: Array, output_size: Sequence[int]) -> Array:
    """Values put at flat indices of zeros of `output_size`."""
    n = len(output_size)
    if indices.dtype != jnp.int64:
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {dtype_of(indices).scalar_name}"
        )
    if indices.shape != input.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices "
            f"tensor with shape: {list(indices.shape)}"
        )
    lead = input.shape[: input.ndim - n]
    rows = jnp.arange(math.prod(lead), dtype=jnp.int32)[:, None]
    zeros = jnp.zeros((math.prod(lead), math.prod(output_size)), input.dtype)
    if not input.size:
        return zeros.reshape((*lead, *output_size))
    flat = zeros.at[rows, indices.reshape((math.prod(lead), -1)).astype(jnp.int32)].set(
        input.reshape((math.prod(lead), -1))
    )
    return flat.reshape((*lead, *output_size))


def _unpool(
    n: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    def several(value: Any) -> tuple[int, ...]:
        return (value,) * n if isinstance(value, int) else tuple(value)

    kernel = several(kernel_size)
    steps = kernel if stride is None else several(stride)
    border = several(padding)
    for given in (kernel, steps, border):
        if len(given) != n:
            names = (
                "exactly one element (width)",
                "exactly two elements (height, width)",
                "exactly three elements (depth, height, width)",
            )
            raise RuntimeError(
                f"There should be {names[n - 1]} in output_size, but got {len(given)} elements."
            )
    sizes = tuple(sizes_of(input))[-n:]
    default = tuple((s - 1) * d + k - 2 * p for s, d, k, p in zip(sizes, steps, kernel, border, strict=True))
    if output_size is None:
        wanted = default
    else:
        wanted = tuple(output_size)
        wanted = wanted[2:] if len(wanted) == n + 2 else wanted
        if len(wanted) != n:
            raise ValueError(
                f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
                f"'{len(wanted)}'"
            )
        for d in range(n):
            low, high = default[d] - steps[d], default[d] + steps[d]
            if not low < wanted[d] < high:
                raise ValueError(f'invalid output_size "{wanted}" (dim {d} must be between {low} and {high})')
    array = array_of(indices)
    if array.dtype == np.int64 and readable(array) and not in_bounds(array, math.prod(wanted), False):
        values = np.asarray(array).reshape(-1)
        first = int(values[(values < 0) | (values >= math.prod(wanted))][0])
        raise RuntimeError(
            f"Found an invalid max index: {first} (output volumes are of size {'x'.join(map(str, wanted))})"
        )
    return unpool(input, indices, wanted)


def max_unpool(n: int) -> Any:
    def unpooled(
        input: Tensor,
        indices: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        return _unpool(n, input, indices, kernel_size, stride, padding, output_size)

    doc = f"The maxima of `max_pool{n}d` put back where they were, zeros elsewhere.\n\n"
    doc += f"Shape: `input` and `indices` of {n + 1} or {n + 2} dimensions; result `output_size` in the last {n}.\n\n"
    doc += "Raises: RuntimeError where sizes do not fit."
    return named(unpooled, f"max_unpool{n}d", doc)


max_unpool1d, max_unpool2d, max_unpool3d = max_unpool(1), max_unpool(2), max_unpool(3)
