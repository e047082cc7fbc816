"""Sums, norms and softmax of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import checks, dtypes
from ..ops.create.creation import full, zeros
from ..tensor import Tensor
from .convert import as_coo, densify
from .elementwise import restored
from .layout import (
    SparseTensor,
    elements,
    handles,
    indices_from,
    is_coo,
    like_source,
    linked,
    passing,
    with_elements,
)
from .parts import at_places, coalesce, flat_elements, gradient, of_pattern, pattern_of, sparse_dims
from .pattern import Pattern

__all__ = ["dims_of", "softmax", "total", "total_over"]


def dims_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the first, all where none are given; RuntimeError where one appears twice."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    found = tuple([checks.wrap_dim(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))])
    for d in found:
        checks.check(found.count(d) == 1, "dim {} appears multiple times in the list of dims", d)
    return found


@handles("sum")
def total(
    input: SparseTensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    axis: Any = None,
) -> Tensor:
    """The sum of all elements; over some dimensions a sparse tensor, dense where no sparse dimension is left."""
    dim = axis if dim is None else dim
    if dim is None:
        found = input._held[-1].sum(dtype=dtype)
        # As PyTorch's, the gradient is not only that of the elements that are stored.
        return linked(
            "SumBackward0", found, (input,), lambda grad: (grad.expand(tuple(input.shape)).to(input.dtype),)
        )
    if isinstance(dim, (tuple, list)) and not dim:
        whole = coalesce(input) if is_coo(input) else input
        return with_elements(whole, elements(whole) if dtype is None else elements(whole).to(dtype))
    if input.dim() == 0:
        return total(input, dtype=dtype)
    return total_over(input, dims_of(dim, input.dim()), keepdim, dtype)


def total_over(
    input: SparseTensor, dims: tuple[int, ...], keepdim: bool, dtype: Any, masked: bool = False
) -> Tensor:
    """The sum over some dimensions; `masked`: only elements that are stored get a gradient, even a dense sum's."""

    def summed(sparse: SparseTensor) -> Tensor:
        return (partial if is_coo(sparse) else compressed_sum)(sparse, dims, keepdim, dtype)

    return passing(
        "SumBackward1", summed, (input,), lambda grad: (spread(grad, input, dims, keepdim, masked),)
    )


def spread(grad: Tensor, sparse: SparseTensor, dims: tuple[int, ...], keepdim: bool, masked: bool) -> Tensor:
    """The gradient of a tensor from that of its sum: of a sparse sum that of the elements that are stored."""
    whole = densify(grad) if isinstance(grad, SparseTensor) else grad
    for d in () if keepdim else sorted(dims):
        whole = whole.unsqueeze(d)
    whole = like_source(whole.expand(tuple(sparse.shape)), sparse)
    if not (masked or isinstance(grad, SparseTensor)):
        return whole
    return gradient(sparse, at_places(whole, sparse))


def partial(sparse: SparseTensor, dims: tuple[int, ...], keepdim: bool, dtype: Any) -> Tensor:
    """The sum over some dimensions."""
    count = sparse_dims(sparse)
    folded = [d for d in dims if d < count]
    inner = [d - count + 1 for d in dims if d >= count]
    values = elements(sparse)
    values = values.sum(inner, keepdim=keepdim, dtype=dtype) if inner else values
    if dtype is not None:
        values = values.to(dtype)
    elif not inner and (
        sparse.dtype is dtypes.bool or not (sparse.dtype.is_floating_point or sparse.dtype.is_complex)
    ):
        values = values.to(dtypes.int64)
    size = tuple(1 if d in dims else s for d, s in enumerate(sparse.shape) if keepdim or d not in dims)
    if len(folded) == count:
        found = values.sum(0)
        return found.reshape(size) if keepdim else found
    pattern = pattern_of(sparse)
    left = [d for d in range(count) if d not in folded]
    if keepdim:
        index = np.stack([np.zeros_like(r) if d in folded else r for d, r in enumerate(pattern.indices)])
        sizes = tuple(1 if d in folded else s for d, s in enumerate(pattern.sizes))
    else:
        index, sizes = pattern.indices[left], tuple(pattern.sizes[d] for d in left)
    return coalesce(of_pattern(Pattern(index, sizes), values, size, not folded and sparse._coalesced))


