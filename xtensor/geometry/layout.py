"""Sizes and strides: which are dense, contiguous, channels last, and which a fresh result takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal, NamedTuple

from ..xla.cache import bounded
from ..xla.symbolic import Inconclusive, is_above

Ints = tuple[int, ...]
MemoryFormat = Literal["contiguous_format", "channels_last", "channels_last_3d", "preserve_format"]
LARGEST = 2**63 - 1


class Geometry(NamedTuple):
    """Where a tensor's elements lie in its storage, in elements of its dtype."""

    sizes: Ints
    strides: Ints
    offset: int


GeometryLike = Geometry | tuple[Ints, Ints, int]
make = tuple.__new__  # a NamedTuple's own constructor costs twice as much


def numel(sizes: Ints) -> int:
    """The number of elements of a tensor of these sizes."""
    return prod(sizes)


def check_numel(sizes: Sequence[int]) -> None:
    """Refuse sizes whose product, taken from the first, leaves 64 bits, and negative ones.

    Differs from PyTorch: a negative size next to a size of 0 is refused too.
    """
    total = 1
    for size in sizes:
        total *= size
        try:
            fits = size >= 0 and total <= LARGEST
        except Inconclusive:
            fits = True  # of an open size
        if not fits:
            raise RuntimeError("numel: integer multiplication overflow")


# --- layout: which strides are dense, contiguous, channels last ----------------------------------------------------


@bounded(8192)
def contiguous_strides(sizes: Ints) -> Ints:
    """Row-major strides; a dimension of size 0 counts as 1, as in PyTorch."""
    strides = []
    step = 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size or 1
    return tuple(reversed(strides))


_CHANNELS_LAST_ORDER = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}
_RANK = {"channels_last": 4, "channels_last_3d": 5}


def channels_last_strides(sizes: Ints) -> Ints:
    """Strides of a channels-last tensor, NCHW (4 dimensions) or NCDHW (5); a size of 0 multiplies, as in PyTorch."""
    strides = [0] * len(sizes)
    step = 1
    for dim in _CHANNELS_LAST_ORDER[len(sizes)]:
        strides[dim] = step
        step *= sizes[dim]
    return tuple(strides)


def format_strides(sizes: Ints, memory_format: MemoryFormat) -> Ints:
    """Strides of a new tensor in `contiguous_format`, `channels_last` (4-d) or `channels_last_3d` (5-d)."""
    if memory_format == "contiguous_format":
        return contiguous_strides(sizes)
    rank = _RANK.get(memory_format)
    if rank is None:
        raise RuntimeError("unsupported memory format Preserve")
    if len(sizes) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format} format")
    return channels_last_strides(sizes)


def is_contiguous(sizes: Ints, strides: Ints, memory_format: MemoryFormat = "contiguous_format") -> bool:
    """Whether the elements lie in memory in the order of `memory_format`, without gaps."""
    rank = _RANK.get(memory_format)
    if rank is not None:
        return len(sizes) == rank and _is_dense_in(sizes, strides, _CHANNELS_LAST_ORDER[rank])
    if strides == contiguous_strides(sizes) or 0 in sizes:
        return True
    return _is_dense_in(sizes, strides, range(len(sizes) - 1, -1, -1))


_CHANNELS_LAST_MEMORY = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


def channels_last_order(sizes: Ints, strides: Ints) -> Ints | None:
    """The dimensions from the slowest, of a tensor whose strides tell that its channels lie last, gaps or not; else None.

    As in PyTorch, what may be read either way has its channels first.
    """
    order = _CHANNELS_LAST_MEMORY.get(len(sizes))
    if order is None or strides[1] == 0:
        return None
    least = 0
    for dim in order[::-1]:
        if sizes[dim] == 0 or strides[dim] < least or (dim == 0 and least == strides[1]):
            return None
        least = strides[dim] * sizes[dim]
    return order


def _is_dense_in(sizes: Ints, strides: Ints, order: Sequence[int]) -> bool:
    """Whether the dimensions, fastest first in `order`, are packed; the strides of sizes of 1 do not matter."""
    expected = 1
    for dim in order:
        size = sizes[dim]
        if size != 1:
            if strides[dim] != expected:
                return False
            expected *= size
    return True


@bounded(8192)
def is_non_overlapping_and_dense(sizes: Ints, strides: Ints) -> bool:
    """Whether the elements fill one block of memory, each place once, in some order of the dimensions."""
    if 0 in sizes:
        return True
    expected = 1
    for stride, size in sorted((st, s) for s, st in zip(sizes, strides) if s != 1):
        if stride != expected:
            return False
        expected *= size
    return True


@bounded(8192)
def preserve_strides(sizes: Ints, strides: Ints) -> Ints:
    """The strides that `clone` and `empty_like` give under `preserve_format`."""
    if is_non_overlapping_and_dense(sizes, strides):
        return strides
    order = _fastest_first(sizes, [strides])
    result = [0] * len(sizes)
    step = 1
    for dim in order:
        result[dim] = step
        step *= sizes[dim] or 1
    return tuple(result)


def _fastest_first(shape: Ints, operands: Sequence[Ints]) -> list[int]:
    """Dimensions from fastest to slowest by the operands' strides, the first operand that tells them apart deciding.

    The comparison is partial (a broadcast dimension says nothing), so this is PyTorch's insertion sort, not `sorted`.
    """
    perm = list(range(len(shape) - 1, -1, -1))
    for start in range(1, len(perm)):
        here = start
        for other in range(start - 1, -1, -1):
            fast, slow = perm[other], perm[here]
            verdict = 0
            for strides in operands:
                a, b = strides[fast], strides[slow]
                if a == 0 or b == 0:
                    continue
                if a != b:
                    verdict = 1 if is_above(a, b) else -1
                    break
                if is_above(shape[fast], shape[slow]):
                    verdict = 1
                    break
            if verdict > 0:
                perm[other], perm[here] = slow, fast
                here = other
            elif verdict < 0:
                break
    return perm


@bounded(8192)
def iterator_strides(shape: Ints, operands: tuple[tuple[Ints, Ints], ...]) -> Ints:
    """Strides of the fresh result of a pointwise operator over operands of these (sizes, strides).

    `shape` is the broadcast shape. A Python scalar counts as an operand of sizes `()`, as it does in PyTorch.
    """
    if all(sizes == shape for sizes, _ in operands):
        if all(is_contiguous(sizes, strides) for sizes, strides in operands):
            return contiguous_strides(shape)
        if all(is_contiguous(sizes, strides, "channels_last") for sizes, strides in operands):
            return channels_last_strides(shape)
        first = operands[0][1]
        if all(
            strides == first and is_non_overlapping_and_dense(sizes, strides) for sizes, strides in operands
        ):
            return first
    ndim = len(shape)
    aligned = []
    for sizes, strides in operands:
        lead = ndim - len(sizes)
        own = [0 if sizes[i] == 1 and shape[lead + i] != 1 else strides[i] for i in range(len(sizes))]
        aligned.append((0,) * lead + tuple(own))
    order = _fastest_first(shape, aligned)
    if order == list(range(ndim - 1, -1, -1)):
        return contiguous_strides(shape)
    result = [0] * ndim
    step = 1
    for dim in order:
        result[dim] = step
        step *= shape[dim]
    return tuple(result)
