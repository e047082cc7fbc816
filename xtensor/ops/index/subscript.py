"""What stands between the brackets of `x[...]`: the basic part as views, the rest as index arrays per dimension.

Ints, slices, `...`, None and bools become view operators, so metadata only. What is left is one `Pick` per dimension
(or None): a tensor, or a host array made from a list or a NumPy array.
"""

from __future__ import annotations

import operator
from typing import Any

import jax
import numpy as np

from ... import checks, dtypes
from ...engine import modes
from ...geometry import Geometry, contiguous_strides
from ...operators.below.dispatching import asked_about, dispatching
from ...operators.views import alias_of, geometry_of, layout_of, view
from ...tensor import Tensor, array_of, edge_of, sizes_of, wrap
from ...xla.levels import KINDS
from ...xla.symbolic import Inconclusive, at_most, is_open
from ..create.ingest import as_tensor, host_array, infer_dtype
from ..shape.shapes import select, slice_view, unsqueeze

__all__ = [
    "BASIC",
    "COVERED",
    "PLACES",
    "Pick",
    "is_mask",
    "select_first",
    "slice_first",
    "subscript",
    "view_at",
    "whole",
]

Pick = Tensor | np.ndarray[Any, Any] | None

# Stands in a list of picks for the further dimensions of a mask of several.
COVERED: Any = object()

SELECT, SLICE, UNSQUEEZE = select.operator, slice_view.operator, unsqueeze.operator
MAX = 2**63 - 1
INT = {int}
BASIC = frozenset((int, np.int64, np.int32, slice))
"""What takes a dimension, and makes a view."""
PLACES = BASIC | {type(None), type(...)}


@view(name="alias", method=False)
def whole(g: Geometry) -> Geometry:
    """The view of all elements."""
    return Geometry(*g)


ALIAS = whole.operator


def is_mask(pick: Any) -> bool:
    """Whether an index array says yes or no to every element: bool, or bytes as PyTorch once had."""
    dtype = pick.dtype
    return dtype is dtypes.bool or dtype is dtypes.uint8 or dtype == np.bool_ or dtype == np.uint8


def wants_tuple(index: Any) -> bool:
    """Whether a sequence that is no tuple is read as one: NumPy's old rule, which PyTorch still follows."""
    if not isinstance(index, (list, range, str)) or len(index) >= 32:
        return False
    kinds = (Tensor, list, tuple, range, str, bytes, np.ndarray, slice)
    return any(isinstance(item, kinds) or item is None or item is ... for item in index)


def as_items(index: Any) -> tuple[Any, ...]:
    if isinstance(index, tuple):
        return tuple(index)
    if wants_tuple(index):
        checks.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch "
            "2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
            "x[xtensor.tensor(seq)], which will result either in an error or a different result",
            UserWarning,
        )
        return tuple(index)
    return (index,)


def from_sequence(data: Any) -> np.ndarray[Any, Any]:
    """A list or a NumPy array as an index array: bools and bytes are masks, everything else becomes int64."""
    if isinstance(data, np.ndarray):
        if data.dtype.kind not in "biufc":
            raise TypeError(
                f"can't convert np.ndarray of type {data.dtype.type.__module__}.{data.dtype.type.__name__}. The only "
                "supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
                "uint64, uint32, uint16, uint8, and bool."
            )
        if data.dtype == np.bool_ or data.dtype == np.uint8:
            return np.array(data)
        if data.dtype.kind == "c":
            checks.warn("Casting complex values to real discards the imaginary part", UserWarning)
        return np.array(data.real, np.int64)
    if type(data) is list and set(map(type, data)) == INT:
        try:
            return np.array(data, np.int64)
        except OverflowError:
            raise ValueError("Overflow when unpacking long long") from None
    try:
        found = infer_dtype(data)
    except ValueError:
        # Text below the first level, which `tensor` would report as a dimension.
        raise TypeError("new(): invalid data type 'str'") from None
    if found is dtypes.bool or found is dtypes.uint8:
        return host_array(data, found)
    return host_array(data, dtypes.int64)


def as_array(item: Any) -> Any:
    """An item that must be an index array, or IndexError."""
    if isinstance(item, np.ndarray):
        return from_sequence(item)
    if isinstance(item, jax.Array):
        return wrap(item, shared=True)
    if hasattr(item, "__dlpack__") and not isinstance(item, np.generic):  # another library's
        return as_tensor(item)
    if isinstance(item, (list, tuple, range, str, bytes)) or (
        hasattr(item, "__getitem__") and hasattr(item, "__len__") and not isinstance(item, (dict, np.generic))
    ):
        return from_sequence(item)
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
        f"{checks.type_name(item)})"
    )


