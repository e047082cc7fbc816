"""Nested tensors, `torch.nested`: rows of different sizes as one tensor, jagged or strided."""

from __future__ import annotations

from . import display, padding, pieces, products, reductions, shapes
from .construct import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
