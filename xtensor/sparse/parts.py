"""What sparse tensors are made of: their elements and coordinates, in order, and how many there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import checks, dtypes
from ..engine import modes
from ..ops.create.creation import zeros
from ..ops.create.ingest import from_numpy
from ..ops.index.masks import where
from ..tensor import Tensor, asks_grad
from .construct import BLOCKS, ROWS
from .layout import (
    HANDLERS,
    KINDS,
    SparseTensor,
    assembled,
    elements,
    handles,
    host,
    indices_from,
    is_coo,
    passing,
    place_of,
    set_place,
    with_elements,
)
from .pattern import Merged, Pattern, expanded

__all__ = [
    "at_places",
    "coalesce",
    "dense_dims",
    "flat_elements",
    "index_rows",
    "kind_of",
    "of_pattern",
    "pattern_of",
    "sparse_dims",
]


def sparse_dims(sparse: SparseTensor) -> int:
    """How many of the first dimensions are sparse; of compressed layouts the batch ones are counted too."""
    if is_coo(sparse):
        return sparse._held[0].shape[0]
    return sparse._held[1].dim() + 1


def dense_dims(sparse: SparseTensor) -> int:
    """How many of the last dimensions are dense."""
    return sparse.dim() - sparse_dims(sparse)


def pattern_of(sparse: SparseTensor) -> Pattern:
    """The coordinates of the elements; of blocks, of each of their elements."""
    found = place_of(sparse)
    if found is None:
        found = Pattern(coordinates(sparse), tuple(sparse.shape)[: sparse_dims(sparse)])
        set_place(sparse, found)
    return found


def coordinates(sparse: SparseTensor) -> np.ndarray[Any, Any]:
    if is_coo(sparse):
        return host(sparse._held[0])
    pointers, plain, values = sparse._held
    starts, index = host(pointers), host(plain)
    batch = starts.shape[:-1]
    count = int(np.prod(batch, dtype=np.int64))
    starts, index = starts.reshape(count, starts.shape[-1]), index.reshape(count, index.shape[-1])
    nnz = index.shape[1]
    first = np.stack([expanded(s) for s in starts]) if len(starts) else np.zeros((0, nnz), np.int64)
    place = np.broadcast_to(np.arange(len(starts))[:, None], index.shape)
    grid = [first, index] if sparse._layout in ROWS else [index, first]
    if sparse._layout in BLOCKS:
        high, wide = values.shape[len(batch) + 1 : len(batch) + 3]
        shape = (*index.shape, high, wide)
        rows = grid[0][..., None, None] * high + np.arange(high)[:, None]
        columns = grid[1][..., None, None] * wide + np.arange(wide)
        grid = [np.broadcast_to(rows, shape), np.broadcast_to(columns, shape)]
        place = np.broadcast_to(place[..., None, None], shape)
    batches = np.unravel_index(place.reshape(-1), batch) if batch else ()
    return np.stack([*batches, *(g.reshape(-1) for g in grid)]).astype(np.int64)


def flat_elements(sparse: SparseTensor) -> Tensor:
    """The elements in the order of `pattern_of`, `(nnz, *dense sizes)`; followed by autograd."""
    found = elements(sparse)
    if is_coo(sparse):
        return found
    return found.reshape(pattern_of(sparse).nnz, *tuple(sparse.shape)[sparse_dims(sparse) :])


def of_pattern(pattern: Pattern, values: Tensor, size: Any, coalesced: bool = True) -> SparseTensor:
    """A COO tensor with elements at the places of a pattern."""
    index = indices_from(pattern.indices, values.device)
    return assembled(dtypes.sparse_coo, (index, values), size, coalesced, pattern)


def index_rows(pattern: Pattern, like: Tensor) -> tuple[Tensor, ...]:
    """The coordinates, a tensor for each dimension."""
    return tuple([indices_from(row, like.device) for row in pattern.indices])


def picked(values: Tensor, order: np.ndarray[Any, Any]) -> Tensor:
    """Elements by number."""
    return values.index_select(0, indices_from(order, values.device))


def coalesce(sparse: SparseTensor) -> SparseTensor:
    """The same tensor with elements in row-major order, those at one place summed."""
    if is_coo(sparse) and sparse._coalesced:
        return sparse
    merged = pattern_of(sparse).merged
    values = flat_elements(sparse)
    if merged.sorted and merged.unique and is_coo(sparse):
        made = with_elements(sparse, values, coalesced=True)
        set_place(made, merged.pattern)
        return made
    return of_pattern(merged.pattern, summed(values, merged), tuple(sparse.shape))


def summed(values: Tensor, merged: Merged) -> Tensor:
    """The sums of the elements at each place."""
    if merged.unique:
        return picked(values, merged.order)
    if values.dtype is dtypes.bool:
        return summed(values.to(dtypes.uint8), merged) > 0
    count = len(merged.starts)
    if values.device.type == "cpu" and (modes.state.mode & modes.NO_GRAD or not asks_grad(values)):
        # Sums of runs on the host: how many there are changes from call to call, and with it any program.
        found = np.add.reduceat(widened(host(values))[merged.order], merged.starts, axis=0)
        return from_numpy(np.ascontiguousarray(found.astype(values.dtype.numpy)))
    start = zeros((count, *values.shape[1:]), dtype=values.dtype, device=values.device)
    return start.index_add(0, indices_from(merged.target, values.device), values)


def widened(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Short floats in float32, to be summed."""
    return (
        array.astype(np.float32)
        if array.dtype.kind not in "biufc" or (array.dtype.itemsize < 4 and array.dtype.kind in "fV")
        else array
    )