def as_number(item: Any) -> int:
    number = item if type(item) is int else operator.index(item)
    if not -MAX - 1 <= number <= MAX:
        raise ValueError("Overflow when unpacking long long")
    return number


def bound(value: Any, default: int) -> int:
    if value is None:
        return default
    if type(value) is Tensor:
        value = operator.index(value)
    elif type(value) is not int:
        if is_open(value):
            return value
        if not hasattr(value, "__index__"):
            raise TypeError("slice indices must be integers or None or have an __index__ method")
        value = operator.index(value)
    return max(min(value, MAX), -MAX - 1)


def slice_bounds(item: slice) -> tuple[int, int, int]:
    step = bound(item.step, 1)
    if step <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    return bound(item.start, 0), bound(item.stop, MAX), step


def place_of(number: int, dim: int, size: Any) -> int:
    """An index counted from the front; IndexError outside of its dimension. An open size takes any."""
    at = number + size if number < 0 else number
    try:
        inside = 0 <= at < size
    except Inconclusive:
        inside = True
    if not inside:
        if not is_open(number):
            as_number(number)
        raise out_of_bounds(number, dim, size)
    return at


def out_of_bounds(number: int, dim: int, size: Any) -> IndexError:
    return IndexError(f"index {number} is out of bounds for dimension {dim} with size {size}")


def zero_dim() -> IndexError:
    return IndexError(
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
        "0-dim tensor to a number"
    )


def select_first(self: Tensor, number: int) -> Tensor:
    """`x[number]` for an int."""
    v = self._xt_view
    if v is None:
        sizes, offset = self._xt_storage.raw.shape, 0
        strides = contiguous_strides(sizes)
    else:
        sizes, strides, offset = v.sizes, v.strides, v.offset
    if not sizes:
        raise zero_dim() if number == 0 else out_of_bounds(number, 0, 0)
    at = place_of(number, 0, sizes[0])
    return alias_of(SELECT, self, (sizes[1:], strides[1:], offset + at * strides[0]), (0, at))


def view_at(self: Tensor, items: tuple[Any, ...]) -> Tensor:
    """`x[items]` for what makes views alone; one view where no graph wants to see each."""
    sizes, strides, offset = layout_of(self)
    dots = items.count(...)
    ndim, taken = len(sizes), len(items) - dots - items.count(None)
    if taken > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    if dots > 1 or is_followed(self):
        view = subscript(self, items)[0]
        return alias_of(ALIAS, self, (sizes, strides, offset), ()) if view is self else view
    shape: list[Any] = []
    steps: list[Any] = []
    dim = 0
    for item in items:
        if type(item) is slice:
            stride = strides[dim]
            begin, length, step = span(item, sizes[dim])
            offset += begin * stride
            shape.append(length)
            steps.append(stride * step)
            dim += 1
        elif item is None:
            shape.append(1)
            steps.append(sizes[dim] * strides[dim] if dim < ndim else 1)
        elif item is ...:
            rest = dim + ndim - taken
            shape += sizes[dim:rest]
            steps += strides[dim:rest]
            dim = rest
        else:
            number, size = item if type(item) is int else int(item), sizes[dim]
            if type(size) is not int or not -size <= number < size:
                return subscript(self, items)[0]
            offset += (number + size if number < 0 else number) * strides[dim]
            dim += 1
    if dim < ndim:
        shape += sizes[dim:]
        steps += strides[dim:]
    return alias_of(SELECT, self, (tuple(shape), tuple(steps), offset), ())


def is_followed(tensor: Tensor) -> bool:
    """Whether a graph has to see each view of a tensor."""
    if tensor._xt_edge is None and tensor._xt_view is None:
        return False
    return not modes.state.mode & modes.NO_GRAD and edge_of(tensor) is not None


def slice_first(self: Tensor, item: slice) -> Tensor:
    """`x[item]` for a slice."""
    sizes, strides, offset = layout_of(self)
    if not sizes:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    begin, length, step = span(item, sizes[0])
    stride = strides[0]
    if begin:
        offset += begin * stride
    if step != 1:
        strides = (stride * step, *strides[1:])
    # What the node keeps; there is none without a graph.
    args = () if self._xt_view is None and self._xt_edge is None else (0, *slice_bounds(item))
    return alias_of(SLICE, self, ((length, *sizes[1:]), strides, offset), args)


