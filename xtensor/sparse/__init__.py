"""Sparse tensors, `torch.sparse`: COO, CSR, CSC, BSR and BSC, with their products, sums and conversions."""

from __future__ import annotations

from . import composites, display, elementwise, making, shapes, sizes, tables
from .functions import (
    addmm,
    as_sparse_gradcheck,
    check_sparse_tensor_invariants,
    log_softmax,
    mm,
    sampled_addmm,
    softmax,
    spdiags,
    spsolve,
    sum,
)

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "spsolve",
    "sum",
]
