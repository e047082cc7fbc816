"""Sparse data under a sparse mask of the same places: what masked tensors make of elements instead of dense values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..tensor import Tensor
from .convert import convert, densify, sparse_mask
from .layout import SparseTensor, elements, host, with_elements

__all__ = ["element_mask", "is_sparse", "of_elements", "same_places", "to_dense", "to_layout"]


def is_sparse(value: Any) -> bool:
    """Whether this is a sparse tensor."""
    return isinstance(value, SparseTensor)


def of_elements(function: Callable[..., Any], first: Any, *others: Any, **options: Any) -> Any:
    """A function of the elements of sparse tensors at the same places, at these places."""
    given = [elements(a) if isinstance(a, SparseTensor) else a for a in (first, *others)]
    like = next(a for a in (first, *others) if isinstance(a, SparseTensor))
    return with_elements(like, function(*given, **options))


def element_mask(sparse: Any) -> Tensor:
    """The elements of a mask."""
    return elements(sparse)


def same_places(first: Any, second: Any) -> bool:
    """Whether two sparse tensors of one layout have their elements at the same places."""
    if first is second:
        return True
    if not (isinstance(first, SparseTensor) and isinstance(second, SparseTensor)):
        return False
    if first.layout is not second.layout:
        return False
    pairs = zip(first._held[:-1], second._held[:-1], strict=True)
    return all(a is b or np.array_equal(host(a), host(b)) for a, b in pairs)


def to_dense(data: Any, mask: Any) -> tuple[Tensor, Tensor]:
    """Data and mask as strided tensors."""
    return (densify(data), densify(mask)) if isinstance(data, SparseTensor) else (data, mask)


def to_layout(data: Any, mask: Any, layout: Any) -> tuple[Tensor, Tensor]:
    """Data and mask in COO or CSR: an element wherever the mask is True."""
    if isinstance(data, SparseTensor):
        return convert(data, layout), convert(mask, layout)
    places = convert(mask, dtypes.sparse_coo)
    found, places = sparse_mask(data, places), places
    return (
        (found, places) if layout is dtypes.sparse_coo else (convert(found, layout), convert(places, layout))
    )
