"""Embeddings: rows of a table looked up by number, and numbers as one-hot vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...engine import modes
from ...operators.declare import general
from ...operators.functions.overloads import of_tensors
from ...operators.index_bounds import in_bounds, readable
from ...operators.schema import Array
from ...tensor import Tensor, array_of, asks_grad, sizes_of
from ..reduce.reductions import argument

__all__ = ["embedding", "one_hot"]


def _table_grad(
    grad: Array, indices: Array, weight_shape: Any, padding_idx: int | None, scale_grad_by_freq: bool
) -> Array:
    """The gradient of every row summed over the places where it was looked up."""
    count, width = weight_shape
    flat = indices.reshape(-1).astype(jnp.int32)
    rows = grad.reshape((-1, width)).astype(dtypes.compute_type(dtype_of(grad)).numpy)
    if scale_grad_by_freq:
        often = jnp.zeros((count,), rows.dtype).at[flat].add(1)
        rows = rows / often[flat][:, None]
    if padding_idx is not None:
        rows = jnp.where((flat == padding_idx)[:, None], jnp.zeros_like(rows), rows)
    return jnp.zeros((count, width), rows.dtype).at[flat].add(rows)


@general(views="loop", name="embedding", derivatives=dict(weight=_table_grad))
def embedding_lookup(
    weight: Array, indices: Array, padding_idx: int | None = None, scale_grad_by_freq: bool = False
) -> Array:
    """The rows of `weight` at `indices`."""
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    checks.check_dtypes("embedding", argument(indices, "indices", 1), dtypes.int64, dtypes.int32)
    return weight.at[indices.astype(jnp.int32)].get(mode="fill")


@of_tensors()
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of the table `weight` at the indices `input`; the row `padding_idx` receives no gradient.

    With `max_norm` the rows looked up are first renormalised in place. With `sparse` the gradient of `weight` is a
    sparse tensor. Differs from PyTorch: on an accelerator an index out of range gives NaN.

    Shape: `input` `(*)` of integers, `weight` `(V, E)`; result `(*, E)`.

    Raises: TypeError for arguments of other kinds; IndexError where an index is out of range.

    >>> table = xtensor.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    >>> F.embedding(xtensor.tensor([2, 1]), table)
    tensor([[3., 4.],
            [1., 2.]])
    """
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    rows = sizes_of(weight)[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if not isinstance(input, Tensor):
        raise checks.argument_error("embedding", "indices", 2, "Tensor", input)
    array = array_of(input)
    if array.dtype.kind in "iu" and readable(array) and not in_bounds(array, rows, False):
        raise IndexError("index out of range in self")
    if max_norm is not None:
        with modes.no_grad():
            renormalise_rows(weight, input, max_norm, norm_type)
    if sparse and sparse_rows is not None and follows(weight):
        return sparse_rows(weight, input, padding_idx, scale_grad_by_freq)
    return embedding_lookup(weight, input, padding_idx, scale_grad_by_freq)


sparse_rows: Callable[[Tensor, Tensor, int | None, bool], Tensor] | None = None
"""Rows of a table whose gradient is sparse; set by the package of sparse tensors."""


def follows(tensor: Tensor) -> bool:
    """Whether autograd follows what is made of a tensor now."""
    return not modes.state.mode & modes.NO_GRAD and asks_grad(tensor)


@general(name="embedding_renorm", inplace=True, derivatives=None)
def embedding_renorm(weight: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    """The table with the rows at `indices` scaled down to a norm of at most `max_norm`."""
    x = weight.astype(dtypes.compute_type(dtype_of(weight)).numpy)
    if norm_type == 2:
        norms = jnp.sqrt(jnp.sum(x * x, axis=1))
    elif norm_type == float("inf"):
        norms = jnp.max(jnp.abs(x), axis=1)
    else:
        norms = jnp.sum(jnp.abs(x) ** norm_type, axis=1) ** (1 / norm_type)
    used = jnp.zeros((x.shape[0],), bool).at[indices.reshape(-1).astype(jnp.int32)].set(True)
    scale = jnp.where(used & (norms > max_norm), max_norm / (norms + 1e-7), 1)
    return (x * scale[:, None]).astype(weight.dtype)


embedding_renorm_ = embedding_renorm.operator.inplace


def renormalise_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    embedding_renorm_(weight, indices, float(max_norm), float(norm_type))


@general(name="one_hot_kernel", derivatives=None)
def one_hot_kernel(tensor: Array, num_classes: int) -> Array:
    """One-hot vectors along a new last dimension."""
    classes = lax.broadcasted_iota(jnp.int64, (*tensor.shape, num_classes), tensor.ndim)
    return (tensor[..., None] == classes).astype(jnp.int64)


@of_tensors()
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """One-hot vectors, along a new last dimension, of class numbers.

    Without `num_classes` the largest class is read from the device.

    Shape: `input` `(*)` of int64; result `(*, num_classes)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for a class that is negative or not below
    `num_classes`, and for other dtypes than int64.

    >>> F.one_hot(xtensor.tensor([0, 2]), num_classes=3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if input.dtype is not dtypes.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    array = array_of(input)
    if input.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    elif num_classes == -1 or readable(array):
        if not in_bounds(array, 2**62, False):
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = int(input.max().item()) + 1
        elif num_classes < 1 or not in_bounds(array, num_classes, False):
            raise RuntimeError("Class values must be smaller than num_classes.")
    return one_hot_kernel(input, num_classes)