def compressed_sum(sparse: SparseTensor, dims: tuple[int, ...], keepdim: bool, dtype: Any) -> Tensor:
    """The sum of a matrix of compressed rows over rows, columns or both."""
    checks.check(keepdim, "reduction operations on CSR tensors with keepdim=False is unsupported")
    made = coalesce(as_coo(partial(as_coo(sparse), dims, True, dtype)))
    return restored(made, sparse)


@handles("norm", "vector_norm", "linalg_vector_norm", "native_norm")
def norm(
    input: SparseTensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    **more: Any,
) -> Tensor:
    """The norm of all elements."""
    checks.check(not keepdim, "norm_sparse currently does not support keepdim=True")
    checks.check(
        dim is None or set(dims_of(dim, input.dim())) == set(range(input.dim())),
        "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions of "
        "the input",
    )
    if dtype is not None and p == "fro":
        raise ValueError("dtype argument is not supported in frobenius norm")
    checks.check(dtype is None, "norm_sparse currently does not support 'dtype' argument")
    return elements(coalesce(as_coo(input))).norm(2 if p in ("fro", None) else p)


@handles("any")
def any_(input: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
    """Whether an element is not zero."""
    return flat_elements(input).any()


@handles("mean")
def mean(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of all elements, those that are not stored included."""
    if dim is not None:
        raise NotImplementedError(
            "Could not run 'aten::mean.dim' with arguments from the 'SparseCPU' backend."
        )
    return total(input, dtype=dtype) / max(1, input.numel())


def softmax(sparse: SparseTensor, dim: int, log: bool, dtype: Any = None) -> SparseTensor:
    """The softmax, or its logarithm, of the elements that are stored: the others are -inf before and zero after."""
    layout_like = sparse
    whole = coalesce(as_coo(sparse))
    values, pattern = elements(whole), pattern_of(whole)
    values = values if dtype is None else values.to(dtype)
    if not values.dtype.is_floating_point:
        name = "log_softmax" if log else "softmax"
        raise NotImplementedError(f"\"{name}\" not implemented for '{values.dtype.scalar_name}'")
    count = sparse_dims(whole)
    at = checks.wrap_dim(dim, whole.dim())
    if at >= count:
        inner = at - count + 1
        made = with_elements(whole, values.log_softmax(inner) if log else values.softmax(inner))
    elif not pattern.nnz:
        made = with_elements(whole, values)
    else:
        rest = [d for d in range(count) if d != at]
        groups = Pattern(pattern.indices[rest], tuple(pattern.sizes[d] for d in rest)).merged
        target = indices_from(groups.target, values.device)
        shape = (len(groups.starts), *values.shape[1:])
        low = full(shape, -float("inf"), dtype=values.dtype, device=values.device)
        spread = target.reshape(-1, *(1,) * (values.dim() - 1)).expand(tuple(values.shape))
        highest = low.scatter_reduce(0, spread, values.detach(), "amax")
        shifted = values - highest.index_select(0, target)
        powers = shifted.exp()
        sums = zeros(shape, dtype=values.dtype, device=values.device).index_add(0, target, powers)
        if log:
            made = with_elements(whole, shifted - sums.log().index_select(0, target))
        else:
            made = with_elements(whole, powers / sums.index_select(0, target))
    return made if is_coo(layout_like) else restored(made, layout_like)


@handles("item")
def item(self: SparseTensor) -> Any:
    """The value of a tensor with one element."""
    checks.check(self.numel() == 1, "a Tensor with {} elements cannot be converted to Scalar", self.numel())
    return densify(self).item()


@handles("nonzero")
def nonzero(input: SparseTensor, **more: Any) -> Tensor:
    """NotImplementedError, as in PyTorch."""
    raise NotImplementedError("Could not run 'aten::nonzero' with arguments from the 'SparseCPU' backend.")
