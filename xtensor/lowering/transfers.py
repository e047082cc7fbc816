"""Recipes as lax operations, and as compiled programs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from ..xla.number_arrays import size_as
from ..xla.segments import READING, SINGLE, waiter
from ..xla.symbolic import at_most
from ..xla.x64 import jit
from .host import HostReader, HostWriter
from .recipes import (
    Access,
    Core,
    Digits,
    Ints,
    Program,
    Recipe,
    component,
    grouped,
    place_values,
    typed_shape,
)
from .transposes import transpose

# Index vectors up to this length are constants of the program.
SMALL_CONSTANT = 2**16
# A window this many times larger than the view is written element by element instead.
SPARSE = 32


def _group(array: Any, size: int) -> Any:
    """As `grouped`, with the elements of a group in a new last dimension."""
    shape = grouped(array.shape, size)
    count = prod(shape) * size
    if count != array.size:
        array = lax.slice(array.reshape(-1), (0,), (count,))
    return array.reshape(*shape, size)


def _reinterpret(array: Any, new: np.dtype[Any]) -> Any:
    """The same bytes as elements of `new`; bool only ever arrives here as, or leaves as, bytes."""
    old = np.dtype(array.dtype)
    if old == new:
        return array
    a, b = component(old), component(new)
    if old.kind == "c":
        array = jnp.stack([lax.real(array), lax.imag(array)], axis=-1)
    elif old.kind == "b":
        array = lax.convert_element_type(array, np.uint8)
    if a != b:
        if a.itemsize < b.itemsize:
            array = _group(array, b.itemsize // a.itemsize)
        array = lax.bitcast_convert_type(array, b)
    if new.kind == "c":
        pairs = _group(array, 2)
        return lax.complex(pairs[..., 0], pairs[..., 1])
    return array


def _carrier(recipe: Recipe) -> np.dtype[Any]:
    """The dtype in which elements are moved: bytes for a bool view of another dtype, which must keep bytes above 1."""
    return recipe.dtype if recipe.dtype == recipe.base_dtype else _bits(recipe.dtype)


def _bits(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.uint8) if dtype.kind == "b" else dtype


def _open(recipe: Recipe, base: Any) -> Any:
    """The base as an array of the view's elements."""
    return _reinterpret(jnp.asarray(base), _carrier(recipe))


def _close(recipe: Recipe, base: Any, typed: Any) -> Any:
    """The inverse of `_open`; bytes at the end that make no whole element stay as they are in `base`."""
    if recipe.dtype == recipe.base_dtype:
        return typed.reshape(recipe.base_shape)
    array = _reinterpret(typed, _bits(recipe.base_dtype))
    if recipe.base_dtype.kind == "b":
        array = array != 0
    if array.size != base.size:
        array = lax.concatenate([array.reshape(-1), base.reshape(-1)[array.size :]], 0)
    return array.reshape(recipe.base_shape)


# --- the core: elements in order of stride, widest first -------------------------------------------------------------


def _index_dtype(array: Any) -> Any:
    return np.int32 if at_most(array.size, 2**31 - 1) else np.int64


def _starts(digits: Digits, windows: Ints, offset: Any, dtype: Any) -> list[Any]:
    """The digits of the offset, 0 where the rectangle has the whole digit."""
    offset = lax.convert_element_type(offset, dtype)
    starts = []
    for i, (radix, place, window) in enumerate(zip(digits.radices, place_values(digits.radices), windows)):
        if window == radix:
            starts.append(np.zeros((), dtype))
            continue
        start = offset if place == 1 else lax.div(offset, size_as(place, dtype))
        starts.append(start if i == 0 else lax.rem(start, size_as(radix, dtype)))
    return starts


def _windows(digits: Digits) -> Ints:
    return tuple([(count - 1) * step + 1 for count, step in zip(digits.counts, digits.steps)])


def _indices(core: Core, offset: Any, dtype: Any) -> Any:
    """Where each element of the core lies in the flat base."""
    shape = tuple([size for size, _ in core])
    index = lax.broadcast(lax.convert_element_type(offset, dtype), shape)
    for axis, (_, stride) in enumerate(core):
        index = index + lax.broadcasted_iota(dtype, shape, axis) * size_as(stride, dtype)
    return index


def _extents(core: Core) -> list[int]:
    """For each core dimension, the length of memory that it and the smaller ones reach; 1 at the end."""
    extents = [1]
    for size, stride in reversed(core):
        extents.append(extents[-1] + (size - 1) * stride)
    return extents[::-1]


