"""Copies in another order: flips, rolls and rotations, repetition, triangles and diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.attach import attach_methods
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import of_tensors, overloads
from ...operators.schema import Array
from ...operators.write import write_out
from ...tensor import Tensor, array_of, sizes_of
from ...xla.symbolic import is_open
from ..index.hostindex import Placed
from ..index.indexing import read

__all__ = [
    "diag",
    "diag_embed",
    "diagflat",
    "flip",
    "fliplr",
    "flipud",
    "repeat_interleave",
    "roll",
    "rot90",
    "tile",
    "trace",
    "tril",
    "triu",
]


def ints(name: str, parameter: str, value: Any, position: int = 2) -> tuple[int, ...]:
    """One int or a sequence of them as a tuple, open sizes among them; TypeError for anything else."""
    if isinstance(value, int):
        return (value,)
    if isinstance(value, tuple) and all(isinstance(v, int) or is_open(v) for v in value):
        return value
    raise checks.argument_error(name, parameter, position, "tuple of ints", value)


# ---- flips, rolls, rotations ---------------------------------------------------------------------------------------


def _flipped(x: Any, dims: Any) -> Any:
    axes = checks.wrap_dims(ints("flip", "dims", dims), x.ndim)
    return lax.rev(x, axes) if x.ndim and axes else x


@general(
    formats=True,
    views="loop",
    varargs="dims",
    method=True,
    derivatives=dict(input=lambda grad, dims: _flipped(grad, dims)),
)
def flip(input: Array, dims: Sequence[int]) -> Array:
    """A copy with the order of the elements reversed along `dims`.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.flip(xtensor.tensor([[1, 2], [3, 4]]), dims=(0, 1))
    tensor([[4, 3],
            [2, 1]])
    """
    return _flipped(input, dims)


@of_tensors()
def fliplr(input: Tensor) -> Tensor:
    """A copy with the order of the columns reversed.

    Shape: `input` `(n, m, *)`, result the same.

    Raises: TypeError for arguments of other kinds; RuntimeError for fewer than two dimensions.
    """
    if input.dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@of_tensors()
def flipud(input: Tensor) -> Tensor:
    """A copy with the order of the rows reversed.

    Shape: `input` `(n, *)`, result the same.

    Raises: TypeError for arguments of other kinds; RuntimeError for a tensor of no dimensions.
    """
    if input.dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


def _rolled(x: Any, shifts: Any, dims: Any, sign: int = 1) -> Any:
    by = ints("roll", "shifts", shifts)
    axes = () if dims is None else ints("roll", "dims", dims, 3)
    if not by:
        raise RuntimeError("`shifts` required")
    if not axes and len(by) == 1:
        return jnp.roll(x.reshape(-1), sign * by[0]).reshape(x.shape)
    if len(by) != len(axes):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(axes)}")
    if axes and not x.ndim:
        raise IndexError(f"Dimension specified as {axes[0]} but tensor has no dimensions")
    for shift, axis in zip(by, axes, strict=True):
        axis = checks.wrap_dim(axis, x.ndim)
        x = jnp.roll(x, sign * shift, axis)
    return x


@general(
    formats=True,
    views="loop",
    method=True,
    derivatives=dict(input=lambda grad, shifts, dims: _rolled(grad, shifts, dims, -1)),
)
def roll(input: Array, shifts: int | Sequence[int], dims: int | Sequence[int] | None = ()) -> Array:
    """A copy with the elements moved by `shifts` along `dims` (or in the flattened tensor), the last coming round.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.roll(xtensor.arange(5), 2)
    tensor([3, 4, 0, 1, 2])
    """
    return _rolled(input, shifts, dims)


@general(method=True, derivatives=FROM_KERNEL)
def rot90(input: Array, k: int = 1, dims: Sequence[int] = (0, 1)) -> Array:
    """A copy rotated `k` times by 90 degrees in the plane of two dimensions, from the first to the second.

    Shape: `input` `(*)`, result `(*)` with the two sizes exchanged where `k` is odd.
    """
    axes = ints("rot90", "dims", dims, 3)
    if len(axes) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(axes)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    if axes[0] == axes[1] or abs(axes[0] - axes[1]) == input.ndim:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {axes[0]} and dim1 = {axes[1]}"
        )
    return jnp.rot90(input, k, (checks.wrap_dim(axes[0], input.ndim), checks.wrap_dim(axes[1], input.ndim)))


# ---- repetition ----------------------------------------------------------------------------------------------------


def _repeat_grad(grad: Array, input_shape: Any, repeats: Any) -> Array:
    times = ints("repeat", "repeats", repeats)
    shape = (1,) * (len(times) - len(input_shape)) + tuple(input_shape)
    split = [n for pair in zip(times, shape, strict=True) for n in pair]
    total = grad.astype(dtypes.compute_type(dtype_of(grad)).numpy).reshape(split)
    return jnp.sum(total, axis=tuple(range(0, 2 * len(times), 2))).reshape(tuple(input_shape))


@general(
    views="loop",
    name="repeat",
    node="Repeat",
    varargs="repeats",
    method=True,
    derivatives=dict(input=_repeat_grad),
)
def repeat(input: Array, repeats: Sequence[int]) -> Array:
    """The tensor repeated `repeats` times along every dimension, new ones in front.

    Shape: the tensor `(*)`; every size times its number of repeats.

    >>> xtensor.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    times = ints("repeat", "repeats", repeats)
    if len(times) < input.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    shape = (1,) * (len(times) - input.ndim) + input.shape
    sizes = [t * s for t, s in zip(times, shape, strict=True)]
    for size in sizes:
        if size < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {size}: {sizes}")
    spread = [n for pair in zip(times, shape, strict=True) for n in pair]
    axes = tuple(2 * i + 1 for i in range(len(shape)))
    return lax.broadcast_in_dim(input.reshape(shape), spread, axes).reshape(sizes)


