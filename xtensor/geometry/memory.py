"""What of its storage a tensor touches: extent, bounds, overlap."""

from __future__ import annotations

from math import prod
from typing import Literal

from ..xla.cache import bounded
from .layout import LARGEST, GeometryLike, Ints, is_non_overlapping_and_dense


def storage_extent(g: GeometryLike) -> tuple[int, int]:
    """The half-open range of element indices that a tensor touches; empty at its offset for an empty tensor."""
    sizes, strides, offset = g
    if 0 in sizes:
        return offset, offset
    last = offset
    for size, stride in zip(sizes, strides):
        last += (size - 1) * stride
    return offset, last + 1


def storage_nbytes(sizes: Ints, strides: Ints, itemsize: int, offset: int = 0) -> int:
    """The bytes a storage must have to hold this tensor; 0 for an empty one."""
    if 0 in sizes:
        return 0
    needed = (storage_extent((sizes, strides, offset))[1]) * itemsize
    if needed > LARGEST or min(sizes, default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(sizes)} and strides={list(strides)}"
        )
    return needed


def check_in_storage(g: GeometryLike, itemsize: int, nbytes: int) -> None:
    """Raise PyTorch's RuntimeError where a tensor reaches beyond a storage of `nbytes` bytes."""
    sizes, strides, offset = g
    needed = storage_nbytes(sizes, strides, itemsize, offset)
    if needed > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {needed} are out of bounds for storage of size {nbytes}"
        )


Overlap = Literal["NO", "YES", "TOO_HARD"]
OverlapStatus = Literal["FULL", "PARTIAL", "NO", "TOO_HARD"]


@bounded(8192)
def has_internal_overlap(sizes: Ints, strides: Ints) -> Overlap:
    """Whether two elements share a place: `YES` only for an expanded dimension, `TOO_HARD` where it takes a search."""
    if is_non_overlapping_and_dense(sizes, strides):
        return "NO"
    for size, stride in zip(sizes, strides):
        if stride == 0 and size > 1:
            return "YES"
    return "TOO_HARD"


def overlap_status(
    a: GeometryLike, b: GeometryLike, a_itemsize: int = 1, b_itemsize: int = 1
) -> OverlapStatus:
    """How two different tensors of ONE storage share memory; `TOO_HARD` unless both are dense."""
    if 0 in a[0] or 0 in b[0]:
        return "NO"
    if not is_non_overlapping_and_dense(a[0], a[1]) or not is_non_overlapping_and_dense(b[0], b[1]):
        return "TOO_HARD"
    a_start, b_start = a[2] * a_itemsize, b[2] * b_itemsize
    a_end, b_end = a_start + prod(a[0]) * a_itemsize, b_start + prod(b[0]) * b_itemsize
    if a_start == b_start and a_end == b_end:
        return "FULL" if a[1] == b[1] else "PARTIAL"
    return "PARTIAL" if a_start < b_end and b_start < a_end else "NO"


_INTERNAL_OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)
INPUT_OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


def assert_no_internal_overlap(sizes: Ints, strides: Ints) -> None:
    """Refuse a destination in which an expanded dimension stores several elements in one place."""
    if has_internal_overlap(sizes, strides) == "YES":
        raise RuntimeError(_INTERNAL_OVERLAP)


def assert_no_partial_overlap(
    a: GeometryLike, b: GeometryLike, a_itemsize: int = 1, b_itemsize: int = 1
) -> None:
    """Refuse a destination that shares part of its memory with an input of the same storage (pointwise operators)."""
    if overlap_status(a, b, a_itemsize, b_itemsize) == "PARTIAL":
        raise RuntimeError(INPUT_OVERLAP)


def assert_no_overlap(a: GeometryLike, b: GeometryLike, a_itemsize: int = 1, b_itemsize: int = 1) -> None:
    """Refuse a destination that shares any memory with an input of the same storage (indexing operators)."""
    if overlap_status(a, b, a_itemsize, b_itemsize) in ("PARTIAL", "FULL"):
        raise RuntimeError(INPUT_OVERLAP)
