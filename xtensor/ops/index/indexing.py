"""Reading and writing by index: `x[...]`, `x[...] = y`, `index_put`.

Basic indices are views (`subscript.py`). Index arrays go to the programs `index` and `index_put`, as runtime operands:
neither their values nor those of what is written ever compile. Masks have a length that only their values tell, so
their integer indices are found on the host; see `masks.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ... import checks, devices, dtypes, geometry, lowering
from ...engine import modes
from ...engine.graph import next_sequence_nr
from ...host.numbers import HostNumber, held
from ...host.writes import number_room, write_host
from ...operators import dispatch
from ...operators.arguments import SCALARS
from ...operators.attach import attach_as, attach_methods
from ...operators.below.dispatching import asked_about, dispatching
from ...operators.declare import general
from ...operators.index_bounds import in_bounds, refuse_overlap, remember
from ...operators.inplace import check_inplace, run_inplace
from ...operators.levels.crossing import refuse_dynamic
from ...operators.operator import REGISTRY
from ...operators.options import placed
from ...operators.ordered import run_like, run_ordered
from ...operators.saved import save
from ...operators.schema import Array, Arrays, Operand
from ...operators.views import alias_of, geometry_of
from ...operators.write import bump, check_writable, rewrite, write_out
from ...storage import MetaArray
from ...tensor import (
    ARRAY,
    Tensor,
    array_of,
    asks_grad,
    edge_of,
    operands_array,
    plain_edge,
    recipe_of,
    sizes_of,
    strides_of,
    wrap,
)
from ...xla.cache import bounded
from ...xla.sizes import enabled as sizes_enabled
from ...xla.sizes.terms import varied
from ...xla.x64 import jit
from ..create.creation import full
from ..tensor.conversion import copied_plainly
from . import hostindex
from .hostindex import Placed
from .masks import masked_fill, masked_fill_, settable, shared_dims, warn_of_expanded
from .subscript import (
    ALIAS,
    BASIC,
    COVERED,
    PLACES,
    SLICE,
    UNSQUEEZE,
    is_mask,
    select_first,
    slice_bounds,
    slice_first,
    subscript,
    view_at,
)

__all__ = ["index_put", "index_put_", "masked_select"]


# ---- programs ------------------------------------------------------------------------------------------------------


def narrow_index(index: Array, size: int) -> Array:
    """An index array as XLA likes it: non-negative, and 32 bits wide where the dimension allows."""
    dtype = jnp.int32 if size < 2**31 else jnp.int64
    index = index.astype(dtype)
    return jnp.where(index < 0, index + jnp.asarray(size, dtype), index)


def at(array: Array, indices: Arrays, dims: tuple[int, ...]) -> Any:
    """`array.at[...]` with an index array at each of `dims`; separated ones put their dimensions first, as in NumPy."""
    key: list[Any] = [slice(None)] * array.ndim
    for d, index in zip(dims, indices, strict=True):
        key[d] = narrow_index(index, array.shape[d])
    return array.at[tuple(key)]


SAFE: dict[str, Any] = dict(mode="promise_in_bounds", wrap_negative_indices=False)


@general(
    views="loop",
    derivatives=dict(
        input=lambda grad, indices, input_shape, dims: at(
            jnp.zeros(input_shape, grad.dtype), indices, dims
        ).add(grad, **SAFE)
    ),
)
def index(input: Array, indices: Arrays, *, dims: tuple[int, ...]) -> Array:
    """The elements of `input` that the broadcast index arrays, one for each of `dims`, name."""
    return at(input, indices, dims).get(**SAFE)


@general(
    autocast=dict(accelerator="widest"),
    derivatives=dict(
        input=lambda grad, indices, dims, accumulate: (
            grad if accumulate else at(grad, indices, dims).set(jnp.zeros((), grad.dtype), **SAFE)
        ),
        values=lambda grad, indices, dims: at(grad, indices, dims).get(**SAFE),
    ),
    name="index_put",
    several=False,
    inplace=True,
)
def put(input: Array, indices: Arrays, values: Operand, *, dims: tuple[int, ...], accumulate: bool) -> Array:
    """`input` with `values` at what the index arrays name; with `accumulate`, added there."""
    values = jnp.asarray(values).astype(input.dtype)
    place = at(input, indices, dims)
    if not accumulate:
        return place.set(values, **SAFE)
    if input.dtype == jnp.bool_:
        return place.max(values, **SAFE)
    return place.add(values, **SAFE)


new = object.__new__
INDEX, INDEX_PUT = REGISTRY["index"], REGISTRY["index_put"]


# ---- picks ---------------------------------------------------------------------------------------------------------


def first_outside(found: Placed, sizes: Sequence[int]) -> IndexError:
    """The error for the first element of the broadcast indices that names no place."""
    lengths = [sizes[d] for d in found.dims]
    values = [np.broadcast_to(hostindex.values_of(a), found.shape).reshape(-1) for a in found.arrays]
    outside = np.stack([(v < -n) | (v >= n) for v, n in zip(values, lengths, strict=True)])
    element = int(outside.any(axis=0).argmax())
    which = int(outside[:, element].argmax())
    return IndexError(
        f"index {int(values[which][element])} is out of bounds for dimension {which} with size {lengths[which]}"
    )


def resolve(view: Tensor, picks: Sequence[Any]) -> Placed:
    """Picks as integer index arrays over dimensions of `view`: masks become the places where they hold.

    Everything is checked but the values (`check_places`), which PyTorch looks at last.
    """
    sizes = sizes_of(view)
    dims: list[int] = []
    arrays: list[Any] = []
    trusted: set[int] = set()
    dim = 0
    for pick in picks:
        if pick is COVERED:
            continue
        if pick is None:
            dim += 1
        elif is_mask(pick):
            check_byte(pick)
            check_mask(pick, sizes, dim)
            if isinstance(pick, Tensor):
                refuse_dynamic(pick)
            found = np.nonzero(hostindex.values_of(pick))
            trusted.update(range(len(arrays), len(arrays) + len(found)))
            arrays += found
            dims += range(dim, dim + len(found))
            dim += len(found)
        else:
            if isinstance(pick, Tensor) and pick.dtype is not dtypes.int64 and pick.dtype is not dtypes.int32:
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
            arrays.append(pick)
            dims.append(dim)
            dim += 1
    if dim > len(sizes):
        raise IndexError(f"too many indices for tensor of dimension {len(sizes)} (got {dim})")
    shapes = [shape_of(a) for a in arrays]
    shape = shapes[0]
    if len(shapes) > 1:
        try:
            shape = geometry.broadcast_shapes(*shapes)
        except RuntimeError:
            raise IndexError(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                + ", ".join(str(list(s)) for s in shapes)
            ) from None
    if 0 not in shape:
        if any(sizes[d] == 0 for d in dims):
            raise IndexError("index is out of bounds for dimension with size 0")
    return Placed(tuple(dims), arrays, shape, frozenset(trusted))


def check_places(view: Tensor, found: Placed) -> None:
    """IndexError for an index outside its dimension; nothing is checked where nothing would be touched."""
    sizes = sizes_of(view)
    if 0 in found.shape or any(s == 0 for d, s in enumerate(sizes) if d not in found.dims):
        return
    for i, (d, a) in enumerate(zip(found.dims, found.arrays, strict=True)):
        if i not in found.masks:
            values = a if isinstance(a, np.ndarray) else array_of(a)
            if not in_bounds(values, sizes[d], True):
                raise first_outside(found, sizes)


def shape_of(array: Any) -> tuple[int, ...]:
    return array.shape if isinstance(array, np.ndarray) else tuple(sizes_of(array))


def check_byte(mask: Any) -> None:
    if mask.dtype is dtypes.uint8 or mask.dtype == np.uint8:
        checks.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
            UserWarning,
        )


def check_mask(mask: Any, sizes: Sequence[int], dim: int) -> None:
    shape = shape_of(mask)
    for k, size in enumerate(shape):
        if dim + k >= len(sizes) or sizes[dim + k] != size:
            if dim + k >= len(sizes):
                raise IndexError(f"too many indices for tensor of dimension {len(sizes)}")
            raise IndexError(
                f"The shape of the mask {list(shape)} at index {k} does not match the shape of the indexed tensor "
                f"{list(sizes)} at index {dim + k}"
            )


@bounded(512)
def small_index(data: bytes, shape: tuple[int, ...], dtype: str, place: devices.device) -> Any:
    array = placed(np.frombuffer(data, dtype).reshape(shape), place)._xt_storage.array
    return array


def index_tensor(array: Any, place: devices.device) -> Tensor:
    """An index array as a tensor on the device of what it indexes; those from the host that recur are placed once."""
    if isinstance(array, Tensor):
        if array.device is place:
            return array
        if array.device.type != "cpu":
            raise RuntimeError(
                f"indices should be either on {place} or on the same device as the indexed tensor ({place})"
            )
        return array.to(place)
    if array.nbytes <= 256:
        return wrap(small_index(array.tobytes(), array.shape, array.dtype.str, place), shared=True)
    made = placed(np.ascontiguousarray(array), place)
    if array.size:
        remember(made._xt_storage.array, int(array.min()), int(array.max()))
    return made


# ---- reading -------------------------------------------------------------------------------------------------------


@bounded(4096)
def layout(
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    dims: tuple[int, ...],
    shape: tuple[int, ...],
    indices: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...],
) -> tuple[Any, Any, Any] | None:
    """Sizes, strides and memory order of what index arrays read, or None where it is plainly contiguous."""
    rest = [d for d in range(len(sizes)) if d not in dims]
    together = dims == tuple(range(dims[0], dims[-1] + 1))
    lead = dims[0] if together else 0
    before, after = rest[:lead], rest[lead:]
    result = (*[sizes[d] for d in before], *shape, *[sizes[d] for d in after])
    operands = [(result, (*[strides[d] for d in before], *[0] * len(shape), *[strides[d] for d in after]))]
    for own, steps in indices:
        whole = (*[1] * lead, *shape, *[1] * len(after))
        expanded = geometry.expand((own, steps, 0), shape).strides
        found = geometry.view_strides(shape, expanded, whole)
        operands.append((whole, found if found is not None else geometry.contiguous_strides(whole)))
    made = geometry.iterator_strides(result, tuple(operands))
    if made == geometry.contiguous_strides(result):
        return None
    return result, made, dispatch.memory_order(result, made)


def layout_of(view: Tensor, found: Placed) -> tuple[Any, Any, Any] | None:
    # As is nearly always so; of nothing the dimensions of one lie elsewhere.
    plain = found.dims == (0,) and view._xt_view is None and is_dense(found.arrays[0])
    if plain and 0 not in found.shape and 0 not in sizes_of(view):
        return None
    metas = tuple([(tuple(shape_of(a)), index_strides(a)) for a in found.arrays])
    return layout(tuple(sizes_of(view)), tuple(strides_of(view)), found.dims, found.shape, metas)


def is_dense(array: Any) -> bool:
    """Whether an index array is plainly contiguous."""
    view = None if isinstance(array, np.ndarray) else array._xt_view
    return view is None or view.strides == geometry.contiguous_strides(view.sizes)


def index_strides(array: Any) -> tuple[int, ...]:
    if isinstance(array, np.ndarray):
        return geometry.contiguous_strides(array.shape)
    return tuple(strides_of(array))


def read(view: Tensor, found: Placed, title: str = "IndexBackward0") -> Tensor:
    """What index arrays read from a view, as a new tensor; `title` names the node of a read on the host."""
    check_places(view, found)
    order = layout_of(view, found)
    if found.masks or (varied and moves(view, found)):
        array = view._xt_storage.array
        if not isinstance(array, MetaArray) and hostindex.enabled(array):
            return hostindex.read(view, found, order, title)
    place = view.device
    count = None
    if found.masks and len(found.shape) == 1 and found.dims[0] == 0 and order is None:
        count, found = found.shape[0], found.padded()
    indices = [index_tensor(a, place) for a in found.arrays]
    if order is None:
        result = gathered(view, indices, found.dims)
        return result if count is None or count == found.shape[0] else hostindex.trimmed(result, count)
    return run_ordered(INDEX, (view, indices, found.dims), *order)


SEVERAL = 16
"""Indices from which on their number tells that it varies: fewer are met everywhere."""
MOVED = 1 << 16
"""Elements that are picked on the host where sizes vary."""


def moves(view: Tensor, found: Placed) -> bool:
    """Whether NumPy picks what no gradient is asked of: where the number of indices varies, it takes half as long as a program for several sizes."""
    return (
        modes.state.mode <= 1
        and any(n >= SEVERAL and n in varied for n in found.shape)
        and math.prod(found.result_sizes(tuple(sizes_of(view)))) <= MOVED
        and (view._xt_view is None or math.prod(sizes_of(view)) <= MOVED)  # which is read as a whole
        and (modes.state.mode == 1 or edge_of(view) is None)
        and sizes_enabled()
        and not dispatch.watchers
        and all(
            isinstance(a, np.ndarray) or type(a._xt_storage.array) is ARRAY for a in (view, *found.arrays)
        )
    )


def gathered(view: Tensor, indices: list[Tensor], dims: tuple[int, ...]) -> Tensor:
    """Run `index`; in the default modes without the complete call path, which costs more than the program."""
    mode = modes.state.mode
    if mode > 1 or type(view._xt_storage.raw) is MetaArray:
        return INDEX.call((view, indices, dims))
    if view._xt_view is not None:
        return INDEX.call((view, indices, dims))
    array = operands_array(view)
    arrays = tuple([array_of(i) for i in indices])
    found = INDEX.waiting((dims,))(array, arrays)
    result = wrap(found)
    if mode == 0 and (edge := edge_of(view)) is not None:
        node = new(INDEX.node_class)
        node._xt_edges = (plain_edge(edge),)
        node._xt_sequence_nr = next_sequence_nr()
        node._xt_meta = None
        node.key = (dims,)
        node.shapes = (array.aval.shape,)
        node.targets = (array.aval,)
        node.aval = found.aval
        node.saved = ([save(i, a) for i, a in zip(indices, arrays, strict=True)],)
        result._xt_edge = (node, 0)
    return result


def getitem(self: Tensor, index: Any) -> Tensor:
    """`x[index]`: a view for ints, slices, `...`, None; a copy where there are index arrays, masks or bools."""
    kind = type(index)
    if modes.state.mode <= 1 and not dispatching:
        if kind is int:
            return select_first(self, index)
        if kind is slice:
            return slice_first(self, index)
        if kind is tuple:
            if index and PLACES.issuperset(map(type, index)):
                return view_at(self, index)
        elif index is None:
            return UNSQUEEZE.function(self, 0)
        elif index is ...:
            return view_at(self, (index,))
        elif kind in BASIC:
            return select_first(self, int(index))
        if kind is Tensor and (index.dtype is dtypes.int64 or index.dtype is dtypes.int32):
            shape = sizes_of(index)
            storage = index._xt_storage
            known = type(storage.raw) is HostNumber or type(storage.array) is ARRAY
            if not shape and known and sizes_of(self):
                return select_first(self, index.item())
            if shape and (sizes := sizes_of(self)) and sizes[0] and 0 not in shape:
                return read(self, Placed((0,), [index], tuple(shape), frozenset()))
    if kind in BASIC and not sizes_of(self):
        return slice_first(self, index) if kind is slice else select_first(self, int(index))  # which raise
    if kind is slice:  # a whole one is a slice, too, where among others it is nothing
        return SLICE.function(self, 0, *slice_bounds(index))
    view, picks = subscript(self, index)
    if picks:
        return read(view, resolve(view, picks))
    return alias_of(ALIAS, self, geometry_of(self), ()) if view is self else view


# ---- writing -------------------------------------------------------------------------------------------------------


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`, broadcast and cast; the write goes through to the storage of `x`.

    Differs from PyTorch: index arrays and masks may not write to an expanded tensor either (there: a warning).
    """
    if type(value) in SCALARS or not isinstance(value, Tensor):
        if isinstance(value, np.integer):
            value = int(value)
        if type(value) not in SCALARS:
            if not isinstance(value, (float, complex)):  # NumPy's own numbers of these kinds are Python's too
                raise TypeError(f"can't assign a {checks.type_name(value)} to a {checks.tensor_type(self)}")
            value = value.__complex__() if isinstance(value, complex) else float(value)
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise ValueError("Overflow when unpacking long long")
        value = settable(value, self.dtype)
    if index is False:
        return
    kind = type(index)
    if dispatching and asked_about((self,)) is not None and is_basic(index):
        assign(getitem(self, index), value)
        return
    if kind is int:
        view = select_first(self, index)
        if type(value) in SCALARS:
            check_writable(view)
            fill_view(view, value)
        else:
            assign(view, value)
        return
    plain = modes.state.mode <= 1 and not dispatching
    if plain and kind is tuple and index and BASIC.issuperset(map(type, index)):
        view = view_at(self, index)
        assign(self if sizes_of(view) == sizes_of(self) else view, value)
        return
    if kind is slice and not sizes_of(self):
        slice_first(self, index)
    view, picks = subscript(self, None if index is True else index)
    if not picks:
        assign(view, value)
    else:
        write(view, picks, drop_ones(value) if isinstance(value, Tensor) else value)


