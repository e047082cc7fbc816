"""Rows of tables whose gradients are sparse: embeddings."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..engine.modes import no_grad
from ..ops.index import embedding
from ..ops.index.embedding import embedding_lookup
from ..tensor import Tensor
from .layout import host, indices_from, linked, make
from .parts import picked

__all__ = ["rows_with_sparse_gradient"]


def rows_with_sparse_gradient(
    weight: Tensor, indices: Tensor, padding_idx: int | None, scale_grad_by_freq: bool
) -> Tensor:
    """The rows of a table; the gradient of the table has an element for each of them."""
    with no_grad():
        found = embedding_lookup(weight, indices)
    kept = indices.detach()
    size = tuple(weight.shape)

    def transposed(grad: Tensor) -> tuple[Tensor]:
        if scale_grad_by_freq:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        rows = kept.reshape(1, -1)
        rows = rows if rows.dtype is dtypes.int64 else rows.to(dtypes.int64)
        values = grad.reshape(kept.numel(), size[1])
        if padding_idx is not None:
            here = np.flatnonzero(host(rows)[0] != padding_idx)
            values = picked(values, here)
            rows = indices_from(host(rows)[:, here], grad.device)
        return (make(dtypes.sparse_coo, (rows, values), size),)

    return linked("EmbeddingBackward0", found, (weight,), transposed)


embedding.sparse_rows = rows_with_sparse_gradient