@handles("_at")
def at_places(grad: Tensor, sparse: SparseTensor) -> Tensor:
    """A gradient's elements at the places of a sparse tensor, in the form of that one's elements."""
    if isinstance(grad, SparseTensor):
        same = grad._layout is sparse._layout and all(
            a is b for a, b in zip(grad._held[:-1], sparse._held[:-1], strict=True)
        )
        if same and (not is_coo(sparse) or sparse._coalesced or pattern_of(sparse).merged.unique):
            return elements(grad)
        other = coalesce(grad)
        pattern = pattern_of(sparse)
        found, at = pattern_of(other).find(pattern)
        if not pattern_of(other).nnz:
            return zeros(tuple(sparse._held[-1].shape), dtype=grad.dtype, device=grad.device)
        values = picked(elements(other), at)
        if not found.all():
            mask = from_numpy(found).reshape(-1, *(1,) * (values.dim() - 1))
            values = where(
                mask.to(values.device), values, zeros((), dtype=values.dtype, device=values.device)
            )
    else:
        values = grad[index_rows(pattern_of(sparse), grad)]
    return values.reshape(tuple(sparse._held[-1].shape))


@handles("_gradient")
def gradient(sparse: SparseTensor, grad: Tensor) -> SparseTensor:
    """The gradient of a sparse tensor from that of its elements: one element at a place, whatever there are of the tensor."""
    if sparse._coalesced or not is_coo(sparse) or (merged := pattern_of(sparse).merged).unique:
        return with_elements(sparse, grad)
    return of_pattern(merged.pattern, picked(grad, merged.order[merged.starts]), tuple(sparse.shape))


# ---- what programs ask for -----------------------------------------------------------------------------------------


def kind_of(value: Any) -> str:
    """What errors call a layout, or a tensor's."""
    layout = value.layout if isinstance(value, Tensor) else value
    return KINDS[str(layout).partition(".")[2]]


def coordinates_only(name: str, sparse: Tensor) -> None:
    checks.check(
        is_coo(sparse), "{} expected sparse coordinate tensor layout but got {}", name, kind_of(sparse)
    )


@handles("coalesce")
def coalesced(self: SparseTensor) -> SparseTensor:
    """The same tensor with elements in row-major order, those at one place summed."""
    coordinates_only("coalesce", self)
    if self._coalesced:
        return self
    return passing("CoalesceBackward0", coalesce, (self,), lambda grad: (grad,))


@handles("is_coalesced")
def is_coalesced(self: SparseTensor) -> bool:
    """Whether the elements are known to be in order, one at a place."""
    coordinates_only("is_coalesced", self)
    return self._coalesced


@handles("_coalesced_")
def set_coalesced(self: SparseTensor, coalesced: bool) -> SparseTensor:
    """Say that the elements are in order, one at a place, or that it is not known."""
    self._coalesced = coalesced
    return self


@handles("indices")
def indices(self: SparseTensor) -> Tensor:
    """The coordinates of a coalesced tensor, `(sparse dims, nnz)`."""
    coordinates_only("indices", self)
    checks.check(
        self._coalesced, "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"
    )
    return self._held[0].detach()


@handles("_indices")
def raw_indices(self: SparseTensor) -> Tensor:
    """The coordinates as they are."""
    coordinates_only("_indices", self)
    return self._held[0].detach()


@handles("values")
def values(self: SparseTensor) -> Tensor:
    """The elements; of COO, of a coalesced tensor."""
    checks.check(
        not is_coo(self) or self._coalesced,
        "Cannot get values on an uncoalesced tensor, please call .coalesce() first",
    )
    return elements(self)


@handles("_values")
def raw_values(self: SparseTensor) -> Tensor:
    """The elements as they are, unknown to autograd."""
    return self._held[-1].detach()


@handles("_nnz")
def count(self: SparseTensor) -> int:
    """How many elements, or blocks, are stored (of each matrix of a batch)."""
    return self._held[-1].shape[0] if is_coo(self) else self._held[1].shape[-1]


def coordinate(name: str, layouts: tuple[Any, ...], at: int) -> None:
    kind = "row" if layouts is ROWS else "column"

    def part(self: SparseTensor) -> Tensor:
        checks.check(
            self._layout in layouts,
            "{} expected sparse {} compressed tensor layout but got {}",
            name,
            kind,
            kind_of(self),
        )
        return self._held[at].detach()

    part.__name__ = part.__qualname__ = name
    part.__doc__ = f"The {name.replace('_', ' ')} of a matrix of compressed {kind}s."
    HANDLERS[name] = part


COLUMNS = (dtypes.sparse_csc, dtypes.sparse_bsc)
coordinate("crow_indices", ROWS, 0)
coordinate("col_indices", ROWS, 1)
coordinate("ccol_indices", COLUMNS, 0)
coordinate("row_indices", COLUMNS, 1)


@handles("sparse_dim", "_dimI")
def sparse_dim(self: SparseTensor) -> int:
    """How many dimensions are sparse."""
    return sparse_dims(self) if is_coo(self) else 2


@handles("dense_dim", "_dimV")
def dense_dim(self: SparseTensor) -> int:
    """How many of the last dimensions are dense."""
    return dense_dims(self)


METHODS = (
    "coalesce is_coalesced _coalesced_ indices _indices values _values _nnz crow_indices col_indices ccol_indices row_indices "
    "sparse_dim dense_dim _dimI _dimV".split()
)
for _name in METHODS:
    setattr(SparseTensor, _name, HANDLERS[_name])