def _take(access: Access, typed: Any, offset: Any) -> Any:
    """The core's elements."""
    core_sizes = tuple([size for size, _ in access.core])
    if access.kind == "reshape":
        return typed.reshape(core_sizes)
    dtype = _index_dtype(typed)
    if access.kind == "digits":
        digits = access.digits
        assert digits is not None
        windows = _windows(digits)
        block = lax.dynamic_slice(
            typed.reshape(digits.radices), _starts(digits, windows, offset, dtype), windows
        )
        if windows != digits.counts:
            block = lax.slice(block, (0,) * len(windows), windows, digits.steps)
        return block.reshape(core_sizes)
    flat = typed.reshape(-1)
    if access.kind == "gather":
        return flat.at[_indices(access.core, offset, dtype)].get(
            mode="promise_in_bounds", wrap_negative_indices=False
        )
    extents = _extents(access.core)
    window = lax.dynamic_slice(flat, (lax.convert_element_type(offset, dtype),), (extents[0],))
    for (size, stride), extent in zip(access.core, extents[1:]):
        window = _resize_last(window, size * stride)
        window = _resize_last(window.reshape(*window.shape[:-1], size, stride), extent)
    return window.reshape(core_sizes)


def _resize_last(array: Any, length: int) -> Any:
    """The last dimension cut, or filled up with zeros, to `length`."""
    if array.shape[-1] > length:
        return lax.slice_in_dim(array, 0, length, axis=array.ndim - 1)
    if array.shape[-1] == length:
        return array
    padding = [(0, 0, 0)] * (array.ndim - 1) + [(0, length - array.shape[-1], 0)]
    return lax.pad(array, np.zeros((), array.dtype), padding)


def _put(access: Access, typed: Any, offset: Any, values: Any) -> Any:
    """`typed` with the core's elements replaced."""
    if access.kind == "reshape":
        return values.reshape(typed.shape)
    dtype = _index_dtype(typed)
    if access.kind == "digits":
        digits = access.digits
        assert digits is not None
        windows = _windows(digits)
        starts = _starts(digits, windows, offset, dtype)
        base = typed.reshape(digits.radices)
        block = values.reshape(digits.counts)
        if windows != digits.counts:
            old = lax.dynamic_slice(base, starts, windows)
            block = _spread(block, old, digits.steps)
        return lax.dynamic_update_slice(base, block, starts).reshape(typed.shape)
    flat = typed.reshape(-1)
    extents = _extents(access.core)
    if access.kind == "gather" or extents[0] > SPARSE * values.size:
        index = _indices(access.core, offset, dtype)
        unique = access.kind != "gather"
        flat = flat.at[index].set(
            values, mode="promise_in_bounds", unique_indices=unique, wrap_negative_indices=False
        )
        return flat.reshape(typed.shape)
    start = (lax.convert_element_type(offset, dtype),)
    window = values[..., None]
    for (size, stride), extent in zip(reversed(access.core), reversed(extents[:-1])):
        window = _resize_last(window, stride)
        window = _resize_last(window.reshape(*window.shape[:-2], size * stride), extent)
    window = window.reshape(extents[0])
    if extents[0] != values.size:
        old = lax.dynamic_slice(flat, start, (extents[0],))
        window = lax.select(_in_window(access.core, extents, dtype), window, old)
    return lax.dynamic_update_slice(flat, window, start).reshape(typed.shape)


