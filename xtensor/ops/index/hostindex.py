"""Indexing whose result's length only the values tell: masks, `nonzero`, `masked_select`.

A mask visits the host once in any case. XLA would then compile a program for every count of true elements that it
meets. So on a CPU, where NumPy reads an array's own memory, what a mask picks is read and written by NumPy: nothing is
compiled, and it is faster. Elsewhere the indices are padded to a power of two and the result is a view of the padded
array, so that programs grow with the logarithm of the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import geometry
from ...engine import RELEASED, modes
from ...engine.graph import Node
from ...operators.index_bounds import check_has_values, on_cpu
from ...operators.inplace import check_inplace, rebase
from ...operators.options import placed
from ...operators.recording import edges_to, noted, recorded
from ...operators.write import bump, check_writable, store
from ...tensor import Tensor, array_of, edge_of, make_view, plain_edge, sizes_of, wrap_strided
from ...xla.levels import KINDS

__all__ = ["Placed", "enabled", "nonzero_columns", "read", "trimmed", "values_of", "write"]


class Placed(NamedTuple):
    """Integer index arrays, one for each of `dims`, broadcasting to `shape`; `masks`: which came from masks."""

    dims: tuple[int, ...]
    arrays: list[Any]
    shape: tuple[int, ...]
    masks: frozenset[int]

    def result_sizes(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes of what they pick out of a tensor of `sizes`."""
        first, last = self.dims[0], self.dims[-1]
        rest = [d for d in range(len(sizes)) if d not in self.dims]
        lead = first if self.dims == tuple(range(first, last + 1)) else 0
        return (*[sizes[d] for d in rest[:lead]], *self.shape, *[sizes[d] for d in rest[lead:]])

    def key(self, ndim: int) -> tuple[Any, ...]:
        """The index as NumPy takes it."""
        found: list[Any] = [slice(None)] * ndim
        for d, a in zip(self.dims, self.arrays, strict=True):
            found[d] = values_of(a)
        return tuple(found)

    def padded(self) -> Placed:
        """The same with zeros up to the next power of two; for one broadcast dimension."""
        (count,) = self.shape
        room = 1 << max(count - 1, 0).bit_length()
        arrays = []
        for a in self.arrays:
            values = values_of(a)
            if values.shape == (count,):
                values = np.concatenate([values, np.zeros(room - count, values.dtype)])
            arrays.append(values)
        return Placed(self.dims, arrays, (room,), self.masks)


def values_of(array: Any) -> np.ndarray[Any, Any]:
    """The values on the host; of a tensor on an accelerator, a transfer."""
    if isinstance(array, np.ndarray):
        return array
    found = array_of(array)
    check_has_values(found)
    return np.asarray(found)


def enabled(array: Any) -> bool:
    """Whether NumPy does the work for this array."""
    return type(array) not in KINDS and on_cpu(array)


def read(view: Tensor, found: Placed, order: Any, title: str = "IndexBackward0") -> Tensor:
    """What the indices pick, as a new tensor; `order`: sizes, strides and memory order, where not contiguous."""
    values = values_of(view)
    if values.size == 0 or 0 in found.shape:  # PyTorch looks at no index where there is nothing to pick
        picked = np.empty(found.result_sizes(tuple(sizes_of(view))), values.dtype)
    else:
        picked = values[found.key(view.dim())]
    if order is None:
        result = placed(np.ascontiguousarray(picked), view.device)
    else:
        sizes, strides, memory = order
        stored = placed(np.ascontiguousarray(picked.transpose(memory)), view.device)
        result = wrap_strided(stored._xt_storage.array, sizes, strides)
    if (edges := edges_to((view,))) is None:
        return result
    return recorded(result, IndexNode(edges, view, found, result, title))


