"""Sparse tensors with an element at every place, and others in their place: what checks of gradients need."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.modes import no_grad
from ..tensor import Tensor
from .construct import BLOCKS
from .convert import compress, densify
from .layout import SparseTensor, is_coo, put, with_elements
from .parts import at_places, coalesce, of_pattern, sparse_dims
from .pattern import Pattern

__all__ = ["everywhere", "filled_up", "rewrite"]


def filled_up(dense: Tensor, like: SparseTensor) -> SparseTensor:
    """A dense tensor in the layout of a sparse one, with all its elements stored, zeros too."""
    dims, size = sparse_dims(like), tuple(like.shape)
    count = int(np.prod(size[:dims], dtype=np.int64))
    index = np.stack(np.unravel_index(np.arange(count), size[:dims])) if dims else np.zeros((0, 1), np.int64)
    coo = of_pattern(
        Pattern(index.astype(np.int64), size[:dims]), dense.reshape(count, *size[dims:]), size, True
    )
    if is_coo(like):
        return coo
    at = like._held[1].dim()
    blocks = tuple(like._held[-1].shape[at : at + 2]) if like._layout in BLOCKS else None
    return compress(coo, like._layout, blocks)


def rewrite(target: SparseTensor, dense: Tensor, places: SparseTensor | None) -> None:
    """Have a leaf hold a dense tensor's elements: those at the places of another tensor, or all."""
    with no_grad():
        if places is None:
            made = filled_up(dense, target)
        else:
            like = coalesce(places) if is_coo(places) else places
            made = with_elements(like, at_places(dense, like))
        put(target, made)


def everywhere(sparse: SparseTensor) -> SparseTensor:
    """The tensor with all its zeros stored."""
    with no_grad():
        made: Any = filled_up(densify(sparse), sparse)
    return made.requires_grad_() if sparse.requires_grad else made
