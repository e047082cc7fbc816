"""The scatters of views: a copy of a tensor with the elements of one of its views replaced."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax.numpy as jnp

from ... import geometry, lowering
from ...geometry import Geometry, contiguous_strides
from ...operators.attach import attach_methods
from ...operators.declare import composite, general
from ...operators.functions.overloads import numpy_names
from ...operators.operator import REGISTRY
from ...operators.schema import Array, Number
from ...operators.views import geometry_of, ints
from ...operators.write import convert
from ...storage import MetaArray, Storage
from ...tensor import Tensor, array_of, make_view, recipe_of, sizes_of, strides_of
from ...xla.x64 import call

__all__ = ["as_strided_scatter", "diagonal_scatter", "select_scatter", "slice_scatter"]


def replace_view(input: Array, src: Array, offset: Number, *, recipe: Any) -> Array:
    return lowering.write(recipe, input, offset, convert(src, input.dtype))


for _name in ("as_strided_scatter", "diagonal_scatter", "select_scatter", "slice_scatter"):
    general(
        derivatives=dict(
            input=lambda grad, src_shape, offset, recipe: lowering.write(
                recipe, grad, offset, jnp.zeros(src_shape, grad.dtype)
            ),
            src=lambda grad, offset, recipe: lowering.read(recipe, grad, offset),
        ),
        name=_name,
    )(replace_view)


def scatter_view(name: str, input: Tensor, src: Tensor, made: Geometry) -> Tensor:
    """`input` with `src` at the geometry `made`, which lies over a contiguous tensor of the sizes of `input`."""
    if tuple(sizes_of(src)) != made.sizes:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(sizes_of(src))}, "
            f"slice size = {list(made.sizes)}"
        )
    geometry.assert_no_internal_overlap(made.sizes, made.strides)
    dtype = input.dtype.numpy
    recipe = lowering.recipe_for(tuple(sizes_of(input)), made.sizes, made.strides, made.offset, dtype, dtype)
    return REGISTRY[name].function(input, src, made.offset, recipe=recipe)


def laid_as(input: Tensor, result: Tensor) -> Tensor:
    """A fresh contiguous result laid in memory as `input` is: a copy of its storage with the new values in place."""
    view = input._xt_view
    if view is None or type(array_of(result)) is MetaArray:
        return result
    if geometry.has_internal_overlap(view.sizes, view.strides) == "YES":
        return result
    old = input._xt_storage
    program = lowering.write_program(recipe_of(old, view), donate=False)
    storage = result._xt_storage = Storage(call(program, old.array, view.offset, array_of(result)))
    result._xt_view = make_view(
        storage, storage, view.dtype, view.sizes, view.strides, view.offset, view.conj, view.neg
    )
    return result


def contiguous_geometry(input: Tensor) -> Geometry:
    sizes = tuple(sizes_of(input))
    return Geometry(sizes, contiguous_strides(sizes), 0)


@composite(out=True)
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """A copy of `input` with `src` written to `input.as_strided(size, stride, storage_offset)`.

    Shape: `input` `(*)`, `src` `size`, result `(*)`.
    Differs from PyTorch: the gradient of `input` is zero where `src` was written (PyTorch 2.13 has it the other way).

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.
    """
    size, stride = ints(size), ints(stride)
    if geometry.has_internal_overlap(tuple(sizes_of(input)), tuple(strides_of(input))) == "YES":
        input = input.contiguous()
    sizes, strides, start = geometry_of(input)
    offset = start if storage_offset is None else storage_offset
    itemsize = input.dtype.itemsize
    made = geometry.as_strided(size, stride, offset, itemsize, input._xt_storage.nbytes())
    end = geometry.storage_extent(made)[1]
    if strides == contiguous_strides(sizes) and start <= offset and end <= start + prod(sizes):
        relative = Geometry(size, stride, offset - start)
        return laid_as(input, scatter_view("as_strided_scatter", input, src, relative))
    # The elements lie elsewhere in memory than in their own order: do it in a contiguous copy of the memory.
    memory = input.new_zeros((input._xt_storage.nbytes() // itemsize,))
    whole = Geometry(sizes, strides, start)
    memory = scatter_view("as_strided_scatter", memory, input, whole)
    return scatter_view("as_strided_scatter", memory, src, made).as_strided(sizes, strides, start)


@composite(out=True)
@numpy_names
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` at one index of a dimension.

    Shape: `input` `(*)`, `src` without the dimension `dim`, result `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where `dim` is out
    of range.
    """
    made = geometry.select(contiguous_geometry(input), dim, index)
    return laid_as(input, scatter_view("select_scatter", input, src, made))


@composite(out="exact")
@numpy_names
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of `input` with `src` at `start:end:step` of a dimension.

    Shape: `input` `(*)`, `src` that of the slice, result `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where `dim` is out
    of range.
    """
    made = geometry.slice(contiguous_geometry(input), dim, start, end, step)
    return laid_as(input, scatter_view("slice_scatter", input, src, made))


@composite(out=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `input` with `src` on a diagonal of two of its dimensions.

    Shape: `input` `(*)`, `src` that of the diagonal, result `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.
    """
    made = geometry.diagonal(contiguous_geometry(input), offset, dim1, dim2)
    return laid_as(input, scatter_view("diagonal_scatter", input, src, made))


attach_methods(as_strided_scatter, diagonal_scatter, select_scatter, slice_scatter)
