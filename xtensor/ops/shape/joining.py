"""Joining tensors: `cat`, `stack` and their relatives, block diagonals, products and combinations of vectors."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, devices, dtypes
from ...engine import modes
from ...host.at_hand import at_hand
from ...lowering.parts import TOGETHER, slices
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import of_tensors
from ...operators.options import placed
from ...operators.promotion import common_dtype, promote
from ...operators.schema import Array, Arrays
from ...shared_storage import HostMemory
from ...tensor import Tensor, sizes_of

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_tensors",
    "cartesian_prod",
    "cat",
    "column_stack",
    "combinations",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "kron",
    "row_stack",
    "stack",
    "vstack",
]


# ---- cat and stack -------------------------------------------------------------------------------------------------


def is_skipped(shape: Any) -> bool:
    """Whether `cat` leaves a tensor out: PyTorch once had no other empty tensor than one of shape (0,)."""
    return tuple(shape) == (0,)


def _cat_grad(grad: Array, tensors_shape: Any, dim: int) -> list[Array]:
    axis = checks.wrap_dim(dim, grad.ndim)
    found = []
    start = 0
    for shape in tensors_shape:
        if is_skipped(shape) and grad.ndim != 1:
            found.append(jnp.zeros(shape, grad.dtype))
            continue
        stop = start + shape[axis]
        found.append(lax.slice_in_dim(grad, start, stop, axis=axis))
        start = stop
    return found


def _cat_pieces(pieces: Array, dim: int) -> Array:
    if pieces.ndim == 1:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    axis = checks.wrap_dim(dim, pieces.ndim - 1)
    shape = list(pieces.shape[1:])
    shape[axis] *= pieces.shape[0]
    return jnp.moveaxis(pieces, 0, axis).reshape(shape)


SEQUENCES = frozenset((list, tuple))


@general(
    formats=True,
    autocast=dict(cpu="widest"),
    views="loop",
    out="disjoint join",
    name="cat",
    pieces=_cat_pieces,
    derivatives=dict(tensors=_cat_grad),
)
def cat_along(tensors: Arrays, dim: int = 0) -> Array:
    """The tensors joined along a dimension that they have."""
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, x in enumerate(tensors):
        if x.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    dtype = common_dtype(*tensors).numpy
    real = [(i, x) for i, x in enumerate(tensors) if not is_skipped(x.shape)]
    if not real:
        return jnp.zeros((0,), dtype)
    first = real[0][1]
    axis = checks.wrap_dim(dim, first.ndim)
    for i, x in real:
        if x.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {x.ndim}")
        for d in range(x.ndim):
            if d != axis and x.shape[d] != first.shape[d]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {first.shape[d]} but got "
                    f"size {x.shape[d]} for tensor number {i} in the list."
                )
    parts = [x.astype(dtype) for _, x in real]
    return parts[0] if len(parts) == 1 else lax.concatenate(parts, axis)


def cat(
    tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None, out: Tensor | None = None
) -> Tensor:
    """The tensors joined along `dim`, in their common dtype; empty 1-d tensors are skipped.

    Shape: the tensors have one shape but for `dim`, where the result has the sum of their sizes.
    Differs from PyTorch: more than 256 tensors are joined part by part, which shows in the graph.

    Raises: IndexError where `dim` is out of range; RuntimeError where other sizes than that of `dim` differ.

    >>> a = xtensor.tensor([[1, 2]])
    >>> xtensor.cat([a, a + 2, a + 4])
    tensor([[1, 2],
            [3, 4],
            [5, 6]])
    >>> xtensor.cat([a, a], dim=1).shape
    xtensor.Size([1, 4])
    """
    if axis is not None:
        dim = axis
    if out is not None:
        check_out(tensors, out)
        return cat_along(tensors, dim, out=out)
    if type(tensors) in SEQUENCES and len(tensors) > TOGETHER and are_plain(tensors):
        return in_parts(tensors, dim, cat_along)
    return cat_along(tensors, dim)


def are_plain(tensors: Sequence[Any]) -> bool:
    """Whether these are plain tensors of one dtype. So many that one program would take long to compile are joined part by part."""
    return all(type(t) is Tensor for t in tensors) and len({t.dtype for t in tensors}) == 1


def one_shape(tensors: Sequence[Tensor]) -> bool:
    """Whether `stack` takes these; its error counts from the first."""
    shape = sizes_of(tensors[0])
    return all(sizes_of(t) == shape for t in tensors)


def in_parts(tensors: Sequence[Tensor], dim: int, join: Any) -> Tensor:
    """The tensors joined part by part, and the parts then, which share few programs; the errors are those of joining two."""
    return cat([join(tensors[part], dim) for part in slices(len(tensors))], dim)


def check_out(tensors: Sequence[Tensor], out: Tensor) -> None:
    """TypeError, here alone, where the common dtype cannot be cast to that of `out`."""
    found = [t.dtype for t in tensors if isinstance(t, Tensor)]
    if found and not dtypes.can_cast(functools.reduce(dtypes.promote_types, found), out.dtype):
        raise TypeError(
            f"torch.cat(): input types can't be cast to the desired output type {out.dtype.scalar_name}"
        )


concat = concatenate = cat


def _stack_grad(grad: Array, dim: int) -> list[Array]:
    axis = checks.wrap_dim(dim, grad.ndim)
    return [lax.index_in_dim(grad, i, axis, keepdims=False) for i in range(grad.shape[axis])]


def _stack_pieces(pieces: Array, dim: int) -> Array:
    return jnp.moveaxis(pieces, 0, checks.wrap_dim(dim, pieces.ndim))


@general(
    autocast=dict(cpu="widest"),
    views="loop",
    out="join",
    name="stack",
    pieces=_stack_pieces,
    derivatives=dict(tensors=_stack_grad),
)
def stack_along(tensors: Arrays, dim: int = 0) -> Array:
    """The tensors, all of one shape, joined along a new dimension `dim`."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    axis = checks.wrap_dim(dim, tensors[0].ndim + 1)
    for i, x in enumerate(tensors):
        if x.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                f"{list(x.shape)} at entry {i}"
            )
    dtype = common_dtype(*tensors).numpy
    return lax.concatenate([lax.expand_dims(x.astype(dtype), (axis,)) for x in tensors], axis)


