"""Where the elements of a sparse tensor lie, as arithmetic on the host: how many there are decides the shapes of everything else.

A pattern is the coordinates of a tensor's elements, int64 of shape `(sparse dims, nnz)`, and what is worked out of them once: their
order, which of them are equal, and rows of bounded length for products.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Pattern", "Rows", "compressed", "counted", "expanded"]

Coordinates = np.ndarray[Any, Any]


class Merged(NamedTuple):
    """Equal coordinates made one.

    pattern: of those that are left, in order. order: elements so that equal ones follow each other. starts: where each group begins
    in that order. unique: whether no two were equal. sorted: whether they lay in order already.
    """

    pattern: Pattern
    order: Coordinates
    starts: Coordinates
    unique: bool
    sorted: bool

    @property
    def target(self) -> Coordinates:
        """For each element its place among those that are left."""
        sizes = np.diff(np.append(self.starts, len(self.order)))
        found = np.empty(len(self.order), np.int64)
        found[self.order] = np.repeat(np.arange(len(self.starts)), sizes)
        return found


class Rows(NamedTuple):
    """The elements of a matrix in rows of bounded length, those that are longer in several.

    slots: for each place the element there, their number where there is none; `(rows, length)`. columns: of each element's
    column; 0 where there is none. rows: which row of the matrix each is, or None where each is its own.
    """

    slots: Coordinates
    columns: Coordinates
    rows: Coordinates | None


class Pattern:
    """The coordinates of elements in a tensor of some sizes (of its sparse dimensions)."""

    def __init__(self, indices: Coordinates, sizes: Sequence[int]) -> None:
        self.indices = np.asarray(indices)
        self.sizes = tuple(sizes)

    @property
    def nnz(self) -> int:
        """How many elements there are."""
        return self.indices.shape[1]

    @functools.cached_property
    def flat(self) -> Coordinates:
        """For each element its number in row-major order."""
        found = np.zeros(self.nnz, np.int64)
        for index, size in zip(self.indices, self.sizes, strict=True):
            found = found * size + index
        return found

    @functools.cached_property
    def merged(self) -> Merged:
        """Equal coordinates made one, in row-major order."""
        flat = self.flat
        steps = np.diff(flat)
        if (steps > 0).all():
            every = np.arange(self.nnz)
            return Merged(self, every, every, True, True)
        order = np.argsort(flat, kind="stable")
        ranked = flat[order]
        first = np.ones(self.nnz, bool)
        first[1:] = ranked[1:] != ranked[:-1]
        starts = np.flatnonzero(first)
        unique = len(starts) == self.nnz
        pattern = Pattern(self.indices[:, order[starts]], self.sizes)
        return Merged(pattern, order, starts, unique, bool((steps >= 0).all()))

    def find(self, other: Pattern) -> tuple[Coordinates, Coordinates]:
        """For each element of another pattern whether it is here too, and its number here; of patterns in order without equals."""
        at = np.searchsorted(self.flat, other.flat)
        at = np.minimum(at, max(self.nnz - 1, 0))
        found = self.flat[at] == other.flat if self.nnz else np.zeros(other.nnz, bool)
        return found, at

    @functools.cached_property
    def transposed(self) -> Pattern:
        """Rows and columns exchanged, of a matrix; the elements stay in their order."""
        return Pattern(self.indices[::-1], self.sizes[::-1])

    @functools.cached_property
    def rows(self) -> Rows:
        """The elements of a matrix in rows of bounded length."""
        return rows_of(self.indices[0], self.indices[1], self.sizes[0])


def rows_of(row: Coordinates, column: Coordinates, count: int) -> Rows:
    """The elements of a matrix with `count` rows in rows of bounded length: at most four times their mean."""
    nnz = len(row)
    lengths = np.bincount(row, minlength=count)
    order = np.arange(nnz) if nnz < 2 or (np.diff(row) >= 0).all() else np.argsort(row, kind="stable")
    starts = np.cumsum(lengths) - lengths
    within = np.arange(nnz) - starts[row[order]]
    longest = int(lengths.max(initial=0))
    bound = max(1, min(longest, 4 * math.ceil(nnz / max(1, int((lengths > 0).sum())))))
    # Lengths are rounded up, so that tensors which differ by a few elements share their programs.
    bound = min(longest, rounded(bound)) if longest > bound else rounded(longest)
    bound = max(bound, 1)
    pieces = np.maximum(1, -(-lengths // bound))
    first = np.cumsum(pieces) - pieces
    total = int(pieces.sum())
    slots = np.full((total, bound), nnz, np.int32)
    columns = np.zeros((total, bound), np.int32)
    at = first[row[order]] + within // bound
    slots[at, within % bound] = order
    columns[at, within % bound] = column[order]
    rows = None if total == count else np.repeat(np.arange(count, dtype=np.int32), pieces)
    return Rows(slots, columns, rows)


def rounded(count: int) -> int:
    """A length, up to an eighth longer: the next of four steps between powers of two."""
    if count <= 8:
        return count
    step = 1 << (count.bit_length() - 3)
    return -(-count // step) * step


def expanded(pointers: Coordinates) -> Coordinates:
    """For each element its row, from where each row begins."""
    return np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))


def counted(rows: Coordinates, count: int) -> Coordinates:
    """Where each row begins, from the row of each element."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int64)


def compressed(pattern: Pattern) -> tuple[Coordinates, Coordinates]:
    """Where each row of a matrix in order begins, and the column of each element."""
    return counted(pattern.indices[0], pattern.sizes[0]), pattern.indices[1]