def trimmed(result: Tensor, count: int) -> Tensor:
    """The first `count` rows of a padded result."""
    if edge_of(result) is not None:
        return result.narrow(0, 0, count)
    sizes = (count, *sizes_of(result)[1:])
    storage = result._xt_storage
    result._xt_view = make_view(storage, storage, result.dtype, sizes, geometry.contiguous_strides(sizes), 0)
    return result


def write(view: Tensor, found: Placed, values: Any, accumulate: bool) -> None:
    """Write `values`, a number or a tensor, where the indices say, as an in-place operator."""
    target = array_of(view)
    edge = edge_of(values) if isinstance(values, Tensor) else None
    tracked = not modes.state.mode & modes.NO_GRAD
    if tracked:
        check_inplace(view, edge is not None)
    check_writable(view)
    own = edge_of(view)
    made = np.array(target)
    new = values_of(values) if isinstance(values, Tensor) else np.asarray(values).astype(made.dtype)
    key = found.key(made.ndim)
    if made.size == 0 or 0 in found.shape:  # nothing is touched
        pass
    elif not accumulate:
        made[key] = new
    elif made.dtype == np.bool_:
        np.logical_or.at(made, key, new)
    else:
        np.add.at(made, key, new)
    store(view, placed(made, view.device)._xt_storage.array)
    bump(view, "index_put_", 3)
    if tracked and (own is not None or edge is not None):
        node = IndexPutNode(plain_edge(own), plain_edge(edge), view, found, values, accumulate)
        rebase(view, noted(node))


class HostNode(Node):
    """A node whose gradient is itself taken on the host, by operators that the graph sees.

    found: the indices, None once released. aval: shape and dtype of the result.
    """

    __slots__ = ("aval", "found")
    found: Placed | None

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def _xt_release(self) -> None:
        self.found = None

    def indices(self) -> Placed:
        if self.found is None:
            raise RuntimeError(RELEASED)
        return self.found


class IndexNode(HostNode):
    """Of a read: the gradient goes to where the elements came from."""

    __slots__ = ("sizes", "title")

    def __init__(self, edges: Any, view: Tensor, found: Placed, result: Tensor, title: str) -> None:
        super().__init__(edges)
        self.title = title
        self.sizes = tuple(sizes_of(view))
        self.found = Placed(
            found.dims, [np.array(values_of(a)) for a in found.arrays], found.shape, found.masks
        )
        self.aval = array_of(result).aval

    def name(self) -> str:
        return self.title

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        grad, found = grads[0], self.indices()
        if grad is None or self._xt_edges[0] is None:
            return (None,)
        total = grad.new_zeros(self.sizes)
        write(total, found, grad, True)
        return (total,)


class IndexPutNode(HostNode):
    """Of a write: nothing reaches what was overwritten, and the values take what lies where they went."""

    __slots__ = ("accumulate", "sizes")

    def __init__(
        self, own: Any, edge: Any, view: Tensor, found: Placed, values: Any, accumulate: bool
    ) -> None:
        super().__init__((own, edge))
        self.sizes = tuple(sizes_of(values)) if isinstance(values, Tensor) else ()
        self.found = Placed(
            found.dims, [np.array(values_of(a)) for a in found.arrays], found.shape, found.masks
        )
        self.aval = array_of(view).aval
        self.accumulate = accumulate

    def name(self) -> str:
        return "IndexPutBackward0"

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        grad, found = grads[0], self.indices()
        if grad is None:
            return (None, None)
        own = values = None
        if self._xt_edges[0] is not None:
            own = grad
            if not self.accumulate:
                own = grad.clone()
                write(own, found, 0, False)
        if self._xt_edges[1] is not None:
            values = read(grad, found, None).sum_to_size(self.sizes)
        return (own, values)


def nonzero_columns(values: np.ndarray[Any, Any]) -> Sequence[np.ndarray[Any, Any]]:
    """Per dimension the coordinates of the true elements; one of a number's, as PyTorch counts it."""
    return np.nonzero(values.reshape(1) if values.ndim == 0 else values)
