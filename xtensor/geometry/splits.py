"""Views that split a tensor along a dimension."""

from __future__ import annotations

from collections.abc import Sequence

from ..checks import wrap_dim
from . import views
from .layout import Geometry, GeometryLike


def _pieces(g: GeometryLike, dim: int, lengths: Sequence[int]) -> list[Geometry]:
    """Consecutive parts of dimension `dim`, of these lengths."""
    sizes, strides, offset = g
    before, after, stride = sizes[:dim], sizes[dim + 1 :], strides[dim]
    result = []
    for length in lengths:
        result.append(Geometry((*before, length, *after), strides, offset))
        offset += length * stride
    return result


def split(g: GeometryLike, split_size: int, dim: int = 0) -> list[Geometry]:
    """Parts of `split_size` along `dim`; the last may be smaller."""
    sizes = g[0]
    if not sizes:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    dim = wrap_dim(dim, len(sizes))
    size = sizes[dim]
    if split_size == 0:
        if size:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
            )
        return _pieces(g, dim, [0])
    whole, rest = divmod(size, split_size)
    return _pieces(g, dim, [split_size] * whole + ([rest] if rest or not whole else []))


def split_with_sizes(g: GeometryLike, split_sizes: Sequence[int], dim: int = 0) -> list[Geometry]:
    """Parts of the given sizes along `dim`, which must add up to its size."""
    sizes = g[0]
    if not sizes:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    wrapped = wrap_dim(dim, len(sizes))
    if any(length < 0 for length in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != sizes[wrapped]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {sizes[wrapped]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    return _pieces(g, wrapped, split_sizes)


def chunk(g: GeometryLike, chunks: int, dim: int = 0) -> list[Geometry]:
    """At most `chunks` parts of equal size along `dim`, the last perhaps smaller."""
    sizes = g[0]
    if not sizes:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, len(sizes))
    size = sizes[dim]
    return split(g, (size + chunks - 1) // chunks, dim) if size else _pieces(g, dim, [0] * chunks)


def tensor_split(g: GeometryLike, sections_or_indices: int | Sequence[int], dim: int = 0) -> list[Geometry]:
    """`sections` parts whose sizes differ by at most one, or parts cut at the given indices (as slices clamp them)."""
    sizes = g[0]
    if not sizes:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    dim = wrap_dim(dim, len(sizes))
    if isinstance(sections_or_indices, int):
        sections = sections_or_indices
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        least, extra = divmod(sizes[dim], sections)
        return _pieces(g, dim, [least + 1] * extra + [least] * (sections - extra))
    bounds = [0, *sections_or_indices, sizes[dim]]
    return [views.slice(g, dim, bounds[i], bounds[i + 1]) for i in range(len(bounds) - 1)]


def _named_split(
    name: str, rank: int, g: GeometryLike, dim: int, where: int | Sequence[int]
) -> list[Geometry]:
    sizes = g[0]
    if len(sizes) < rank:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {rank} dimension, but got a tensor with {len(sizes)} "
            "dimensions!"
        )
    if isinstance(where, int) and (where == 0 or sizes[dim] % where):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {sizes[dim]} is not "
            f"divisible by the split_size {where}!"
        )
    return tensor_split(g, where, dim)


def hsplit(g: GeometryLike, sections_or_indices: int | Sequence[int]) -> list[Geometry]:
    """Split by columns: along dimension 1, or 0 of a vector; a count must divide the size."""
    return _named_split("hsplit", 1, g, 0 if len(g[0]) == 1 else 1, sections_or_indices)


def vsplit(g: GeometryLike, sections_or_indices: int | Sequence[int]) -> list[Geometry]:
    """Split by rows, along dimension 0 of at least two; a count must divide the size."""
    return _named_split("vsplit", 2, g, 0, sections_or_indices)


def dsplit(g: GeometryLike, sections_or_indices: int | Sequence[int]) -> list[Geometry]:
    """Split by depth, along dimension 2 of at least three; a count must divide the size."""
    return _named_split("dsplit", 3, g, 2, sections_or_indices)


def unbind(g: GeometryLike, dim: int = 0) -> list[Geometry]:
    """Every slice along `dim`, without that dimension."""
    sizes, strides, offset = g
    if not sizes and dim in (0, -1):
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, len(sizes))
    rest_sizes, rest_strides = sizes[:dim] + sizes[dim + 1 :], strides[:dim] + strides[dim + 1 :]
    return [Geometry(rest_sizes, rest_strides, offset + i * strides[dim]) for i in range(sizes[dim])]
