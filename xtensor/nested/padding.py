"""Jagged tensors as dense ones with padding, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..nn.functional import pad
from ..ops.index.masks import where
from ..tensor import Tensor
from .layout import JAGGED, NestedTensor, handles, values_of, with_values
from .rows import Ragged

__all__ = ["packed", "padded", "without_holes"]


def without_holes(nested: NestedTensor, name: str) -> NestedTensor:
    """The tensor; RuntimeError where its rows leave values out."""
    if nested._nested_rows.lengths is not None:
        raise RuntimeError(f"{name}(): not supported for nested tensors with holes")
    return nested


def mask_at(rows: Ragged, at: int, dims: int, place: Any) -> Tensor:
    """Which places of the padded form hold values, in a shape that broadcasts to it."""
    inside = rows.padding(place)[1]
    return inside.reshape([rows.count, *[1] * (at - 1), rows.high, *[1] * (dims - at - 1)])


def padded(nested: NestedTensor, fill: Any) -> Tensor:
    """The dense form, as long as the longest row, with a number where rows have ended."""
    rows, at, dims = nested._nested_rows, nested._nested_dim, nested.dim()
    values = values_of(nested)
    place = values.device
    if not values.shape[at - 1]:
        sizes = list(values.shape)
        sizes[at - 1] = rows.high
        return values.new_full((rows.count, *sizes), fill)
    found = values.index_select(at - 1, rows.padding(place)[0])
    found = found.unflatten(at - 1, (rows.count, rows.high)).movedim(at - 1, 0)
    return where(mask_at(rows, at, dims, place), found, values.new_full((), fill))


def packed(dense: Tensor, rows: Ragged, at: int) -> Any:
    """A jagged tensor of what a padded one has within rows."""
    flat = dense.movedim(at, 1).flatten(0, 1)
    values = flat.index_select(0, rows.packing(dense.device, dense.shape[at]))
    return with_values(values.movedim(0, at - 1), rows, at)


@handles(JAGGED, "to_padded_tensor")
def to_padded_tensor(
    func: Any, self: NestedTensor, padding: float, output_size: Sequence[int] | None = None
) -> Tensor:
    """The dense form of a jagged tensor, of the sizes asked for where there are any: rows are cut to them."""
    made = padded(without_holes(self, "to_padded_tensor"), padding)
    at = self._nested_dim
    if output_size is not None and output_size[at] != made.shape[at]:
        longer = int(output_size[at]) - int(made.shape[at])
        if longer < 0:
            return made.narrow(at, 0, int(output_size[at]))
        return pad(made, [0, 0] * (self.dim() - at - 1) + [0, longer], value=padding)
    return made