def span(item: slice, size: Any) -> tuple[Any, Any, Any]:
    """Where a slice of a dimension begins, how many elements it has, and how far apart they are."""
    try:
        begin, end, step = item.indices(size)
    except (TypeError, Inconclusive):  # an open size, or what is no number
        begin = end = step = 0
    if step == 1:
        return begin, end - begin if end > begin else 0, 1
    if step > 1:
        return begin, (end - begin + step - 1) // step if end > begin else 0, step
    (length,), (step,), begin = SLICE.make(((size,), (1,), 0), 0, *slice_bounds(item))
    return begin, length, step


def specified(items: tuple[Any, ...]) -> int:
    """How many dimensions the items take."""
    count = 0
    for item in items:
        if isinstance(item, Tensor):
            count += item.dim() if is_mask(item) else 1
        elif item is not None and item is not ... and type(item) is not bool:
            count += 1
    return count


def subscript(self: Tensor, index: Any) -> tuple[Tensor, list[Any]]:
    """The view that the basic parts of an index make, and the picks over its first dimensions."""
    items = as_items(index)
    ndim = len(sizes_of(self))
    taken = specified(items)
    if taken > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    g = geometry_of(self)
    steps: list[tuple[Any, Any, tuple[Any, ...]]] = []
    picks: list[Any] = []
    dim = 0
    for place, item in enumerate(items):
        if type(item) is bool:
            pick: Any = item
        elif isinstance(item, slice):
            start, stop, step = slice_bounds(item)
            if start != 0 or step != 1 or dim >= len(g[0]) or (stop != MAX and not at_most(g[0][dim], stop)):
                g = SLICE.make(g, dim, start, stop, step)
                steps.append((SLICE, g, (dim, start, stop, step)))
            dim += 1
            continue
        elif item is None:
            g = UNSQUEEZE.make(g, dim)
            steps.append((UNSQUEEZE, g, (dim,)))
            dim += 1
            continue
        elif item is ...:
            dim += ndim - taken
            continue
        else:
            pick = item_or_number(item)
            if type(pick) is int or is_open(pick):
                size = g[0][dim] if dim < len(g[0]) else 0
                at = place_of(pick, place, size)
                g = SELECT.make(g, dim, at)
                steps.append((SELECT, g, (dim, at)))
                continue
        if type(pick) is bool:
            g = UNSQUEEZE.make(g, dim)
            steps.append((UNSQUEEZE, g, (dim,)))
            pick = np.zeros(1 if pick else 0, np.int64)
        picks += [None] * (dim - len(picks))
        picks.append(pick)
        if is_mask(pick):
            picks += [COVERED] * (pick.ndim - 1)
        dim = len(picks)
    return apply(self, steps), picks


def item_or_number(item: Any) -> Any:
    """An index array of at least one dimension; an int or a bool for what stands for one."""
    if type(item) is int:
        return as_number(item)
    if not isinstance(item, Tensor):
        if is_open(item):
            return item
        if isinstance(item, (np.integer,)) or (isinstance(item, int) and hasattr(item, "__index__")):
            return as_number(item)
        item = as_array(item)
    if item.ndim == 0:
        if modes.state.transforms and isinstance(item, Tensor) and type(array_of(item)) in KINDS:
            return item  # one for each sample
        dtype = item.dtype
        if is_mask(item):
            return bool(value_of(item))
        integral = dtype.kind in "iu" if isinstance(dtype, np.dtype) else dtype.is_integral
        if integral:
            return int(value_of(item))
    return item


def value_of(item: Any) -> Any:
    """The number in a tensor without dimensions: a visit to the device."""
    return np.asarray(array_of(item) if isinstance(item, Tensor) else item).item()


def apply(self: Tensor, steps: list[tuple[Any, Any, tuple[Any, ...]]]) -> Tensor:
    """The view after all steps; one view per step only where the graph or the profiler wants to see them."""
    if not steps:
        return self
    mode = modes.state.mode
    if mode & (modes.PROFILING | modes.DISPATCH_MODE) or (dispatching and asked_about((self,))):
        for op, _, args in steps:
            self = op.function(self, *args)
        return self
    if len(steps) == 1 or mode & modes.NO_GRAD or edge_of(self) is None:
        op, g, args = steps[-1]
        return alias_of(op, self, g, args)
    for op, g, args in steps:
        self = alias_of(op, self, g, args)
    return self