def is_basic(index: Any) -> bool:
    """Whether an index makes a view: numbers, slices, None and `...`."""
    parts = index if type(index) is tuple else (index,)
    return all(p is None or p is Ellipsis or type(p) in (int, slice) for p in parts)


def drop_ones(value: Tensor) -> Tensor:
    """The value without its leading dimensions of one element, which broadcasting does not need."""
    sizes = sizes_of(value)
    first = next((d for d, s in enumerate(sizes) if s != 1), len(sizes))
    return value.view(tuple(sizes[first:])) if first else value


@bounded(4096)
def fill_program(recipe: Any, donate: bool) -> Any:
    """`program(base, offset, number)`: the base with a number everywhere in a view."""

    def fill(base: Any, offset: Any, number: Any) -> Any:
        values = jnp.broadcast_to(jnp.asarray(number).astype(recipe.dtype), recipe.sizes)
        return lowering.write(recipe, base, offset, values)

    return jit(fill, donate_argnums=(0,) if donate else ())


def fill_view(view: Tensor, number: Any) -> None:
    """`view.fill_(number)`; where no graph is involved, spreading and writing the number are one program."""
    storage, geometry_, mode = view._xt_storage, view._xt_view, modes.state.mode
    tracked = not mode & modes.NO_GRAD and edge_of(view) is not None
    if geometry_ is None or tracked or isinstance(storage.raw, MetaArray) or mode & modes.PROFILING:
        view.fill_(number)
        return
    if view._xt_meta is not None:
        check_inplace(view, False)
    memory = number_room(view, number)
    if memory is not None:
        bump(view, "fill_", 3)
        write_host(memory, storage, geometry_, number)
        return
    recipe = recipe_of(storage, geometry_)
    # A view of everything needs nothing of the base, and XLA complains of a buffer given up in vain.
    program = fill_program(recipe, not recipe.static and storage.sole_owner())
    rewrite(view, "fill_", program, geometry_.offset, number, depth=3)


