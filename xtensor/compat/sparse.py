"""Sparse tensors are absent: every name of `torch.sparse` says so."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []

NAMES = frozenset(
    "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS addmm as_sparse_gradcheck "
    "check_sparse_tensor_invariants log_softmax mm sampled_addmm softmax spdiags spsolve sum to_sparse_semi_structured".split()
)


def __getattr__(name: str) -> Any:
    reason = ": sparse tensors are absent, all tensors here are strided" if name in NAMES else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{reason}", name=name)
