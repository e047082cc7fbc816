"""The views of `shapes` as fresh tensors: `transpose_copy` and the rest, and splits that nothing shares."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...operators.attach import attach_methods
from ...operators.declare import composite
from ...operators.functions.overloads import numpy_names, of_tensors
from ...storage import UNREAD, Counter
from ...tensor import Tensor, alias, asks_grad, edge_of, plain_edge, sizes_of, strides_of
from .reinterpret import view_as_complex, view_as_real
from .shapes import as_strided, slice_view

__all__ = [
    "alias_copy",
    "as_strided_copy",
    "detach_copy",
    "diagonal_copy",
    "expand_copy",
    "narrow_copy",
    "permute_copy",
    "select_copy",
    "slice_copy",
    "split_copy",
    "split_with_sizes_copy",
    "squeeze_copy",
    "t_copy",
    "transpose_copy",
    "unbind_copy",
    "unfold_copy",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsqueeze_copy",
    "view_as_complex_copy",
    "view_as_real_copy",
    "view_copy",
]


def fresh(view: Tensor) -> Tensor:
    """The values of a view in memory of their own, row by row."""
    return view.clone(memory_format=dtypes.contiguous_format)


def all_fresh(views: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple([fresh(v) for v in views])


def into_each(function: Callable[..., tuple[Tensor, ...]]) -> Any:
    """Give a function of several results `out=`, with which it returns None, as PyTorch's do."""
    writing = composite(out="exact")(function)

    @functools.wraps(function)
    def with_out(*args: Any, out: Sequence[Tensor] | None = None, **kwargs: Any) -> Any:
        if out is None:
            return function(*args, **kwargs)
        writing(*args, out=out, **kwargs)
        return None

    return with_out


def loose(input: Tensor, views: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Parts that may be written in place: over the same memory, but views of nothing, with versions of their own."""
    parts = []
    for v in views:
        if type(v._xt_storage.raw) in UNREAD:
            return all_fresh(views) if asks_grad(input) else tuple(views)
        part = alias(v, tuple(sizes_of(v)), tuple(strides_of(v)), v.storage_offset())
        part._xt_view.counter = Counter()  # pyright: ignore[reportOptionalMemberAccess]
        part._xt_edge = plain_edge(edge_of(v))
        parts.append(part)
    return tuple(parts)


@composite(out="exact")
def alias_copy(input: Tensor) -> Tensor:
    """A copy, for which gradients pass.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(input)


@composite(out="exact")
def as_strided_copy(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `as_strided`.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(as_strided(input, size, stride, storage_offset))


@composite(out="exact")
def detach_copy(input: Tensor) -> Tensor:
    """A copy without a history.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(input.detach())


@composite(out="exact")
def diagonal_copy(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `diagonal`.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(input.diagonal(offset, dim1, dim2))


@composite(out="exact")
def expand_copy(input: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    """A copy of `expand`.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(input.expand(size))


@composite(out="exact")
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of `narrow`.

    Shape: `input` `(*)`, result `(*)` with size `length` along `dim`.

    Raises: TypeError for arguments of other kinds; RuntimeError where `dim` is out of range, or more is asked for
    than there is; IndexError where `start` is out of range.
    """
    if dim >= input.dim() > 0:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false."
        )
    return fresh(input.narrow(dim, start, length))


@composite(out="exact")
def permute_copy(input: Tensor, dims: Sequence[int]) -> Tensor:
    """A copy of `permute`.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(input.permute(dims))


@composite(out="exact")
def select_copy(input: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `select`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    return fresh(input.select(dim, index))


@composite(out="exact")
def slice_copy(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of `input[start:end:step]` in one dimension.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    return fresh(slice_view(input, dim, start, end, step))


@composite(out="exact")
def squeeze_copy(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """A copy of `squeeze`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    return fresh(input.squeeze() if dim is None else input.squeeze(dim))


@composite(out="exact")
def t_copy(input: Tensor) -> Tensor:
    """A copy of `t`.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(input.t())


@composite(out="exact")
def transpose_copy(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A copy of `transpose`.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(input.transpose(dim0, dim1))


@composite(out="exact")
def unfold_copy(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A copy of `Tensor.unfold`.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(input.unfold(dimension, size, step))


@composite(out="exact")
def unsqueeze_copy(input: Tensor, dim: int) -> Tensor:
    """A copy of `unsqueeze`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    return fresh(input.unsqueeze(dim))


@composite(out="exact")
def view_copy(input: Tensor, size: Any) -> Tensor:
    """A copy of `view`: other sizes, or the bytes as another dtype.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(input.view(size))


@composite(out="exact")
def view_as_real_copy(input: Tensor) -> Tensor:
    """A copy of `view_as_real`.

    Raises: TypeError for arguments of other kinds.
    """
    return fresh(view_as_real(input))


@composite(out="exact")
def view_as_complex_copy(input: Tensor) -> Tensor:
    """A copy of `view_as_complex`.

    Raises: TypeError for arguments of other kinds; RuntimeError for complex, bool and integer tensors.
    """
    return fresh(view_as_complex(input))


@numpy_names
@into_each
def split_copy(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Copies of `split`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    return all_fresh(input.split(split_size, dim))


@into_each
def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Copies of `split_with_sizes`.

    Raises: IndexError where `dim` is out of range.
    """
    return all_fresh(input.split_with_sizes(split_sizes, dim))


@into_each
def unbind_copy(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Copies of `unbind`.

    Raises: IndexError where `dim` is out of range.
    """
    return all_fresh(input.unbind(dim))


@of_tensors()
@numpy_names
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`, each part of which may be written in place, which no graph sees but its own.

    Shape: `input` `(*)`; pieces of the same sizes but along `dim`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    return loose(input, input.chunk(chunks, dim))


@of_tensors()
@numpy_names
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split`, each part of which may be written in place, which no graph sees but its own.

    Shape: `input` `(*)`; pieces of the same sizes but along `dim`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    return loose(input, input.split(split_size, dim))


@of_tensors()
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes`, each part of which may be written in place, which no graph sees but its own.

    Shape: `input` `(*)`; pieces of the same sizes but along `dim`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    return loose(input, input.split_with_sizes(split_sizes, dim))


attach_methods(narrow_copy, unsafe_chunk, unsafe_split, unsafe_split_with_sizes)