def assign(view: Tensor, value: Any) -> None:
    """Write a number or a tensor that broadcasts to a view."""
    if type(value) in SCALARS:
        check_writable(view)
        fill_view(view, value)
        return
    raw = value._xt_storage.raw
    if type(raw) is HostNumber:
        plain = value.dtype is view.dtype and held(value)
        if plain and not asks_grad(view) and not asks_grad(value):
            check_writable(view)
            fill_view(view, raw.value)
            return
    elif modes.state.mode <= 1 and not dispatching and copied_plainly(view, value):
        return
    sizes = tuple(sizes_of(view))
    if tuple(sizes_of(value)) == sizes:
        view.copy_(value)
        return
    check_writable(view)
    if not sizes_of(value):
        view.fill_(value)
    else:
        value = drop_ones(value)
        if len(sizes_of(value)) > len(sizes):
            g = (tuple(sizes_of(value)), tuple(strides_of(value)), 0)
            geometry.expand(g, sizes, checks.tensor_type(value).replace("xtensor.", "torch."))
        view.copy_(value.expand(sizes))


def write(view: Tensor, picks: Sequence[Any], values: Any, accumulate: bool = False) -> None:
    """Write values, a number or a tensor, where the picks say."""
    number = not isinstance(values, Tensor)
    if not accumulate and (number or values.numel() == 1) and (mask := single_mask(view, picks)) is not None:
        masked_fill_(view, mask, values if number else values.reshape(()))
        return
    if not number and len(picks) <= view.dim():
        refuse_overlap(view, values)
    found = resolve(view, picks)
    if not number:
        check_values(view, found, values)
    shared = shared_dims(view)
    if shared:
        write_expanded(view, shared, found, values, accumulate)
        return
    check_writable(view)
    refuse_overlap(view, *picks)
    check_places(view, found)
    array = array_of(view)
    if found.masks and not isinstance(array, MetaArray) and hostindex.enabled(array):
        hostindex.write(view, found, values, accumulate)
        return
    indices = [index_tensor(a, view.device) for a in found.arrays]
    run_inplace(INDEX_PUT, (view, indices, values, found.dims, accumulate))