def _spread(block: Any, old: Any, steps: Ints) -> Any:
    """`old` with `block` in the places that are multiples of the steps."""
    mask: Any = True
    for axis, step in enumerate(steps):
        if step == 1:
            continue
        length = old.shape[axis]
        # As a constant, one division for each place of the axis; computed, one for each element of the block.
        small = length <= SMALL_CONSTANT
        place: Any = np.arange(length, dtype=np.int32) if small else lax.iota(np.int32, length)
        if step & (step - 1):
            rows = (slice(None),) * axis
            block = block.at[(*rows, place // step)].get(
                mode="promise_in_bounds", wrap_negative_indices=False
            )
        else:  # padding divides too, which only powers of two do cheaply
            config = [(0, 0, step - 1 if i == axis else 0) for i in range(old.ndim)]
            block = lax.pad(block, np.zeros((), block.dtype), config)
        mask = mask & lax.broadcast_in_dim(jnp.asarray(place % step == 0), old.shape, (axis,))
    return lax.select(mask, block, old)


def _in_window(core: Core, extents: list[int], dtype: Any) -> Any:
    """Which places of the window belong to the view."""
    place = lax.iota(dtype, extents[0])
    mask = None
    for (_, stride), extent in zip(core, extents[1:]):
        place = place % size_as(stride, dtype)
        if extent < stride:
            here = place < size_as(extent, dtype)
            mask = here if mask is None else mask & here
    return mask


def _take_all(recipe: Recipe, typed: Any, offset: Any) -> Any:
    """The elements in the order of `recipe.dims`."""
    if not recipe.stacked:
        return _take(recipe.access, typed, offset)
    parts = [_take(recipe.access, typed, offset + shift) for shift in recipe.shifts]
    # One dimension at a time: on a CPU several times faster than one stack of all.
    axis = len(recipe.access.core)
    for size in reversed(recipe.stacked):
        parts = [jnp.stack(parts[i : i + size], axis) for i in range(0, len(parts), size)]
    return parts[0]


def _put_all(recipe: Recipe, typed: Any, offset: Any, values: Any, accumulate: bool = False) -> Any:
    """`typed` with the elements replaced by `values`, or `values` added to them."""
    access = recipe.access
    if access.kind == "gather" and accumulate:
        index = _indices(access.core, offset, _index_dtype(typed))
        flat = typed.reshape(-1).at[index]
        flat = flat.add(values, mode="promise_in_bounds", wrap_negative_indices=False)
        return flat.reshape(typed.shape)
    core_sizes = [size for size, _ in access.core]
    for i, shift in enumerate(recipe.shifts):
        start, part = offset + shift, values
        if recipe.stacked:
            part = lax.index_in_dim(values.reshape(*core_sizes, -1), i, axis=len(core_sizes), keepdims=False)
        if accumulate:
            part = part + _take(access, typed, start)
        typed = _put(access, typed, start, part)
    return typed


def _to_view(recipe: Recipe, core: Any, order: Sequence[int] | None, plain: bool) -> Any:
    """The core in the view's shape, with sizes of 1 and expanded dimensions; the view's dimensions in `order`."""
    order = range(len(recipe.sizes)) if order is None else order
    place = {d: i for i, d in enumerate(order)}
    places = [place[d] for d in recipe.dims]
    axes = sorted(range(len(places)), key=places.__getitem__)
    if axes != list(range(len(axes))):
        core = lax.transpose(core, axes) if plain else transpose(core, axes)
    sizes = tuple([recipe.sizes[d] for d in order])
    if core.shape != sizes:
        core = lax.broadcast_in_dim(core, sizes, sorted(places))
    if core.dtype != recipe.dtype:
        core = core != 0
    if recipe.conj:
        core = lax.conj(core)
    return lax.neg(core) if recipe.neg else core


def _to_core(recipe: Recipe, value: Any, accumulate: bool = False) -> Any:
    """The inverse of `_to_view`; of an expanded dimension, the last value, or where accumulating the sum."""
    value = lax.convert_element_type(value, recipe.dtype)
    if recipe.neg:
        value = lax.neg(value)
    if recipe.conj:
        value = lax.conj(value)
    value = lax.convert_element_type(value, _carrier(recipe))
    kept = sorted(recipe.dims)
    if len(kept) != value.ndim:
        others = [d for d in range(value.ndim) if d not in recipe.dims]
        if accumulate:
            value = lax.reduce_sum(value, others)
        else:
            for d in others:
                value = lax.slice_in_dim(value, recipe.sizes[d] - 1, recipe.sizes[d], axis=d)
            value = lax.squeeze(value, others)
    if list(recipe.dims) != kept:
        value = transpose(value, [kept.index(d) for d in recipe.dims])
    return value


# --- pure functions of arrays ----------------------------------------------------------------------------------------


def read(
    recipe: Recipe, base: Any, offset: Any, order: Sequence[int] | None = None, plain: bool = False
) -> Any:
    """The view's values, with its dimensions in `order` where that is given; `plain` for a loop that XLA lets read them in any."""
    if recipe.identity:
        return base if order is None else transpose(base, order)
    if recipe.access.kind == "empty":
        return jnp.zeros([recipe.sizes[d] for d in order or range(len(recipe.sizes))], recipe.dtype)
    return _to_view(recipe, _take_all(recipe, _open(recipe, base), offset), order, plain)


def write(recipe: Recipe, base: Any, offset: Any, value: Any) -> Any:
    """The base with the view's elements set to `value`, which has the view's shape.

    Where elements of the view overlap, one of the values that fall on a place stays. Differs from PyTorch: bytes
    written to a bool array through a view of another dtype are kept as 0 or 1.
    """
    if recipe.access.kind == "empty":
        return base
    if recipe.identity:
        return lax.convert_element_type(value, recipe.dtype)
    values = _to_core(recipe, value)
    if recipe.access.kind == "reshape":
        shape = typed_shape(recipe.base_shape, recipe.base_dtype, recipe.dtype)
        return _close(recipe, base, values.reshape(shape))
    return _close(recipe, base, _put_all(recipe, _open(recipe, base), offset, values))


def scatter_add(recipe: Recipe, base: Any, offset: Any, value: Any) -> Any:
    """The base with `value` added at the view's elements, every one of those that fall on a place.

    On zeros this is the adjoint of `read`, so the gradient of a view: a conjugated view gives back the conjugate, a
    real view of complex numbers complex numbers.
    """
    if recipe.access.kind == "empty":
        return base
    values = _to_core(recipe, value, accumulate=True)
    return _close(recipe, base, _put_all(recipe, _open(recipe, base), offset, values, accumulate=True))


# --- compiled programs -----------------------------------------------------------------------------------------------


class Stats(NamedTuple):
    """How many programs have been traced so far for reads and for writes."""

    reads: int
    writes: int


_traced = {"read": 0, "write": 0}


def stats() -> Stats:
    """Counts of traced programs, for tests: a loop over `x[i]` adds one."""
    return Stats(_traced["read"], _traced["write"])


def _read_body(recipe: Recipe, base: Any, offset: Any = 0) -> Any:
    _traced["read"] += 1
    return read(recipe, base, offset)


def _write_body(recipe: Recipe, base: Any, offset: Any, value: Any) -> Any:
    _traced["write"] += 1
    return write(recipe, base, offset, value)


def read_program(recipe: Recipe) -> Program:
    """`program(base, offset)`, compiled once per recipe; an identity gives back `base` itself."""
    program = recipe._reader
    if program is None:
        program = recipe._reader = _make_reader(recipe)
    return program


def _make_reader(recipe: Recipe) -> Program:
    if recipe.identity:
        return lambda base, offset: base
    body: Any = partial(_read_body, recipe)
    body.sized = HostReader(recipe)
    body.__name__ = body.__qualname__ = "read_view"
    compiled = jit(body)
    if not recipe.static:
        return compiled

    # A scalar operand costs about a microsecond a call, so none is passed where none is used.
    def read(base: Any, offset: Any) -> Any:
        return compiled(base)

    read.compiled = compiled  # pyright: ignore[reportFunctionMemberAccess]
    return read


def later_program(recipe: Recipe) -> Program:
    """`program(base)`, or where the offset is needed `program(base, offset)`, whose calls may wait; of no identity."""
    program = recipe._later_reader
    if program is None:
        compiled = getattr(read_program(recipe), "compiled", read_program(recipe))
        program = recipe._later_reader = waiter(compiled, 1 if recipe.static else 2, SINGLE, gain=READING)
    return program


def write_program(recipe: Recipe, donate: bool) -> Program:
    """`program(base, offset, value)`, compiled once per recipe; `donate` lets it reuse the buffer of `base`.

    An identity gives back `value` itself, which then has two holders; an empty view `base` itself.
    """
    if donate:
        program = recipe._donating_writer
        if program is None:
            program = recipe._donating_writer = _make_writer(recipe, True)
        return program
    program = recipe._writer
    if program is None:
        program = recipe._writer = _make_writer(recipe, False)
    return program


def _make_writer(recipe: Recipe, donate: bool) -> Program:
    if recipe.access.kind == "empty":
        return lambda base, offset, value: base
    if recipe.identity:
        return lambda base, offset, value: value
    if (
        recipe.static
        and prod(recipe.sizes) * recipe.dtype.itemsize == prod(recipe.base_shape) * recipe.base_dtype.itemsize
    ):
        compiled = jit(partial(_write_all_body, recipe))
        return lambda base, offset, value: compiled(value)
    body: Any = partial(_write_body, recipe)
    body.sized = HostWriter(recipe)
    return jit(body, donate_argnums=(0,) if donate else ())


def _write_all_body(recipe: Recipe, value: Any) -> Any:
    _traced["write"] += 1
    return write(recipe, jax.ShapeDtypeStruct(recipe.base_shape, recipe.base_dtype), 0, value)