def tile(input: Tensor, *sizes: Any, dims: Any = None) -> Tensor:
    """The tensor repeated along its last dimensions, or, given more, along new ones too.

    Shape: `input` `(*)`, result with every size times its number.

    Raises: RuntimeError for negative repeats; TypeError for arguments of other kinds.

    >>> xtensor.tile(xtensor.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("tile", "input", 1, "Tensor", input)
    if dims is None and not sizes:
        raise TypeError('tile() missing 1 required positional arguments: "dims"')
    if len(sizes) > 1 and isinstance(sizes[0], (tuple, list)):
        raise TypeError(f"tile() takes 2 positional arguments but {len(sizes) + 1} were given")
    given = sizes if dims is None else (dims,)
    times = tuple(given[0]) if len(given) == 1 and not isinstance(given[0], int) else given
    return repeat(input, (1,) * (input.dim() - len(times)) + tuple(times))


@general(views="loop", name="repeat_elements", node="RepeatInterleave", derivatives=FROM_KERNEL)
def repeat_elements(input: Array, repeats: int, dim: int) -> Array:
    """Every slice along `dim` repeated the same number of times."""
    x = input if input.ndim else input.reshape(1)
    axis = checks.wrap_dim(dim, x.ndim)
    shape = (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])
    spread = lax.broadcast_in_dim(x, shape, [d if d <= axis else d + 1 for d in range(x.ndim)])
    return spread.reshape((*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))


@overloads(
    "Tensor input, Tensor repeats, int dim = None, *, int output_size = None",
    "Tensor repeats, *, int output_size = None",
    "Tensor input, int repeats, int dim = None, *, int output_size = None",
)
def repeat_interleave(
    input: Tensor,
    repeats: int | Tensor | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Every slice along `dim` (or every element of the flattened tensor) repeated, each as often as `repeats` says.

    Shape: `input` `(*)`; `n` slices along `dim` become `n * repeats`, or the sum of `repeats` `(n)`; without
    `dim` one dimension.
    Repeats in a tensor are read on the host, since the shape of the result depends on them.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.

    >>> xtensor.repeat_interleave(xtensor.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if repeats is None:
        return _indices(input, output_size)
    if isinstance(repeats, int):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        flat = input.reshape((-1,)) if dim is None else input
        return repeat_elements(flat, repeats, 0 if dim is None else dim)
    if isinstance(repeats, (list, tuple)):
        raise checks.argument_error("repeat_interleave", "repeats", 2, "Tensor", repeats)
    flat = input.reshape((-1,)) if dim is None else input
    axis = 0 if dim is None else checks.wrap_dim(dim, input.dim())
    if repeats.dim() > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    size = sizes_of(flat)[axis] if flat.dim() else 1
    if repeats.numel() == 1:
        repeats = repeats.reshape((1,)).expand((size,))
    elif repeats.numel() != size:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.numel()} and input.size({axis}) = {size}"
        )
    if repeats.is_meta or flat.is_meta or flat.dim() == 0:
        return flat.index_select(axis, _indices(repeats, output_size))
    # As a mask reads: a program for every sum of repeats would be one too many.
    found = _numbers(repeats, output_size)
    return read(flat, Placed((axis,), [found], found.shape, frozenset((0,))), "IndexSelectBackward0")


def _indices(repeats: Tensor, output_size: int | None) -> Tensor:
    if repeats.is_meta:
        checks.check(output_size is not None, "cannot repeat_interleave a meta tensor without output_size")
        return repeats.new_empty((output_size,))
    return repeats.new_tensor(_numbers(repeats, output_size))


def _numbers(repeats: Tensor, output_size: int | None) -> np.ndarray[Any, Any]:
    """The number of every slice as often as it is repeated, computed on the host."""
    if repeats.dim() != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (dtypes.int32, dtypes.int64):
        raise checks.not_implemented_for("repeat_interleave_cpu", repeats.dtype)
    counts = np.asarray(array_of(repeats))
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != counts.sum():
        raise RuntimeError("allocated size does not match required size")
    return np.repeat(np.arange(counts.size, dtype=counts.dtype), counts)


# ---- triangles and diagonals ---------------------------------------------------------------------------------------


def _triangle(x: Any, diagonal: int, lower: bool, name: str) -> Any:
    if x.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    rows = lax.broadcasted_iota(jnp.int32, x.shape[-2:], 0)
    columns = lax.broadcasted_iota(jnp.int32, x.shape[-2:], 1)
    inside = columns - rows <= diagonal if lower else columns - rows >= diagonal
    return jnp.where(inside, x, jnp.zeros((), x.dtype))


@general(
    views="loop",
    method=True,
    out="exact",
    inplace=True,
    derivatives=dict(input=lambda grad, diagonal: _triangle(grad, diagonal, True, "tril")),
)
def tril(input: Array, diagonal: int = 0) -> Array:
    """The elements on and below a diagonal of every matrix, zeros above.

    Shape: `input` `(*, n, m)`, result `(*, n, m)`.

    >>> xtensor.tril(xtensor.ones(3, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.],
            [1., 1., 1.]])
    """
    return _triangle(input, diagonal, True, "tril")


@general(
    views="loop",
    method=True,
    out="exact",
    inplace=True,
    derivatives=dict(input=lambda grad, diagonal: _triangle(grad, diagonal, False, "triu")),
)
def triu(input: Array, diagonal: int = 0) -> Array:
    """The elements on and above a diagonal of every matrix, zeros below.

    Shape: `input` `(*, n, m)`, result `(*, n, m)`.

    >>> xtensor.triu(xtensor.ones(3, 3), diagonal=1)
    tensor([[0., 1., 1.],
            [0., 0., 1.],
            [0., 0., 0.]])
    """
    return _triangle(input, diagonal, False, "triu")


def _diagonal_dims(ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    a, b = checks.wrap_dim(dim1, ndim), checks.wrap_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return a, b


def _embedded(x: Any, offset: int, a: int, b: int) -> Any:
    n = x.shape[-1] + abs(offset)
    rows = lax.broadcasted_iota(jnp.int32, (n, n), 0)
    columns = lax.broadcasted_iota(jnp.int32, (n, n), 1)
    low, high = (0, offset) if offset >= 0 else (-offset, 0)
    # Column j of the square holds element j - high of the vector, on the diagonal only.
    config = [(0, 0, 0)] * (x.ndim - 1) + [(high, low, 0)]
    row = lax.pad(x, jnp.zeros((), x.dtype), config)
    square = jnp.where(columns - rows == offset, row[..., None, :], jnp.zeros((), x.dtype))
    return jnp.moveaxis(square, (-2, -1), (a, b))


def _embed_grad(grad: Array, offset: int, dim1: int, dim2: int) -> Array:
    a, b = _diagonal_dims(grad.ndim, dim1, dim2)
    return jnp.diagonal(grad, offset, a, b)


@general(method=True, derivatives=dict(input=_embed_grad))
def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """The vectors along the last dimension as diagonals of square matrices, in dimensions `dim1` and `dim2`.

    Shape: `input` `(*, n)`, result `(*, m, m)` with m = n + abs(offset), these two at `dim1` and `dim2`.
    """
    a, b = _diagonal_dims(input.ndim + 1, dim1, dim2)
    return _embedded(input, offset, a, b)


def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The square matrix with a vector on its diagonal, or a copy of the diagonal of a matrix.

    Shape: `input` `(n)`, result `(n, n)`; or `input` `(n, m)`, result `(min(n, m))`, for `diagonal` 0.

    Raises: RuntimeError for more than two dimensions; TypeError for arguments of other kinds.

    >>> xtensor.diag(xtensor.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("diag", "input", 1, "Tensor", input)
    if input.dim() == 1:
        made = diag_embed(input, diagonal)
    elif input.dim() == 2:
        made = input.diagonal(diagonal).clone()
    else:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.dim()}D")
    if out is None:
        return made
    write_out("diag", out, made, [input], "general")
    return out


@of_tensors()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The square matrix with the flattened tensor on its diagonal.

    Shape: `input` of n elements, result `(m, m)` with m = n + abs(offset).

    Raises: TypeError for arguments of other kinds.
    """
    return diag_embed(input.reshape((-1,)), offset)


def _trace_grad(grad: Array, input_shape: Any) -> Array:
    rows = lax.broadcasted_iota(jnp.int32, tuple(input_shape), 0)
    columns = lax.broadcasted_iota(jnp.int32, tuple(input_shape), 1)
    return jnp.where(rows == columns, grad, jnp.zeros((), grad.dtype))


@general(autocast=dict(cpu="float32"), method=True, derivatives=dict(input=_trace_grad))
def trace(input: Array) -> Array:
    """The sum of the diagonal of a matrix; integers sum to int64.

    Shape: `input` `(n, m)`, result `()`.

    Raises: NotImplementedError for bool tensors.

    >>> xtensor.trace(xtensor.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    own = dtype_of(input)
    if own is dtypes.bool:
        raise checks.not_implemented_for("trace", own)
    wide = dtypes.int64.numpy if own.is_integral else dtypes.compute_type(own).numpy
    total = jnp.sum(jnp.diagonal(input).astype(wide))
    return total if own.is_integral else total.astype(input.dtype)


attach_methods(diag, diagflat, fliplr, flipud, repeat_interleave, tile)