def write_expanded(view: Tensor, shared: Sequence[int], found: Placed, values: Any, accumulate: bool) -> None:
    """Write where several elements share memory: to the memory, in the order of the indices."""
    warn_of_expanded("index_put_", "tensor[indices] = tensor")
    part = view
    for d in reversed(shared):
        part = part.select(d, 0)
    spread = placed(np.arange(part.numel()), view.device).reshape(sizes_of(part))
    for d in shared:
        spread = spread.unsqueeze(d)
    at = read(spread.expand(sizes_of(view)), found)
    source = (
        values
        if isinstance(values, Tensor)
        else full(sizes_of(at), values, dtype=view.dtype, device=view.device)
    )
    part.put_(at, source.expand(sizes_of(at)), accumulate)


def check_values(view: Tensor, found: Placed, values: Tensor) -> None:
    """Refuse values of another dtype, or that do not broadcast to what is indexed."""
    shape = found.result_sizes(tuple(sizes_of(view)))
    own = tuple(sizes_of(values))
    if len(own) > len(shape) or any(
        a not in (1, b) for a, b in zip(reversed(own), reversed(shape), strict=False)
    ):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(own)} cannot be broadcast to indexing result of shape "
            f"{list(shape)}"
        )
    if values.dtype is not view.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{view.dtype.scalar_name} for the destination and {values.dtype.scalar_name} for the source."
        )


