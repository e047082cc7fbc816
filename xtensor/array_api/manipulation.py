"""Arrays in other shapes and orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..ops.shape import joining, rearranging, shapes
from ..tensor import Tensor
from .array import Array, made, made_all, place_of, plain
from .promotion import result_type

__all__ = [
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]

Axes = int | tuple[int, ...] | None


def alike(arrays: Sequence[Tensor]) -> list[Tensor]:
    """Plain tensors in the dtype that the arrays promote to."""
    wanted = result_type(*arrays)
    return [plain(x).to(wanted) for x in arrays]


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Array:
    """Arrays one after the other along a dimension; with None, the elements of all."""
    parts = alike(arrays)
    if axis is None:
        return made(joining.cat([part.reshape(-1) for part in parts]))
    dim = place_of(axis, parts[0].dim())
    shape = [size for d, size in enumerate(parts[0].shape) if d != dim]
    # A vector without elements goes with any shape in PyTorch, not in the standard.
    if any([size for d, size in enumerate(part.shape) if d != dim] != shape for part in parts):
        raise ValueError("concat() needs arrays of one shape, but for the dimension of `axis`")
    return made(joining.cat(parts, axis))


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Array:
    """Arrays of one shape along a new dimension."""
    return made(joining.stack(alike(arrays), axis))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along a dimension, as views."""
    return tuple(made_all(shapes.unbind(plain(x), axis)))


def expand_dims(x: Tensor, /, axis: int) -> Array:
    """A view with a dimension of size 1 before `axis`."""
    return made(shapes.unsqueeze(plain(x), axis))


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Array:
    """A view without dimensions of size 1; ValueError for another size."""
    dims = [place_of(d, x.dim()) for d in ((axis,) if isinstance(axis, int) else axis)]
    for dim in dims:
        if x.shape[dim] != 1:
            raise ValueError(f"squeeze() is for dimensions of size 1, and {dim} has {x.shape[dim]}")
    return made(shapes.squeeze(plain(x), tuple(dims)))


def flip(x: Tensor, /, *, axis: Axes = None) -> Array:
    """The elements in opposite order along some dimensions, by default all."""
    dims = range(x.dim()) if axis is None else (axis,) if isinstance(axis, int) else axis
    return made(rearranging.flip(plain(x), tuple(dims)))


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Array:
    """A view with some dimensions in other places."""
    return made(shapes.moveaxis(plain(x), source, destination))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Array:
    """A view with the dimensions in this order."""
    return made(shapes.permute(plain(x), tuple(axes)))


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Array:
    """Every element so many times, along a dimension or of all."""
    source = plain(x) if axis is not None else plain(x).reshape(-1)
    times = repeats
    if isinstance(repeats, Tensor):
        times = plain(repeats)
        times = int(times.item()) if times.numel() == 1 else times.to(dtypes.int64)
    return made(rearranging.repeat_interleave(source, times, 0 if axis is None else axis))


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """The elements in another shape, a view where that can be; ValueError where it cannot and `copy=False`."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    source = plain(x)
    if copy:
        return made(shapes.reshape(source.clone(), sizes))
    if copy is False:
        try:
            return made(source.view(sizes))
        except RuntimeError as error:
            raise ValueError(f"reshape(copy=False): {error}") from None
    return made(shapes.reshape(source, sizes))


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axes = None) -> Array:
    """The elements moved along dimensions, those at the end to the beginning; with None, in row-major order."""
    if axis is None:
        return made(rearranging.roll(plain(x), shift))
    dims = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(dims) if isinstance(shift, int) else tuple(shift)
    return made(rearranging.roll(plain(x), shifts, dims))


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Array:
    """The array so many times beside itself along each dimension."""
    return made(rearranging.tile(plain(x), tuple(repetitions)))