def stack(
    tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None, out: Tensor | None = None
) -> Tensor:
    """The tensors, all of one shape, joined along a new dimension `dim`.

    Shape: tensors `(*)`; the result has one more dimension, of as many as there are tensors.
    Differs from PyTorch: more than 256 tensors are joined part by part, which shows in the graph.

    Raises: IndexError where `dim` is out of range; RuntimeError where sizes differ.

    >>> xtensor.stack([xtensor.tensor([1, 2]), xtensor.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if axis is not None:
        dim = axis
    if out is not None:
        check_out(tensors, out)
        return stack_along(tensors, dim, out=out)
    if type(tensors) in SEQUENCES and tensors:
        first = tensors[0]
        if type(first) is Tensor and type(first._xt_storage.raw) is HostMemory:
            made = stacked_on_host(tensors, dim)
            if made is not None:
                return made
        if len(tensors) > TOGETHER and are_plain(tensors) and one_shape(tensors):
            return in_parts(tensors, dim, stack_along)
    return stack_along(tensors, dim)


def stacked_on_host(tensors: Any, dim: Any) -> Tensor | None:
    """Tensors over NumPy's memory that no program has read yet, as loaders make them, stacked by NumPy; None where one is another."""
    if type(dim) is not int or modes.state.mode > modes.NO_GRAD:
        return None
    arrays: Any = [at_hand(tensor) for tensor in tensors]
    if any(a is None or a.shape != arrays[0].shape or a.dtype != arrays[0].dtype for a in arrays):
        return None
    return placed(np.stack(arrays, checks.wrap_dim(dim, arrays[0].ndim + 1)), devices.device("cpu"))


# ---- at least so many dimensions -----------------------------------------------------------------------------------