def single_mask(view: Tensor, picks: Sequence[Any]) -> Tensor | None:
    """The one mask among the picks, of the view's number of dimensions, or None where there is another index array."""
    sizes = sizes_of(view)
    mask: Any = None
    dim = after = 0
    for pick in picks:
        if pick is COVERED:
            continue
        if pick is None:
            dim += 1
            continue
        if mask is not None or not is_mask(pick):
            return None
        check_mask(pick, sizes, dim)
        mask = pick
        dim += pick.ndim
        after = dim
    if mask is None:
        return None
    check_byte(mask)
    if not isinstance(mask, Tensor):
        mask = placed(np.array(mask), view.device)
    trailing = len(sizes) - after
    return mask.reshape((*sizes_of(mask), *[1] * trailing)) if trailing else mask


def index_picks(name: str, input: Tensor, indices: Any) -> list[Any]:
    """The argument `indices` of `index_put` as picks."""
    if isinstance(indices, Tensor) or not isinstance(indices, (tuple, list)):
        raise checks.argument_error(name, "indices", 1, "tuple of Tensors", indices)
    if not indices:
        raise RuntimeError(f"{name}(): at least one index must be provided")
    picks: list[Any] = []
    for i, item in enumerate(indices):
        if not isinstance(item, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {checks.type_name(item)}")
        picks.append(item)
        if is_mask(item):
            picks += [COVERED] * (item.dim() - 1)
    if len(indices) > input.dim():
        raise IndexError(f"too many indices for tensor of dimension {input.dim()} (got {len(indices)})")
    return picks


def index_put_(self: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """Write `values` to `self[indices]` in place; with `accumulate`, add them, repeated indices included.

    Shape: `values` broadcast to that of `self[indices]`; that of the tensor itself stays.

    Raises: IndexError where an index is out of range.
    """
    if not isinstance(values, Tensor):
        raise checks.argument_error("index_put_", "values", 2, "Tensor", values)
    picks = index_picks("index_put_", self, indices)
    write(self, picks, values, bool(accumulate))
    return self


def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with `values` at `input[indices]`; with `accumulate`, added there.

    Shape: `input` `(*)`, `values` broadcast to that of `input[indices]`, result `(*)`.

    Raises: RuntimeError where sizes do not fit.
    """
    if not isinstance(values, Tensor):
        raise checks.argument_error("index_put", "values", 2, "Tensor", values)
    picks = index_picks("index_put", input, indices)
    mask = None if accumulate or values.numel() != 1 else single_mask(input, picks)
    if mask is not None:
        value = values.reshape(())
        if input.is_contiguous():
            return masked_fill(input, mask, value)
        # In memory as the input, where `masked_fill` gives rows.
        return input.clone().masked_fill_(mask, value)
    found = resolve(input, picks)
    check_values(input, found, values)
    check_places(input, found)
    array = array_of(input)
    if found.masks and not isinstance(array, MetaArray) and hostindex.enabled(array):
        made = input.clone()
        hostindex.write(made, found, values, bool(accumulate))
        return made
    indices = [index_tensor(a, input.device) for a in found.arrays]
    return run_like(INDEX_PUT, (input, indices, values, found.dims, bool(accumulate)))


def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements of `input`, broadcast with `mask`, where it holds; one dimension.

    The length depends on the mask's values, which are read on the host.

    Shape: `input` and `mask` broadcast together; result `(n)`, one for each place where the mask holds.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.

    >>> x = xtensor.tensor([1, 5, 3])
    >>> xtensor.masked_select(x, x > 2)
    tensor([5, 3])
    """
    if not isinstance(input, Tensor) or not isinstance(mask, Tensor):
        name, position, got = ("input", 1, input) if not isinstance(input, Tensor) else ("mask", 2, mask)
        raise checks.argument_error("masked_select", name, position, "Tensor", got)
    if mask.dtype is not dtypes.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = geometry.broadcast_shapes(tuple(sizes_of(mask)), tuple(sizes_of(input)))
    refuse_dynamic(mask, "masked_select")
    columns = list(hostindex.nonzero_columns(np.broadcast_to(hostindex.values_of(mask), shape)))
    whole = input.expand(shape) if shape != tuple(sizes_of(input)) else input
    if not shape:
        whole = whole.unsqueeze(0)
    found = Placed(tuple(range(len(columns))), columns, columns[0].shape, frozenset(range(len(columns))))
    result = read(whole, found, "MaskedSelectBackward0")
    if out is None:
        return result
    if edge_of(result) is not None:
        raise RuntimeError(
            "masked_select(): functions with out=... arguments don't support automatic differentiation, but one of "
            "the arguments requires grad."
        )
    if isinstance(out, Tensor) and out.dtype is not input.dtype:
        raise RuntimeError("masked_select(): self and result must have the same scalar type")
    write_out("masked_select", out, result, [input, mask])
    return out


def masked_select_method(self: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` holds, one dimension.

    Shape: the tensor and `mask` broadcast; result `(n)`, n the number of elements where it holds.

    Raises: RuntimeError where the mask is not of bools, or does not broadcast.
    """
    return masked_select(self, mask)


def delitem(self: Tensor, index: Any) -> None:
    """Refuse `del x[index]`."""
    raise TypeError("Tensor does not support deleting items")


attach_methods(index_put, index_put_)
attach_as(__delitem__=delitem, __getitem__=getitem, __setitem__=setitem, masked_select=masked_select_method)
