"""Indexing of the NumPy model: basic and advanced reads, `__setitem__`, and the index and scatter families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.strided import (
    DTYPES,
    Strided,
    Undefined,
    broadcast,
    broadcast_strides,
    fail,
    result_strides,
    view_strides,
)
from tests.fuzz.strided_writes import (
    Elementwise,
    convert,
    need_defined,
    refuse_internal_overlap,
    refuse_overlap,
    sane,
)

Picker = list[Any]  # per dimension an index Strided, or None
COVERED = "covered by the mask before it"


def need_index_dtype(index: Strided, names: tuple[str, ...], torch_class: str = "RuntimeError") -> None:
    if index.dtype.name not in names:
        fail(torch_class, f"expected dtype {names} for index")


def in_range(index: np.ndarray, size: int, torch_class: str, wrap: bool) -> np.ndarray:
    if index.size and (index.min() < (-size if wrap else 0) or index.max() >= size):
        fail(torch_class, f"index is out of bounds for dimension with size {size}")
    return np.where(index < 0, index + size, index) if wrap else index


def prefix_ones_dropped(x: Any) -> Any:
    first = next((d for d, s in enumerate(x.sizes) if s != 1), len(x.sizes))
    return x.view(x.sizes[first:])


REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "mean": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    "amax": np.maximum,
    "amin": np.minimum,
}


class Indexing(Elementwise):
    """Elementwise with PyTorch's indexing."""

    # Subscripts.

    def _tensor_of(self, sequence: Any) -> Any:
        array = np.asarray(sequence)
        if not array.size:
            array = array.astype(np.int64)
        return self.fresh(array, dtype=DTYPES["bool" if array.dtype == bool else "int64"])

    def _apply(self, index: Any) -> tuple[Any, Picker]:
        """The view that the ints, slices, Nones and ellipsis leave, and the index tensors over its dimensions."""
        if isinstance(index, list) and not all(isinstance(i, (bool, int)) for i in index):
            index = tuple(index)  # a list that holds more than numbers is read as a tuple
        items = list(index) if isinstance(index, tuple) else [index]
        items = [self._tensor_of(i) if isinstance(i, list) else i for i in items]
        taken = 0
        for item in items:
            if isinstance(item, Strided):
                taken += item.dim() if item.dtype.name in ("bool", "uint8") else 1
            elif not isinstance(item, bool) and item is not None and item is not Ellipsis:
                taken += 1
        if taken > self.dim():
            fail("IndexError", f"too many indices for tensor of dimension {self.dim()}")
        result: Any = self
        picks: dict[int, Any] = {}
        dim = 0
        for item in items:
            if item is Ellipsis:
                dim += self.dim() - taken
            elif item is None:
                result = result.unsqueeze(dim)
                dim += 1
            elif isinstance(item, bool) or (
                isinstance(item, Strided) and not item.sizes and item.dtype.name in ("bool", "uint8")
            ):
                on = bool(item if isinstance(item, bool) else item.values())
                result = result.unsqueeze(dim)
                picks[dim] = self._tensor_of([0] if on else [])
                dim += 1
            elif isinstance(item, int) or (
                isinstance(item, Strided) and not item.sizes and item.dtype.category == 1
            ):
                number = item if isinstance(item, int) else int(item.values())
                size = result.sizes[dim]
                if not -size <= number < size:
                    fail(
                        "IndexError", f"index {number} is out of bounds for dimension {dim} with size {size}"
                    )
                result = result.select(dim, number)
            elif isinstance(item, slice):
                if item.step is not None and item.step <= 0:
                    fail("ValueError", "step must be greater than zero")
                if dim >= result.dim():
                    fail("IndexError", "slice() cannot be applied to a 0-dim tensor.")
                start, stop, _ = item.indices(result.sizes[dim])
                if (start, stop, item.step or 1) != (0, result.sizes[dim], 1):
                    result = result.slice(dim, start, max(start, stop), item.step or 1)
                dim += 1
            elif isinstance(item, Strided):
                if item.dtype.name not in ("bool", "uint8", "int32", "int64"):
                    fail("IndexError", "tensors used as indices must be long, int, byte or bool tensors")
                picks[dim] = item
                covered = item.dim() if item.dtype.name in ("bool", "uint8") else 1
                picks.update((dim + k, COVERED) for k in range(1, covered))
                dim += covered
            else:
                fail("IndexError", "only integers, slices, ellipsis, None and tensors are valid indices")
        top = max(picks, default=-1)
        return result, [picks.get(d) for d in range(top + 1)]

    def _pick(self, picks: Picker, value: Strided | None = None) -> tuple[np.ndarray, Any]:
        """The storage places that index tensors pick from `self`, and the memory order of the result.

        `value` is what will be written there, refused before the indices are looked at.
        """
        picks = self._expand_masks(picks)
        if len(picks) > self.dim():
            fail("IndexError", "too many indices")
        given = [p for p in picks if p is not None]
        try:
            shape = np.broadcast_shapes(*(p.shape for p in given))
        except ValueError:
            fail("IndexError", "shape mismatch: indexing tensors could not be broadcast together")
        indexed = [d for d, p in enumerate(picks) if p is not None]
        together = indexed == list(range(indexed[0], indexed[-1] + 1))
        rest = [d for d in range(self.dim()) if d not in indexed]
        lead = indexed[0] if together else 0
        sizes = (*(self.sizes[d] for d in rest[:lead]), *shape, *(self.sizes[d] for d in rest[lead:]))
        if value is not None and value.dtype is not self.dtype:
            fail("RuntimeError", "Index put requires the source and destination dtypes match")
        if value is not None and not fits(value.sizes, sizes):
            fail("RuntimeError", "shape mismatch: value tensor cannot be broadcast to indexing result")
        strides = self._pick_strides(picks, shape, sizes, [self.strides[d] for d in rest], lead)
        if 0 in sizes and (0 in shape or all(self.sizes[d] for d in indexed)):
            return np.zeros(sizes, dtype=np.int64), strides  # nothing is read, so nothing is checked
        arrays: list[Any] = [slice(None)] * len(picks)
        for d in indexed:
            arrays[d] = in_range(np.broadcast_to(picks[d].array, shape), self.sizes[d], "IndexError", True)
        return self.places()[tuple(arrays)], strides

    def _expand_masks(self, picks: Picker) -> Picker:
        result: Picker = []
        for p in picks:
            if p is COVERED:
                continue
            if p is None:
                result.append(None)
            elif p.dtype.name in ("bool", "uint8"):
                if not p.sizes:
                    raise Undefined("a mask of rank 0 in index_put_")
                at = len(result)
                for k, size in enumerate(p.sizes):
                    if at + k >= self.dim() or size != self.sizes[at + k]:
                        fail(
                            "IndexError",
                            "The shape of the mask does not match the shape of the indexed tensor",
                        )
                result.extend(_Pick(a, (len(p.sizes),)) for a in np.nonzero(p.values()))
            else:
                result.append(_Pick(p.values().astype(np.int64), p.strides))
        return result

    @staticmethod
    def _pick_strides(
        picks: Picker, shape: tuple[int, ...], sizes: tuple[int, ...], rest: list[int], lead: int
    ) -> tuple[int, ...]:
        """The memory order of a picked result, which the strides of source and indices decide together."""
        operands = [(sizes, (*rest[:lead], *(0 for _ in shape), *rest[lead:]))]
        padded = ((1,) * lead, (1,) * (len(rest) - lead))
        for p in picks:
            if p is not None:
                whole = (*padded[0], *shape, *padded[1])
                strides = view_strides(shape, broadcast_strides(p.shape, p.strides, shape), whole)
                assert strides is not None
                operands.append((whole, strides))
        return result_strides(sizes, operands)

    def __getitem__(self, index: Any) -> Any:
        view, picks = self._apply(index)
        if not picks:
            return view if view is not self else self.alias(self.sizes, self.strides)
        places, strides = view._pick(picks)
        return self.fresh(self._read(places), strides)

    def _read(self, places: np.ndarray) -> np.ndarray:
        usable = self.storage.buffer.size // self.dtype.itemsize * self.dtype.itemsize
        found = self.storage.buffer[:usable].view(self.dtype.np)
        found = found[places] if places.size else np.zeros(places.shape, self.dtype.np)
        found = found.conj() if self.conjugated else found
        return -found if self.negated else found

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is False:
            return
        if isinstance(value, Strided):
            source: Any = value
        elif isinstance(value, (bool, int, float, complex)):
            self._need_number(value)
            source = self.fresh(convert(np.asarray(value), self.dtype))
        else:
            fail("TypeError", "can't assign to a tensor")
        if index is True:
            index = None
        view, picks = self._apply(index)
        if picks:
            view.index_put_(picks, prefix_ones_dropped(source) if source.sizes[:1] == (1,) else source)
            return
        if source.sizes == view.sizes:
            view.copy_(source)
            return
        if not source.sizes:
            view.fill_(source)
            return
        source = prefix_ones_dropped(source)
        if not fits(source.sizes, view.sizes):
            fail("RuntimeError", "expand: the number of sizes provided must be greater or equal")
        view.copy_(source.expand(view.sizes))

    # The index family.

    def _put(self, places: np.ndarray, values: np.ndarray, accumulate: bool) -> None:
        """Stores or adds values at places, refusing duplicates whose order would matter."""
        values = np.broadcast_to(values, places.shape)
        flat, moved = places.ravel(), values.ravel()
        if accumulate:
            kept, inverse = np.unique(flat, return_inverse=True)
            total = sane(self._read(kept))
            for i, value in zip(inverse.tolist(), sane(moved), strict=True):
                total[i] = (total[i] or value) if self.dtype.category == 0 else total[i] + value
            self.store(sane(total), kept)
            return
        final: dict[int, Any] = {}
        for place, value in zip(flat.tolist(), moved, strict=True):
            if place in final and not (final[place] == value):
                raise Undefined("duplicate places with different values")
            final[place] = value
        self.store(moved, flat)

    def index_put_(self, indices: Any, values: Any, accumulate: bool = False) -> Any:
        picks = list(indices)
        for p in picks:
            if isinstance(p, Strided):
                need_index_dtype(p, ("bool", "uint8", "int32", "int64"), "IndexError")
        masks = [p for p in picks if isinstance(p, Strided)]
        as_fill = not accumulate and values.numel() == 1 and len(masks) == 1 and masks[0].dtype.name == "bool"
        if not as_fill:
            for other in (values, *masks):
                refuse_overlap(self, other, full_too=True)
        places, _ = self._pick(picks, None if as_fill else values)
        if as_fill:
            self._need_number(values.values().reshape(-1)[0].item())
            need_defined(self, values, *masks)
        else:
            if places.size and len(np.unique(self.places())) < self.numel():
                raise Undefined("an overlapping destination")
            need_defined(self, values, *masks, aligned=False)
        self._put(places, convert(values.values(), self.dtype), accumulate)
        return self

    def _index_vector(self, dim: int, index: Strided, torch_class: str) -> int:
        dim = self.dimension(dim)
        if index.dim() > 1:
            fail(torch_class, "Index is supposed to be a vector")
        return dim

    def _rows(self, dim: int, index: np.ndarray) -> np.ndarray:
        places = self.places() if self.sizes else self.places().reshape(1)
        return np.take(places, index.reshape(-1), axis=dim)

    def _extent(self, dim: int) -> int:
        return self.sizes[dim] if self.sizes else 1

    def _guard(self, *others: Any) -> None:
        refuse_internal_overlap(self)
        for other in others:
            refuse_overlap(self, other, full_too=True)
        need_defined(self, *others, aligned=False)

    def index_add_(self, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
        dim = self._index_vector(dim, index, "IndexError")
        need_index_dtype(index, ("int32", "int64"))
        if source.dtype is not self.dtype or source.sizes != self._with(dim, index.numel()):
            fail("RuntimeError" if source.sizes else "*", "index_add_(): source tensor shape or dtype")
        self._guard(index, source)
        if not self.numel():
            raise Undefined("which indices are checked when there is nothing to add to")
        where = in_range(index.values(), self._extent(dim), "RuntimeError", False)
        values = source.values()
        if alpha != 1:
            values = values * np.asarray(alpha).astype(self.dtype.np)
        self._put(self._rows(dim, where), values.reshape(self._rows(dim, where).shape), True)
        return self

    def _with(self, dim: int, length: int) -> tuple[int, ...]:
        return (*self.sizes[:dim], length, *self.sizes[dim + 1 :]) if self.sizes else ()

    def index_copy_(self, dim: int, index: Any, source: Any) -> Any:
        self.dimension(dim)
        refuse_internal_overlap(self)
        refuse_overlap(self, source, full_too=True)
        dim = self._index_vector(dim, index, "IndexError")
        if not source.sizes and index.numel() != 1:
            fail("IndexError", "index_copy_(): When source is scalar, index should have one element")
        if source.dim() != self.dim() and self.sizes and source.sizes:
            fail("IndexError", "index_copy_(): dimensionality must match")
        need_index_dtype(index, ("int64",))
        if source.dtype is not self.dtype:
            fail(
                "RuntimeError" if source.sizes else "*",
                "index_copy_(): self and source expected the same dtype",
            )
        if self.dim() != source.dim() or not self.sizes:
            raise Undefined("index_copy_ between scalars and vectors")
        if without(source.sizes, dim) != without(self.sizes, dim):
            fail("RuntimeError", "index_copy_(): Source/destination tensor must have same slice shapes.")
        if source.sizes[dim] != index.numel():
            fail("IndexError", "index_copy_(): Number of indices should be equal to source.size(dim)")
        self._guard(index, source)
        if not self.numel():
            raise Undefined("which indices are checked when there is nothing to copy")
        where = in_range(index.values(), self._extent(dim), "IndexError", False)
        self._put(self._rows(dim, where), source.values(), False)
        return self

    def index_fill_(self, dim: int, index: Any, value: Any) -> Any:
        if isinstance(value, Strided):
            if value.sizes:
                fail("RuntimeError", "index_fill_ only supports a 0-dimensional value tensor")
            value = value.values()
        need_index_dtype(index, ("int64",), "IndexError")
        if isinstance(value, complex) and self.dtype.category != 3:
            fail(
                "RuntimeError",
                "index_fill_(): Converting complex Scalar to non-complex type is not supported",
            )
        dim = self._index_vector(dim, index, "RuntimeError")
        if len(np.unique(self.places())) < self.numel():
            raise Undefined("an overlapping destination")
        need_defined(self, index, aligned=False)
        filling = convert(np.asarray(value), self.dtype)
        if not self.numel():
            self.storage.version += 1
            return self
        where = in_range(index.values(), self._extent(dim), "IndexError", True)
        self._put(self._rows(dim, where), filling, False)
        return self

    def index_reduce_(self, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True) -> Any:
        if reduce not in ("prod", "mean", "amax", "amin"):
            fail("RuntimeError", "index_reduce(): Expected reduce to be one of prod, mean, amax or amin")
        dim = self._index_vector(dim, index, "IndexError")
        need_index_dtype(index, ("int32", "int64"))
        if source.dtype is not self.dtype or source.sizes != self._with(dim, index.numel()):
            fail("RuntimeError" if source.sizes else "*", "index_reduce_(): source tensor shape or dtype")
        if self.dtype.category in (0, 3):
            raise Undefined("index_reduce_ of bool or complex")
        self._guard(index, source)
        where = in_range(index.values(), self._extent(dim), "IndexError", False)
        rows = self._rows(dim, where)
        self._reduce(rows, source.values().reshape(rows.shape), reduce, include_self)
        return self

    def _reduce(self, places: np.ndarray, values: np.ndarray, reduce: str, include_self: bool) -> None:
        kept, inverse = np.unique(places.ravel(), return_inverse=True)
        combine = REDUCTIONS[reduce]
        total = sane(self._read(kept))
        counts = np.full(kept.shape, 1 if include_self else 0)
        for i, value in zip(inverse.tolist(), sane(values.ravel()), strict=True):
            total[i] = value if counts[i] == 0 else combine(total[i], value)
            counts[i] += 1
        if reduce == "mean":
            total = total // counts if self.dtype.category == 1 else total / counts.astype(total.dtype)
        self.store(sane(total.astype(self.dtype.np)), kept)

    def index_select(self, dim: int, index: Any) -> Any:
        dim = self._index_vector(dim, index, "IndexError")
        need_index_dtype(index, ("int32", "int64"))
        if not self.sizes and index.numel() != 1:
            raise Undefined("index_select of a scalar by a vector")
        where = in_range(index.values(), self._extent(dim), "IndexError", False)
        values = self._read(self._rows(dim, where))
        return self.fresh(values if self.sizes else values.reshape(()))

    # The gather and scatter family.

    def _along(self, dim: int, index: Any, limit: tuple[int, ...], gather: bool = False) -> np.ndarray:
        """The places of `self` that an index tensor names along `dim`."""
        if max(index.dim(), 1) != max(self.dim(), 1):
            fail("RuntimeError", "Index tensor must have the same number of dimensions")
        sizes = index.sizes or (1,)
        mine, other = self.sizes or (1,), limit or (1,)
        for d, size in enumerate(sizes):
            if (d != dim and size > mine[d]) or (not gather and size > other[d]):
                fail("RuntimeError", "Expected index to be no larger than self apart from dimension and src")
        where = in_range(index.values().reshape(sizes), mine[dim], "RuntimeError", False)
        coordinates = list(np.indices(sizes))
        coordinates[dim] = where
        return self.places().reshape(mine)[tuple(coordinates)]

    def gather(self, dim: int, index: Any) -> Any:
        dim = self.dimension(dim)
        need_index_dtype(index, ("int32", "int64"))
        if not index.numel():
            return self.fresh(np.zeros(index.sizes, self.dtype.np))
        return self.fresh(self._read(self._along(dim, index, (), gather=True)).reshape(index.sizes))

    def _scatter_places(self, dim: int, index: Any, src: Any) -> np.ndarray | None:
        dim = self.dimension(dim)
        need_index_dtype(index, ("int32", "int64"))
        if isinstance(src, Strided):
            if src.dtype is not self.dtype:
                fail("RuntimeError", "scatter(): Expected self.dtype to be equal to src.dtype")
        else:
            self._need_number(src)
        if isinstance(src, Strided) and index.numel() and max(src.dim(), 1) != max(index.dim(), 1):
            fail("RuntimeError", "Index tensor must have the same number of dimensions as src tensor")
        self._guard(index, src)
        if not index.numel():
            return None
        limit = src.sizes if isinstance(src, Strided) else index.sizes
        return self._along(dim, index, limit)

    def _scatter_values(self, index: Any, src: Any) -> np.ndarray:
        sizes = index.sizes or (1,)
        if not isinstance(src, Strided):
            return np.broadcast_to(convert(np.asarray(src), self.dtype), sizes)
        return src.values().reshape(src.sizes or (1,))[tuple(slice(0, s) for s in sizes)]

    def scatter_(self, dim: int, index: Any, src: Any, reduce: str | None = None) -> Any:
        places = self._scatter_places(dim, index, src)
        if places is None:
            self.storage.version += 1
        elif reduce is None:
            self._put(places, self._scatter_values(index, src), False)
        else:
            if self.dtype.category == 0:
                raise Undefined("scatter_ with a reduction of bool")
            self._reduce(
                places, self._scatter_values(index, src), {"add": "sum", "multiply": "prod"}[reduce], True
            )
        return self

    def scatter_add_(self, dim: int, index: Any, src: Any) -> Any:
        places = self._scatter_places(dim, index, src)
        if places is None:
            self.storage.version += 1
        else:
            self._put(places, self._scatter_values(index, src), True)
        return self

    def scatter_reduce_(self, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Any:
        self.dimension(dim)
        if reduce not in REDUCTIONS:
            fail("RuntimeError", "reduce argument must be either sum, prod, mean, amax or amin")
        if self.dtype.category in (0, 3):
            raise Undefined("scatter_reduce_ of bool or complex")
        places = self._scatter_places(dim, index, src)
        if places is None:
            self.storage.version += 1
        else:
            self._reduce(places, self._scatter_values(index, src), reduce, include_self)
        return self

    def take_along_dim(self, indices: Any, dim: int | None = None) -> Any:
        need_index_dtype(indices, ("int64",))
        if dim is None:
            return self.view(-1).gather(0, indices.view(-1))
        if indices.dim() != self.dim():
            fail(
                "RuntimeError",
                "torch.take_along_dim(): input and indices should have the same number of dimensions",
            )
        if not self.sizes:
            raise Undefined("take_along_dim of a scalar")
        dim = self.dimension(dim)
        values = indices.values()
        if values.size and (values.min() < -self.sizes[dim] or values.max() >= self.sizes[dim]):
            raise Undefined("an index that wraps around")
        shape = list(broadcast(without(self.sizes, dim), without(indices.sizes, dim)))
        whole, picked = list(shape), list(shape)
        whole.insert(dim, self.sizes[dim])
        picked.insert(dim, indices.sizes[dim])
        where = np.broadcast_to(np.where(values < 0, values + self.sizes[dim], values), picked)
        return self.fresh(np.take_along_axis(np.broadcast_to(self.values(), whole), where, axis=dim))

    def take(self, index: Any) -> Any:
        need_index_dtype(index, ("int64",))
        where = in_range(index.values(), self.numel(), "IndexError", True)
        return self.fresh(self._read(self.places().reshape(-1)[where]) if where.size else where)

    def put_(self, index: Any, source: Any, accumulate: bool = False) -> Any:
        need_index_dtype(index, ("int64",))
        if source.dtype is not self.dtype:
            fail("RuntimeError", "put_(): self and source expected to have the same dtype")
        if source.numel() != index.numel():
            fail("IndexError", "put_(): Expected source and index to have the same number of elements")
        self._guard(index, source)
        where = in_range(index.values().reshape(-1), self.numel(), "IndexError", True)
        if where.size:
            self._put(self.places().reshape(-1)[where], source.values().reshape(-1), accumulate)
        else:
            self.storage.version += 1
        return self

    # Masks.

    def _mask(self, mask: Any) -> np.ndarray:
        if mask.dtype.name != "bool":
            fail("RuntimeError", "only supports boolean masks")
        if broadcast(self.sizes, mask.sizes) != self.sizes:
            fail("RuntimeError", "output with shape doesn't match the broadcast shape")
        return np.broadcast_to(mask.values(), self.sizes)

    def masked_fill_(self, mask: Any, value: Any) -> Any:
        if isinstance(value, Strided):
            if value.sizes:
                fail("RuntimeError", "masked_fill_ only supports a 0-dimensional value tensor")
            value = value.values()
        else:
            self._need_number(value)
        where = self._mask(mask)
        refuse_overlap(self, mask)
        need_defined(self, mask)
        self.store(np.where(where, convert(np.asarray(value), self.dtype), self.values()))
        return self

    def masked_scatter_(self, mask: Any, source: Any) -> Any:
        where = self._mask(mask)
        if source.dtype is not self.dtype:
            fail("RuntimeError", "masked_scatter: expected self and source to have same dtypes")
        self._guard(mask)
        need_defined(self, source, aligned=False)
        values, count = self.values(), int(where.sum())
        if source.numel() < count:
            fail("RuntimeError", "Number of elements of source < number of ones in mask")
        values[where] = source.values().reshape(-1)[:count]
        self.store(values)
        return self

    def masked_select(self, mask: Any) -> Any:
        if mask.dtype.name != "bool":
            fail("RuntimeError", "masked_select: expected BoolTensor for mask")
        shape = broadcast(self.sizes, mask.sizes)
        return self.fresh(np.broadcast_to(self.values(), shape)[np.broadcast_to(mask.values(), shape)])


class _Pick:
    """An index array with the strides of the tensor it came from."""

    def __init__(self, array: np.ndarray, strides: tuple[int, ...]) -> None:
        self.array = array
        self.shape = array.shape
        self.strides = strides


def fits(sizes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a value of `sizes` broadcasts to `shape`."""
    return len(sizes) <= len(shape) and all(
        s in (1, t) for s, t in zip(sizes, shape[len(shape) - len(sizes) :], strict=True)
    )


def without(sizes: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return (*sizes[:dim], *sizes[dim + 1 :])
