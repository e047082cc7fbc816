"""Nested tensors in PyTorch's files: of what parts they are written, and made again."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..nested.layout import NestedTensor, holding, is_jagged
from ..nested.rows import Pieces, ragged
from ..ops.create.ingest import tensor as tensor_of
from ..tensor import Tensor

__all__ = ["Ignored", "is_jagged", "is_nested", "jagged_of", "jagged_parts", "strided_of", "strided_parts"]


class Ignored:
    """What PyTorch's compiler keeps beside the sizes of a jagged tensor."""

    def __setstate__(self, state: Any) -> None:
        """Nothing of it is kept."""


def strided_parts(nested: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The elements, and the sizes, strides and beginnings of rows."""
    rows = nested._nested_rows.sizes
    strides = [[math.prod(row[d + 1 :]) for d in range(len(row))] for row in rows]
    counts = [math.prod(row) for row in rows]
    starts = [sum(counts[:i]) for i in range(len(rows))]
    numbers = [tensor_of(part, dtype=dtypes.int64) for part in ([list(r) for r in rows], strides, starts)]
    return nested._nested_values.detach().reshape(-1), *numbers  # pyright: ignore[reportReturnType]


def strided_of(values: Any, sizes: Any, strides: Any, offsets: Any) -> Tensor:
    """A strided nested tensor of such parts; TypeError where they do not go together."""
    if not all(isinstance(part, Tensor) for part in (values, sizes, strides, offsets)):
        raise TypeError("a nested tensor is rebuilt from tensors")
    rows = [tuple(map(int, row)) for row in sizes.tolist()] if sizes.dim() == 2 else []
    counts = [math.prod(row) for row in rows]
    starts = [int(start) for start in offsets.tolist()]
    plain = [[math.prod(row[d + 1 :]) for d in range(len(row))] for row in rows]
    fits = values.dim() == 1 and len(starts) == len(rows) and all(n >= 0 for row in rows for n in row)
    if not fits or starts != [sum(counts[:i]) for i in range(len(rows))] or sum(counts) != values.numel():
        raise TypeError("a nested tensor whose rows do not lie one after the other")
    if rows and strides.tolist() != plain:
        raise TypeError("a nested tensor whose rows are not contiguous")
    return holding(values, Pieces(tuple(rows), sizes.shape[1] + 1 if sizes.dim() == 2 else 1))


def jagged_parts(nested: Any) -> dict[str, Any]:
    """What PyTorch names the parts of a jagged tensor."""
    rows = nested._nested_rows
    return {
        "values": nested._nested_values.detach(),
        "offsets": rows.offsets,
        "lengths": rows.lengths,
        "_ragged_idx": nested._nested_dim,
        "_metadata_cache": {},
        "requires_grad": nested.requires_grad,
    }


def jagged_of(parts: Any) -> Any:
    """A jagged tensor of its parts by name; TypeError where they do not go together."""
    if type(parts) is not dict:
        raise TypeError("a jagged tensor is rebuilt from a dict")
    held: list[Any] = [parts.get(name) for name in ("values", "offsets", "lengths")]
    values, offsets, lengths = held
    dim = parts.get("_ragged_idx", 1)
    fits = isinstance(values, Tensor) and isinstance(offsets, Tensor) and type(dim) is int
    fits = fits and offsets.dim() == 1 and 1 <= dim <= values.dim()
    if not fits or not (lengths is None or isinstance(lengths, Tensor)):
        raise TypeError("a jagged tensor whose parts do not go together")
    places = offsets.tolist()
    limit = values.shape[dim - 1]
    steps = all(isinstance(p, int) for p in places) and places == sorted(places)
    if not places or not steps or places[0] < 0 or places[-1] > limit:
        raise TypeError("a jagged tensor whose offsets are not in order")
    if lengths is not None and any(
        n < 0 or start + n > limit for start, n in zip(places, lengths.tolist(), strict=False)
    ):
        raise TypeError("a jagged tensor whose lengths are out of range")
    made = holding(values, ragged(offsets, lengths), dim)
    return made.requires_grad_() if parts.get("requires_grad") is True else made


def is_nested(tensor: Any) -> bool:
    """Whether this is a jagged or strided nested tensor."""
    return isinstance(tensor, NestedTensor)
