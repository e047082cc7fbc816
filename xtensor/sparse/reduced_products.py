"""Products of a matrix of compressed rows and a dense one whose terms are folded in other ways than by a sum."""

from __future__ import annotations

import numpy as np

from .. import checks, dtypes
from ..engine.modes import no_grad
from ..ops.create.creation import full, zeros
from ..ops.index.masks import where
from ..tensor import Tensor
from .layout import SparseTensor, indices_from
from .parts import flat_elements, pattern_of, picked
from .products import check_product, product

__all__ = ["reduced"]

WAYS = ("sum", "mean", "amax", "amin")


def reduced(sparse: Tensor, dense: Tensor, way: str) -> Tensor:
    """For each row of a CSR matrix the sum, mean, greatest or least of the terms of its product; 0 where a row is empty."""
    if way == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    way = {"max": "amax", "min": "amin"}.get(way, way)
    checks.check(way in WAYS, "reduce argument must be either sum, prod, mean, amax or amin, got {}", way)
    checks.check(
        isinstance(sparse, SparseTensor) and sparse._layout is dtypes.sparse_csr,
        "sparse.mm with a reduction: expected a sparse CSR first argument, but got {}", sparse.layout,
    )  # fmt: skip
    checks.check(
        not isinstance(dense, SparseTensor), "sparse.mm with a reduction: expected a strided second argument"
    )
    assert isinstance(sparse, SparseTensor)
    check_product(sparse, dense)
    if way == "sum":
        return product(sparse, dense)
    pattern = pattern_of(sparse)
    lengths = np.bincount(pattern.indices[0], minlength=pattern.sizes[0])
    if way == "mean":
        count = indices_from(np.maximum(lengths, 1)[:, None].astype(dense.dtype.numpy), dense.device)
        return product(sparse, dense) / count
    return extreme(sparse, dense, way)


def extreme(sparse: SparseTensor, dense: Tensor, way: str) -> Tensor:
    """The greatest or least terms; the gradient goes to the first of those that are equal."""
    pattern = pattern_of(sparse)
    rows, size = pattern.sizes[0], dense.shape[1]
    if not pattern.nnz or not size:
        return product(sparse, dense)
    terms = flat_elements(sparse)[:, None] * picked(dense, pattern.indices[1])
    row = indices_from(pattern.indices[0], dense.device)
    with no_grad():
        spread = row[:, None].expand(pattern.nnz, size)
        least = full((rows, size), 0, dtype=dense.dtype, device=dense.device)
        best = least.scatter_reduce(0, spread, terms, way, include_self=False)
        number = indices_from(np.arange(pattern.nnz)[:, None], dense.device).expand(pattern.nnz, size)
        same = (terms == best[row]) | terms.isnan()
        number = where(same, number, number.new_full((), pattern.nnz))
        first = number.new_full((rows, size), pattern.nnz).scatter_reduce(0, spread, number, "amin")
    nothing = zeros((1, size), dtype=dense.dtype, device=dense.device)
    return joined(terms, nothing).gather(0, first)


def joined(terms: Tensor, nothing: Tensor) -> Tensor:
    """The terms with a row of zeros after them, which rows without elements take."""
    whole = nothing.new_zeros((terms.shape[0] + 1, terms.shape[1]))
    return whole.slice_scatter(terms, 0, 0, terms.shape[0])