def _each(tensors: tuple[Any, ...], function: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return function(tensors[0])
    if len(tensors) == 1:
        tensors = tuple(tensors[0])
    return tuple([function(t) for t in tensors])


def _one(t: Tensor) -> Tensor:
    return t if t.dim() else t.reshape((1,))


def _two(t: Tensor) -> Tensor:
    return t if t.dim() > 1 else t.reshape((1, 1)) if t.dim() == 0 else t.unsqueeze(0)


def _three(t: Tensor) -> Tensor:
    if t.dim() > 2:
        return t
    if t.dim() == 0:
        return t.reshape((1, 1, 1))
    return t.unsqueeze(0).unsqueeze(-1) if t.dim() == 1 else t.unsqueeze(-1)


@of_tensors()
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Views with at least one dimension, of one tensor or of each of several.

    Raises: TypeError for arguments of other kinds.
    """
    return _each(tensors, _one)


@of_tensors()
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Views with at least two dimensions, of one tensor or of each of several.

    Raises: TypeError for arguments of other kinds.
    """
    return _each(tensors, _two)


@of_tensors()
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Views with at least three dimensions, of one tensor or of each of several.

    Raises: TypeError for arguments of other kinds.
    """
    return _each(tensors, _three)


def _some(name: str, tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        raise checks.argument_error(name, "tensors", 1, "tuple of Tensors", tensors)
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return list(tensors)


def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors joined column by column: along dimension 1, or 0 for vectors.

    Raises: RuntimeError where other sizes differ.

    >>> xtensor.hstack((xtensor.tensor([1]), xtensor.tensor([2, 3])))
    tensor([1, 2, 3])
    """
    parts = [_one(t) for t in _some("hstack", tensors)]
    return cat(parts, 0 if parts[0].dim() == 1 else 1, out=out)


def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors joined row by row, vectors being rows.

    Raises: RuntimeError where other sizes differ.

    >>> xtensor.vstack((xtensor.tensor([1, 2]), xtensor.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([_two(t) for t in _some("vstack", tensors)], 0, out=out)


row_stack = vstack


def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors joined along their third dimension."""
    return cat([_three(t) for t in _some("dstack", tensors)], 2, out=out)


def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors joined along dimension 1, vectors and numbers being columns."""
    parts = [t if t.dim() > 1 else t.reshape((t.numel(), 1)) for t in _some("column_stack", tensors)]
    return hstack(parts, out=out)


@of_tensors()
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of the tensors expanded to the shape that they share by broadcasting.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.

    >>> [t.shape for t in xtensor.broadcast_tensors(xtensor.ones(2, 1), xtensor.ones(3))]
    [xtensor.Size([2, 3]), xtensor.Size([2, 3])]
    """
    given: Any = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    shape = joined_shape(*[tuple(sizes_of(t)) for t in given])
    return tuple([t.expand(shape) for t in given])


def joined_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which all broadcast; RuntimeError names the last sizes that disagree."""
    total: tuple[int, ...] = ()
    for shape in shapes:
        ndim = max(len(total), len(shape))
        a = (1,) * (ndim - len(total)) + total
        b = (1,) * (ndim - len(shape)) + shape
        for d in range(ndim - 1, -1, -1):
            x, y = a[d], b[d]
            if x != y and 1 not in (x, y):
                raise RuntimeError(
                    f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {d}"
                )
        total = tuple([y if x == 1 else x for x, y in zip(a, b, strict=True)])
    return total


# ---- block diagonals, products, combinations -----------------------------------------------------------------------


def _block_sizes(shapes: Any) -> list[tuple[int, int]]:
    return [(1, 1) if len(s) == 0 else (1, s[0]) if len(s) == 1 else tuple(s) for s in shapes]


def _blocks_grad(grad: Array, tensors_shape: Any) -> list[Array]:
    found = []
    row = column = 0
    for shape, (m, n) in zip(tensors_shape, _block_sizes(tensors_shape), strict=True):
        found.append(lax.slice(grad, (row, column), (row + m, column + n)).reshape(tuple(shape)))
        row, column = row + m, column + n
    return found


@general(name="block_diag", derivatives=dict(tensors=_blocks_grad))
def blocks(tensors: Arrays) -> Array:
    """The matrices along the diagonal of a matrix of zeros."""
    for i, x in enumerate(tensors):
        if x.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {x.ndim} dimensions"
            )
    if not tensors:
        return jnp.zeros((1, 0), dtypes.get_default_dtype().numpy)
    dtype = common_dtype(*tensors).numpy
    sizes = _block_sizes([x.shape for x in tensors])
    width = sum(n for _, n in sizes)
    rows = []
    column = 0
    for x, (m, n) in zip(tensors, sizes, strict=True):
        block = x.astype(dtype).reshape((m, n))
        rows.append(lax.pad(block, np.zeros((), dtype), ((0, 0, 0), (column, width - column - n, 0))))
        column += n
    return lax.concatenate(rows, 0)


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given matrices (vectors being rows) along its diagonal.

    Raises: TypeError for arguments of other kinds.
    """
    return blocks(tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors)


@of_tensors()
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of several vectors, one a row.

    Raises: TypeError for arguments of other kinds.
    """
    given = list(tensors[0]) if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else list(tensors)
    for t in given:
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if not given:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if len(given) == 1:
        return given[0]
    shape = tuple([t.numel() for t in given])
    grids = []
    for i, t in enumerate(given):
        grids.append(t.reshape([-1 if d == i else 1 for d in range(len(given))]).expand(shape).reshape((-1,)))
    return stack(grids, 1)


@general(name="combinations", derivatives=FROM_KERNEL)
def choices(input: Array, count: int, with_replacement: bool) -> Array:
    """The combinations of `count` elements of a vector."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    index = np.array(list(choose(range(input.shape[0]), count)), np.int32).reshape((-1, count))
    return jnp.take(input, index, axis=0) if index.size else jnp.zeros((0, count), input.dtype)


@of_tensors()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """The combinations of `r` elements of a vector, one a row, in lexicographic order of their indices.

    Raises: TypeError for arguments of other kinds.
    """
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(sizes_of(input))}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    return choices(input, r, with_replacement) if r else input.new_empty((0,))


@general(method=True, out=True, derivatives=FROM_KERNEL)
def kron(input: Array, other: Array) -> Array:
    """The Kronecker product of two tensors.

    Shape: `input` `(n, m)`, `other` `(k, l)`, result `(n * k, m * l)`; so for any number of dimensions.

    >>> xtensor.kron(xtensor.tensor([1, 2]), xtensor.tensor([1, 10]))
    tensor([ 1, 10,  2, 20])
    """
    a, b = promote(input, other)
    ndim = max(a.ndim, b.ndim)
    a = a.reshape((1,) * (ndim - a.ndim) + a.shape)
    b = b.reshape((1,) * (ndim - b.ndim) + b.shape)
    left = a.reshape([n for size in a.shape for n in (size, 1)])
    right = b.reshape([n for size in b.shape for n in (1, size)])
    return (left * right).reshape([x * y for x, y in zip(a.shape, b.shape, strict=True)])
