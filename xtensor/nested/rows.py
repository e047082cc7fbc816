"""How the rows of a nested tensor lie one after the other in its values: where each begins, and how long it is."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as np

from ..ops.create.ingest import from_numpy
from ..tensor import Tensor, array_of

__all__ = ["NestedInt", "Pieces", "Ragged", "ragged"]

NUMBERS = itertools.count(1)
KNOWN: weakref.WeakValueDictionary[tuple[int, int], Ragged] = weakref.WeakValueDictionary()
"""The rows of offsets and lengths that are in use: tensors with the same offsets have the same size."""


class NestedInt:
    """The size of a ragged dimension: equal to itself alone, at least 2 to whom compares, and times a number, as strides are.

    Differs from PyTorch: it is no `SymInt`.
    """

    _xt_is_size = True

    def __init__(self, number: int, factor: int = 1) -> None:
        self.number, self.factor = number, factor

    def __repr__(self) -> str:
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and (other.number, other.factor) == (self.number, self.factor)

    def __hash__(self) -> int:
        return hash((self.number, self.factor))

    def __mul__(self, times: int) -> NestedInt:
        return NestedInt(self.number, self.factor * times)

    __rmul__ = __mul__

    def __ge__(self, other: Any) -> bool:
        if self == other or (isinstance(other, int) and other <= 2):
            return True
        raise ValueError("ge: relation is indeterminate")

    def __gt__(self, other: Any) -> bool:
        return self >= other + 1 if isinstance(other, int) else not self >= other

    def __le__(self, other: Any) -> bool:
        return True if self == other else not self > other

    def __lt__(self, other: Any) -> bool:
        return not self >= other


class Ragged:
    """The rows of a jagged tensor.

    offsets: where each row begins, and the end. lengths: how long each is, None where a row ends with the next one's beginning.
    size: the size of the ragged dimension. low, high: the least and the greatest length, as far as they were given.
    """

    def __init__(self, offsets: Tensor, lengths: Tensor | None, low: int | None, high: int | None) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.size = NestedInt(next(NUMBERS))
        edges = np.asarray(array_of(offsets)).astype(np.int64)
        self.starts = edges[:-1]
        self.counts = np.diff(edges) if lengths is None else np.asarray(array_of(lengths)).astype(np.int64)
        self.count = len(self.starts)
        least = int(self.counts.min()) if self.count else 0
        self.low = least if low is None else low
        self.high = int(self.counts.max(initial=0)) if high is None else high
        self._there: dict[Any, Tensor] = {}

    def told(self, name: str, array: Any, place: Any) -> Tensor:
        found = self._there.get((name, place))
        if found is None:
            found = from_numpy(np.ascontiguousarray(array))
            self._there[name, place] = found = found if place.type == "cpu" else found.to(place)
        return found

    def padding(self, place: Any) -> tuple[Tensor, Tensor]:
        """Which of the values lies at each place of the padded form, flat, and whether one does: `(rows, longest)`."""
        longest = np.arange(self.high)
        inside = longest[None] < self.counts[:, None]
        at = np.where(inside, self.starts[:, None] + longest[None], 0)
        return self.told("at", at.reshape(-1), place), self.told("inside", inside, place)

    def packing(self, place: Any, width: int | None = None) -> Tensor:
        """Which element of the padded form, flat, each value is."""
        width = self.high if width is None else width
        at = [row * width + np.arange(n) for row, n in enumerate(self.counts.tolist())]
        return self.told(f"packing {width}", np.concatenate(at) if at else np.zeros(0, np.int64), place)

    def owners(self, place: Any) -> Tensor:
        """The row of each value."""
        return self.told("owners", np.repeat(np.arange(self.count), self.counts), place)

    def picked(self, place: Any) -> Tensor:
        """Which of the values the rows hold, in order: where there are holes."""
        at = [
            start + np.arange(n) for start, n in zip(self.starts.tolist(), self.counts.tolist(), strict=True)
        ]
        return self.told("picked", np.concatenate(at) if at else np.zeros(0, np.int64), place)

    def sizes(self, place: Any) -> Tensor:
        """How long each row is."""
        return self.told("counts", self.counts, place)


def ragged(
    offsets: Tensor, lengths: Tensor | None = None, low: int | None = None, high: int | None = None
) -> Ragged:
    """The rows of these offsets and lengths: the same object as long as one is in use."""
    key = (id(offsets), id(lengths))
    found = KNOWN.get(key)
    if found is None:
        found = KNOWN[key] = Ragged(offsets, lengths, low, high)
    return found


class Pieces:
    """The rows of a strided nested tensor: tensors of any sizes, flat, one after the other."""

    def __init__(self, sizes: tuple[tuple[int, ...], ...], dims: int) -> None:
        self.sizes, self.dims = sizes, dims

    def regular(self, dim: int) -> int | None:
        """The size of a dimension, -1 the first of each row's; None where rows differ."""
        found = {size[dim] for size in self.sizes}
        return found.pop() if len(found) == 1 else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pieces) and other.sizes == self.sizes

    def __hash__(self) -> int:
        return hash(self.sizes)
