"""Sparse tensors resized in place: what is stored stays, or is given up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import checks, dtypes
from ..ops.create.creation import zeros
from ..tensor import Tensor
from .layout import HANDLERS, SparseTensor, host, indices_from, is_coo, make, put
from .parts import coordinates_only, dense_dims, sparse_dims

__all__: list[str] = []

HELP = (
    "changing the number of {0} dimensions (from {1} to {2}) on a non-empty sparse tensor is not supported."
)


def resized(sparse: SparseTensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
    """A COO tensor with the same elements and other sizes; none of them may shrink."""
    index, held = sparse._held
    sizes, count = tuple(map(int, size)), sparse_dims(sparse)
    check_sum(sizes, sparse_dim, dense_dim)
    check_growth(sparse, sizes, sparse_dim)
    if held.shape[0]:
        grown = zeros((held.shape[0], *sizes[count:]), dtype=held.dtype, device=held.device)
        # Sizes of elements are those of their memory, as of any tensor that is resized.
        grown.view(-1)[: held.numel()] = held.reshape(-1)
        return make(dtypes.sparse_coo, (index, grown), sizes, sparse._coalesced)
    return emptied(sparse, sizes, sparse_dim)


def check_sum(sizes: Sequence[int], sparse_dim: int, dense_dim: int) -> None:
    checks.check(
        sparse_dim + dense_dim == len(sizes),
        "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {}, sparse_dim = {}, dense_dim = {}",
        len(sizes), sparse_dim, dense_dim,
    )  # fmt: skip


def check_growth(sparse: SparseTensor, sizes: tuple[int, ...], sparse_dim: int) -> None:
    """RuntimeError for sizes that a COO tensor with elements cannot take."""
    old, count = tuple(sparse.shape), sparse_dims(sparse)
    if not sparse._held[-1].shape[0]:
        return
    checks.check(sparse_dim == count, HELP, "sparse", count, sparse_dim)
    dense_dim = len(sizes) - sparse_dim
    checks.check(dense_dim == dense_dims(sparse), HELP, "dense", dense_dims(sparse), dense_dim)
    for name, start, stop in (("sparse", 0, count), ("dense", count, len(old))):
        checks.check(
            all(n >= o for n, o in zip(sizes[start:stop], old[start:stop], strict=True)),
            "shrinking the size of {} dimensions (from {} to {}) on a non-empty sparse tensor is not supported.",
            name, list(old[start:stop]), list(sizes[start:stop]),
        )  # fmt: skip


HANDLERS["_check_growth"] = check_growth


def emptied(sparse: SparseTensor, size: Sequence[int], sparse_dim: int) -> SparseTensor:
    """A COO tensor of other sizes without elements."""
    sizes = tuple(map(int, size))
    index = indices_from(np.zeros((sparse_dim, 0), np.int64), sparse.device)
    held = zeros((0, *sizes[sparse_dim:]), dtype=sparse.dtype, device=sparse.device)
    return make(dtypes.sparse_coo, (index, held), sizes, sparse._coalesced)


def leaf(self: SparseTensor, name: str) -> None:
    checks.check(not self.requires_grad, "cannot resize variables that require grad")
    coordinates_only(name, self)


def sparse_resize_(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Change the sizes in place; those of a tensor with elements may only grow."""
    leaf(self, "sparse_resize_")
    put(self, resized(self, size, sparse_dim, dense_dim))
    return self


def sparse_resize_and_clear_(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Change the sizes in place, and give up all elements."""
    leaf(self, "sparse_resize_and_clear_")
    check_sum(size, sparse_dim, dense_dim)
    put(self, emptied(self, size, sparse_dim))
    return self


def resize_as_sparse_(self: SparseTensor, the_template: SparseTensor) -> Tensor:
    """Take over another tensor's sizes and number of sparse dimensions."""
    if tuple(self.shape) == tuple(the_template.shape) and is_coo(the_template) and is_coo(self):
        if sparse_dims(self) == sparse_dims(the_template):
            return self
    if is_coo(self):
        return sparse_resize_(
            self, tuple(the_template.shape), sparse_dims(the_template), dense_dims(the_template)
        )
    return resize_(self, tuple(the_template.shape))


def resize_(self: SparseTensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Change the sizes in place: of COO the sparse ones, of CSR rows and columns."""
    sizes = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    sizes = tuple(map(int, sizes))
    if sizes == tuple(self.shape):
        return self
    if is_coo(self):
        return sparse_resize_(self, sizes, len(sizes) - dense_dims(self), dense_dims(self))
    checks.check(
        self._layout is dtypes.sparse_csr and len(sizes) == self.dim(),
        "resize_: only sparse CSR tensors of the same number of dimensions can be resized",
    )
    checks.check(
        sizes[-1] >= self.shape[-1],
        "resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The original number of "
        "columns is {} while the requested new number of columns is {}.",
        self.shape[-1], sizes[-1],
    )  # fmt: skip
    pointers, columns, held = self._held
    starts, rows = host(pointers), sizes[-2]
    kept = starts[..., : rows + 1]
    checks.check(pointers.dim() == 1, "resize_: batches of sparse CSR tensors cannot be resized")
    longer = np.append(kept, np.full(max(0, rows + 1 - len(kept)), kept[-1], kept.dtype))
    count = int(longer[-1])
    parts = (indices_from(longer, self.device), columns[:count], held[:count])
    put(self, make(self._layout, parts, sizes, True))
    return self


def resize_as_(self: SparseTensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    """Take over another tensor's sizes."""
    if isinstance(the_template, SparseTensor):
        return resize_as_sparse_(self, the_template)
    return resize_(self, tuple(the_template.shape))


for _function in (sparse_resize_, sparse_resize_and_clear_, resize_as_sparse_, resize_, resize_as_):
    HANDLERS[_function.__name__] = _function
for _name in ("sparse_resize_", "sparse_resize_and_clear_"):
    setattr(SparseTensor, _name, HANDLERS[_name])
