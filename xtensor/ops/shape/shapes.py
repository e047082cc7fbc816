"""The view operators of PyTorch's "Tensor Views" page, and those that view where they can and copy where they cannot."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from ... import checks, devices, dtypes, geometry
from ...engine import modes
from ...geometry import Geometry
from ...operators.attach import attach, attach_methods
from ...operators.below.dispatching import dispatching
from ...operators.dispatch import memory_order
from ...operators.functions.overloads import of_tensors
from ...operators.views import VIEWS, ViewOperator, alias_of, geometry_of, ints, known, view
from ...tensor import Tensor, array_of, edge_of, sizes_of, strides_of, wrap
from ...xla.cache import bounded
from ...xla.levels import Dual, batches_of
from ...xla.symbolic import as_size, is_open, is_size

__all__ = [
    "as_strided",
    "broadcast_to",
    "chunk",
    "diagonal",
    "dsplit",
    "expand_as",
    "flatten",
    "hsplit",
    "moveaxis",
    "movedim",
    "narrow",
    "permute",
    "ravel",
    "reshape",
    "select",
    "split",
    "split_with_sizes",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "tensor_split",
    "transpose",
    "unbind",
    "unflatten",
    "unsqueeze",
    "vsplit",
]

Dims = int | Sequence[int]


# -- dimensions rearranged


@view(node="Transpose")
def transpose(g: Geometry, dim0: int, dim1: int) -> Geometry:
    """The view with two dimensions swapped.

    Shape: `input` `(*)`; result with the sizes of `dim0` and `dim1` swapped.

    >>> xtensor.zeros(2, 3, 4).transpose(0, 2).shape
    xtensor.Size([4, 3, 2])
    >>> xtensor.tensor([[1, 2], [3, 4]]).transpose(0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    return geometry.transpose(g, dim0, dim1)


@view(node="Transpose")
def swapaxes(g: Geometry, axis0: int, axis1: int) -> Geometry:
    """The view with two dimensions swapped.

    Shape: `input` `(*)`, result of the same sizes with the two exchanged.

    >>> xtensor.swapaxes(xtensor.ones(2, 3), 0, 1).shape
    xtensor.Size([3, 2])
    """
    return geometry.transpose(g, axis0, axis1)


@view(node="Transpose")
def swapdims(g: Geometry, dim0: int, dim1: int) -> Geometry:
    """The view with two dimensions swapped.

    Shape: `input` `(*)`, result of the same sizes with the two exchanged.
    """
    return geometry.transpose(g, dim0, dim1)


@view(node="T")
def t(g: Geometry) -> Geometry:
    """The transpose of a tensor of at most two dimensions.

    Shape: `input` `(n, m)`, `(n)` or `()`; result `(m, n)`, `(n)` or `()`.

    >>> xtensor.tensor([[1, 2, 3], [4, 5, 6]]).t()
    tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    return geometry.t(g)


@view(varargs="dims")
def permute(g: Geometry, dims: Sequence[int]) -> Geometry:
    """The view with the dimensions in the order `dims`.

    Shape: size i of the result is size `dims[i]` of `input`.

    >>> xtensor.zeros(2, 3, 4).permute(2, 0, 1).shape
    xtensor.Size([4, 2, 3])
    """
    return geometry.permute(g, ints(dims))


@view(
    node="Permute",
    signatures=(
        "Tensor input, int source, int destination",
        "Tensor input, tuple of ints source, tuple of ints destination",
    ),
)
def movedim(g: Geometry, source: Dims, destination: Dims) -> Geometry:
    """The view with dimensions `source` moved to the places `destination`.

    Shape: `input` `(*)`; the result has its sizes in the new order.

    >>> xtensor.zeros(2, 3, 4).movedim(0, -1).shape
    xtensor.Size([3, 4, 2])
    """
    return geometry.movedim(g, ints(source), ints(destination))


@view(
    node="Permute",
    signatures=(
        "Tensor input, int source, int destination",
        "Tensor input, tuple of ints source, tuple of ints destination",
    ),
)
def moveaxis(g: Geometry, source: Dims, destination: Dims) -> Geometry:
    """The view with dimensions `source` moved to the places `destination`.

    Shape: `input` `(*)`, result with the sizes in the new order.
    """
    return geometry.movedim(g, ints(source), ints(destination))


@view(name="matrix_transpose", node="Transpose", method=False)
def matrix_transpose(g: Geometry) -> Geometry:
    """The view with the last two dimensions swapped."""
    return geometry.transpose(g, -2, -1)


@view(name="reverse_dims", node="Permute", method=False)
def reverse_dims(g: Geometry) -> Geometry:
    """The view with the order of dimensions reversed."""
    return Geometry(g[0][::-1], g[1][::-1], g[2])


# -- parts


def as_int(value: Any) -> int:
    """An index argument, which may be a tensor of one integer."""
    if type(value) is int:
        return value
    if isinstance(value, Tensor):
        return int(value.item())
    return as_size(value)


@view(varying=True)
def select(g: Geometry, dim: int, index: int) -> Geometry:
    """The view at one index of a dimension, which it loses.

    Shape: `input` `(*)`; result without `dim`.

    >>> xtensor.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    return geometry.select(g, dim, index if type(index) is int else as_int(index))


@view(name="slice", method=False, varying=True)
def slice_view(
    g: Geometry, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Geometry:
    """The view of every `step`-th index of a dimension from `start` up to `end`."""
    return geometry.slice(g, dim, start, end, step)


@view(
    varying=True,
    node="Slice",
    signatures=(
        "Tensor input, int dim, Tensor start, int length",
        "Tensor input, int dim, int start, int length",
    ),
)
def narrow(g: Geometry, dim: int, start: int, length: int) -> Geometry:
    """The view of `length` indices of a dimension from `start` on.

    Shape: `input` `(*)`; result with `length` at `dim`.

    >>> xtensor.arange(6).narrow(0, 2, 3)
    tensor([2, 3, 4])
    """
    if isinstance(start, Tensor) and (start.dim() or not start.dtype.is_integral):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    first, count = [v if type(v) is int else as_int(v) for v in (start, length)]
    return geometry.narrow(g, dim, first, count)


@view()
def diagonal(g: Geometry, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Geometry:
    """The view of the diagonal of two dimensions, which become one at the end.

    Shape: `input` `(*, n, m)` where these two are `dim1` and `dim2`; result `(*, k)`, k the diagonal's
    length.

    >>> xtensor.diagonal(xtensor.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return geometry.diagonal(g, offset, dim1, dim2)


@view()
def unfold(g: Geometry, dimension: int, size: int, step: int) -> Geometry:
    """Windows of `size` elements, `step` apart, along a dimension; their elements come last.

    Shape: `(*, n, *)`, result `(*, (n - size) // step + 1, *, size)`.

    >>> xtensor.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    return geometry.unfold(g, index(dimension), index(size), index(step))


@view(multiple=True)
def unbind(g: Geometry, dim: int = 0) -> list[Geometry]:
    """All slices along a dimension, without it.

    Shape: `input` `(*, S, *)` with S at `dim`; S tensors `(*, *)`.

    >>> xtensor.unbind(xtensor.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    return geometry.unbind(g, dim)


@view(multiple=True, name="equal_split", node="Split", method=False)
def equal_split(g: Geometry, split_size: int, dim: int = 0) -> list[Geometry]:
    """Pieces of `split_size` indices along a dimension; the last may be smaller."""
    return geometry.split(g, split_size, dim)


@view(multiple=True, node="SplitWithSizes")
def split_with_sizes(g: Geometry, split_sizes: Sequence[int], dim: int = 0) -> list[Geometry]:
    """Pieces of these lengths along a dimension.

    Shape: `input` `(*)`; pieces of the same sizes but along `dim`.
    """
    return geometry.split_with_sizes(g, ints(split_sizes), dim)


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of `split_size_or_sections` indices along a dimension (the last may be smaller), or of these lengths.

    Shape: `tensor` `(*, S, *)` with S at `dim`; pieces `(*, size, *)`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.

    >>> xtensor.split(xtensor.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if isinstance(split_size_or_sections, Tensor) and not sizes_of(split_size_or_sections):
        split_size_or_sections = index(split_size_or_sections)
    if isinstance(split_size_or_sections, int):
        return equal_split(tensor, split_size_or_sections, dim)
    return split_with_sizes(tensor, split_size_or_sections, dim)


def split_method(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of `split_size` indices along a dimension (the last may be smaller), or of these lengths.

    Shape: `(*)`; pieces of the same sizes but along `dim`.

    Raises: RuntimeError where the sizes do not add up.

    >>> [t.tolist() for t in xtensor.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    return split(self, split_size, dim)


@view(multiple=True, node="Split")
def chunk(g: Geometry, chunks: int, dim: int = 0) -> list[Geometry]:
    """At most `chunks` pieces of equal length along a dimension (the last may be smaller).

    Shape: `input` `(*, S, *)` with S at `dim`; pieces of `ceil(S / chunks)` there.

    >>> xtensor.chunk(xtensor.arange(6), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4, 5]))
    """
    return geometry.chunk(g, chunks, dim)


def pieces(name: str, where: Any) -> Any:
    """Sections or indices, which may come in a tensor."""
    if isinstance(where, Tensor):
        if where.dtype is not dtypes.int64:
            raise RuntimeError(
                f"{name} expected tensor_indices_or_sections to have dtype of long, but got {where.dtype.scalar_name}"
            )
        if where.dim() > 1:
            raise RuntimeError(
                f"{name} expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
                f"got a tensor with {where.dim()} dims"
            )
        where = where.tolist()
    elif not isinstance(where, int | Sequence) or isinstance(where, str):
        raise checks.argument_error(name, "indices_or_sections", 2, "tuple of ints", where)
    return where if isinstance(where, int) else ints(where)


@view(
    multiple=True,
    separate=True,
    node="Slice",
    signatures=(
        "Tensor input, tuple of ints indices, int dim = 0",
        "Tensor input, Tensor tensor_indices_or_sections, int dim = 0",
        "Tensor input, int sections, int dim = 0",
    ),
)
def tensor_split(g: Geometry, indices_or_sections: int | Sequence[int], dim: int = 0) -> list[Geometry]:
    """Pieces along a dimension: as many as given, of nearly equal length, or cut at these indices.

    Shape: `input` `(*)`; pieces of the same sizes but along `dim`.
    """
    return geometry.tensor_split(g, pieces("tensor_split", indices_or_sections), dim)


@view(
    multiple=True,
    separate=True,
    node="Slice",
    varargs="indices_or_sections",
    signatures=("Tensor input, int sections", "Tensor input, tuple of ints indices"),
)
def hsplit(g: Geometry, indices_or_sections: int | Sequence[int]) -> list[Geometry]:
    """`tensor_split` by columns.

    Shape: `input` `(*)`; pieces of the same sizes but along that dimension.
    """
    return geometry.hsplit(g, pieces("hsplit", indices_or_sections))


@view(
    multiple=True,
    separate=True,
    node="Slice",
    varargs="indices_or_sections",
    signatures=("Tensor input, int sections", "Tensor input, tuple of ints indices"),
)
def vsplit(g: Geometry, indices_or_sections: int | Sequence[int]) -> list[Geometry]:
    """`tensor_split` by rows.

    Shape: `input` `(*)`; pieces of the same sizes but along that dimension.
    """
    return geometry.vsplit(g, pieces("vsplit", indices_or_sections))


@view(
    multiple=True,
    separate=True,
    node="Slice",
    varargs="indices_or_sections",
    signatures=("Tensor input, int sections", "Tensor input, tuple of ints indices"),
)
def dsplit(g: Geometry, indices_or_sections: int | Sequence[int]) -> list[Geometry]:
    """`tensor_split` by depth.

    Shape: `input` `(*)`; pieces of the same sizes but along that dimension.
    """
    return geometry.dsplit(g, pieces("dsplit", indices_or_sections))


# -- sizes


def squeezed(node: Any) -> str:
    """The name of the node of `squeeze`: of all dimensions, of one, or of several."""
    dim = node.args[0] if node.args else None
    return f"SqueezeBackward{0 if dim is None else 1 if isinstance(dim, int) else 2}"


@view(
    varargs="dim",
    node=squeezed,
    signatures=("Tensor input", "Tensor input, int dim", "Tensor input, tuple of ints dim"),
)
def squeeze(g: Geometry, dim: Dims | None = None) -> Geometry:
    """The view without dimensions of size one: all, or those named that have it.

    Shape: `input` `(*)`; result without the sizes that are 1, or those of `dim`.

    >>> xtensor.zeros(1, 3, 1).squeeze().shape
    xtensor.Size([3])
    >>> xtensor.zeros(1, 3, 1).squeeze(0).shape
    xtensor.Size([3, 1])
    """
    return geometry.squeeze(g, dim if dim is None or isinstance(dim, int) else ints(dim))


@view()
def unsqueeze(g: Geometry, dim: int) -> Geometry:
    """The view with a new dimension of size one.

    Shape: `input` `(*)`; result with 1 inserted at `dim`, counted in the result.

    >>> xtensor.zeros(3).unsqueeze(1).shape, xtensor.zeros(3, 4).unsqueeze(-1).shape
    (xtensor.Size([3, 1]), xtensor.Size([3, 4, 1]))
    """
    return geometry.unsqueeze(g, dim)


@view(varargs="size")
def expand(g: Geometry, size: Sequence[int], implicit: bool = False) -> Geometry:
    """The view broadcast to `size` with stride 0; -1 keeps a size.

    Shape: `input` `(*)`, whose sizes are those of `size` or 1; result `size`.

    >>> xtensor.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return geometry.expand(g, ints(size))


@view(name="view", method=False)
def sized_view(g: Geometry, shape: Sequence[int]) -> Geometry:
    """The same elements in the same order with other sizes; RuntimeError where that needs a copy."""
    return geometry.view(g, ints(shape))


@view()
def unflatten(g: Geometry, dim: int, sizes: Sequence[int]) -> Geometry:
    """One dimension split into `sizes`.

    Shape: `input` `(*, n, *)`, result `(*, *sizes, *)`.
    """
    if not isinstance(sizes, (list, tuple)):
        raise checks.argument_error("unflatten", "sizes", 3, "tuple of ints", sizes)
    return geometry.unflatten(g, dim, ints(sizes))


VIEW: ViewOperator = sized_view.operator


def as_strided_geometry(g: Geometry, size: Any, stride: Any, storage_offset: int) -> Geometry:
    return Geometry(size, stride, storage_offset)


AS_STRIDED = ViewOperator("as_strided", as_strided_geometry, "AsStrided")


def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """The view of any sizes, strides and offset over the storage, in elements.

    Shape: result `size`.
    Raises RuntimeError where it would reach outside the storage.

    Raises: TypeError for arguments of other kinds.
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("as_strided", "input", 1, "Tensor", input)
    start = input.storage_offset()
    offset = start if storage_offset is None else as_int(storage_offset)
    if modes.state.transforms and is_sample(array_of(input)):
        check_sample(input, Geometry(ints(size), ints(stride), offset))
    found = geometry.as_strided(
        ints(size), ints(stride), offset, input.dtype.itemsize, input._xt_storage.nbytes()
    )
    if edge_of(input) is None or modes.state.mode & modes.NO_GRAD:
        return alias_of(AS_STRIDED, input, found, ())
    sizes, strides = tuple(sizes_of(input)), tuple(strides_of(input))
    args = (found.sizes, found.strides, found.offset - start)
    # What lies outside of the input, in memory that it shares, has no part in its gradient.
    within = start <= found.offset and found.offset + reach(found) < start + geometry.numel(sizes)
    if within and strides == geometry.contiguous_strides(sizes):
        return alias_of(AS_STRIDED, input, found, args)
    if within and geometry.is_non_overlapping_and_dense(sizes, strides):
        # The elements in memory order are a contiguous tensor, of which this is a strided view.
        return alias_of(AS_STRIDED, permute(input, memory_order(sizes, strides)), found, args)
    result = alias_of(AS_STRIDED, input, found, args)
    result._xt_edge = edge_of(through_memory(input, found))
    return result


def is_sample(array: Any) -> bool:
    """Whether an array, or the tangent that goes along with it, is that of one sample of a batch."""
    parts = (array, array.tangent) if type(array) is Dual else (array,)
    return any(part is not None and batches_of(part) for part in parts)


def check_sample(input: Tensor, made: Geometry) -> None:
    """RuntimeError for a view of a sample of a batch that reaches out of the sample: others may lie there."""
    own = geometry_of(input)
    (low, high), (first, last) = ((g.offset, g.offset + reach(g) + 1) for g in (own, made))
    if geometry.numel(made.sizes) and (first < low or last > high):
        raise RuntimeError(
            f"result = tensor.as_strided({list(made.sizes)},{list(made.strides)},{made.offset})can access memory outside of "
            f"`tensor`. `result` can access somememory in range [{first}, {last}], but `tensor` can only access some memory in "
            f"range [{low}, {high}]. This is not supported inside of vmap, please try torewrite the `as_strided` call as a "
            "sequence of PyTorch view operations"
        )


def reach(g: Geometry) -> int:
    """How far the last element lies behind the first."""
    return sum((n - 1) * s for n, s in zip(g.sizes, g.strides, strict=True))


def through_memory(input: Tensor, made: Geometry) -> Tensor:
    """The values of a view of other geometry, by way of the memory: elements that share a place have a part of it each."""
    own = geometry_of(input)
    reads, writes = places(own.sizes, own.strides, own.offset), places(made.sizes, made.strides, made.offset)
    first = min(reads.min(initial=0), writes.min(initial=0))
    count = np.bincount(
        reads - first, minlength=int(max(reads.max(initial=0), writes.max(initial=0)) - first) + 1
    )
    place = input.device
    share, source, target = (
        wrap(devices.put(a, place)) for a in (1 / count[reads - first], reads - first, writes - first)
    )
    parts = input.reshape(-1) * share.to(input.dtype)
    return input.new_zeros(len(count)).index_add(0, source, parts)[target].reshape(made.sizes)


def places(sizes: Sequence[int], strides: Sequence[int], offset: int) -> np.ndarray[Any, Any]:
    """Where in memory the elements lie, one after the other."""
    found = np.full((1,), offset)
    for size, stride in zip(sizes, strides, strict=True):
        found = (found[:, None] + np.arange(size) * stride).reshape(-1)
    return found


AS_STRIDED.function = as_strided
VIEWS["as_strided"] = AS_STRIDED
attach(AS_STRIDED)


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """The view broadcast to `size`.

    Shape: `input` `(*)`, whose sizes are those of `size` or 1; result `size`.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.broadcast_to(xtensor.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, size)


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """The view broadcast to the sizes of `other`.

    Shape: `input` broadcast to that of `other`.

    Raises: RuntimeError where sizes do not fit.

    >>> xtensor.tensor([[1], [2]]).expand_as(xtensor.ones(2, 3))
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return expand(input, tuple(sizes_of(other)))


def shape_arguments(name: str, shape: tuple[Any, ...], keyword: Any) -> tuple[int, ...]:
    """Sizes given one by one, as one sequence, or by keyword."""
    if keyword is not None:
        return ints(keyword)
    for s in shape:
        if type(s) is not int:
            break
    else:
        if not shape:
            raise nothing_given(name)
        return shape
    if (
        len(shape) == 1
        and not isinstance(shape[0], int)
        and not is_open(shape[0])
        and not (isinstance(shape[0], Tensor) and shape[0].dim() == 0)
    ):
        try:
            return ints(shape[0])
        except (TypeError, AttributeError):
            raise no_shape(name, shape[0]) from None
    try:
        return tuple([s if type(s) is int else as_int(s) for s in shape])
    except (TypeError, AttributeError):
        bad = next(s for s in shape if not is_size(s))
        raise checks.argument_error(name, "shape", 1, "tuple of ints", bad) from None


reshaped = known(geometry.reshape)
flat_sizes = bounded(1024)(geometry.flatten_sizes)


def reshape(input: Tensor, shape: Sequence[int]) -> Tensor:
    """The elements in row-major order with other sizes: a view where strides allow, else a copy.

    Shape: `input` `(*)`; result `shape`, where one size may be -1: what is left.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("reshape", "input", 1, "Tensor", input)
    return reshape_to(input, ints(shape))


def reshape_to(input: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The tensor with other sizes."""
    v = input._xt_view
    if v is None:
        found, offset = reshaped(input._xt_storage.raw.shape, None, sizes), 0
    else:
        found, offset = reshaped(v.sizes, v.strides, sizes), v.offset
    if found is not None and modes.state.mode <= 1 and not dispatching:
        own, strides, _ = found
        return alias_of(VIEW, input, (own, strides, offset), (own,))
    if found is not None:
        return sized_view(input, sizes)
    result = sized_view(input.contiguous(), geometry.infer_size(sizes, input.numel()))
    # Nobody else sees the copy, so the result is no view; where views are taken out it is none anyway.
    if result._xt_view is not None:
        result._xt_view.base = None
    return result


def nothing_given(name: str) -> TypeError:
    """The error of a method that was given no sizes."""
    if name == "view":
        return checks.combination_error(name, (), {}, VIEW_SIGNATURES)
    return checks.missing_error(name, [SIZES_NAMES.get(name, "shape")])


def no_shape(name: str, given: Any) -> TypeError:
    """The error of a method that was given one thing for its sizes, which is no sequence of ints."""
    if name == "view" and not isinstance(given, (tuple, list)):
        return checks.combination_error(name, (given,), {}, VIEW_SIGNATURES)
    return checks.argument_error(name, SIZES_NAMES.get(name, "shape"), 1, "tuple of ints", given)


VIEW_SIGNATURES = ("torch.dtype dtype", "tuple of ints size")
SIZES_NAMES = {"view": "size", "expand": "size", "repeat": "repeats"}


def reshape_method(self: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The elements in row-major order with other sizes: a view where strides allow, else a copy.

    Shape: `(*)` of as many elements as `shape`; result `shape`, of which one size may be -1.

    Raises: RuntimeError where the sizes have another number of elements.

    >>> xtensor.arange(4).reshape(2, -1)
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape_to(self, shape_arguments("reshape", shape, named.get("shape") if named else None))


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` as one: a view where strides allow, else a copy.

    Shape: `input` `(*)`; sizes `start_dim` to `end_dim` as their product.

    Raises: IndexError where `start_dim` or `end_dim` is out of range; RuntimeError where `start_dim` comes
    after `end_dim`; TypeError for arguments of other kinds.

    >>> xtensor.zeros(2, 3, 4).flatten(1).shape
    xtensor.Size([2, 12])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("flatten", "input", 1, "Tensor", input)
    if type(start_dim) is not int or type(end_dim) is not int:
        for i, (name, dim) in enumerate((("start_dim", start_dim), ("end_dim", end_dim))):
            if not checks.is_whole(dim):
                raise checks.argument_error("flatten", name, i + 2, "int", dim)
    own = sizes_of(input)
    sizes = flat_sizes(own, start_dim, end_dim)
    return input if len(sizes) == len(own) else reshape_to(input, sizes)


@of_tensors()
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension: a view where strides allow, else a copy.

    Shape: `input` of n elements, result `(n)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for sparse tensors.
    """
    return reshape(input.contiguous(), (-1,))


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over broadcast dimensions that has these sizes.

    Shape: `(*)`, to which `size` broadcasts; result `size`.

    Raises: RuntimeError where the sizes do not broadcast to the tensor's.
    """
    sizes = shape_arguments("sum_to_size", size, None)
    have = tuple(sizes_of(self))
    lead = len(have) - len(sizes)
    if lead < 0 or any(s not in (1, h) for s, h in zip(sizes, have[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(sizes)}}} is not expandable to size {{{list(have)}}}.")
    dims = [*range(lead), *[lead + i for i, s in enumerate(sizes) if s == 1 and have[lead + i] != 1]]
    if not sizes:
        return self.sum()  # which makes int64 of integers even where nothing is summed
    return self.sum(dims, keepdim=True).view(sizes) if dims else self


def T(self: Tensor) -> Tensor:
    """The view with the order of dimensions reversed.

    Shape: `(n, m)`, result `(m, n)`; so for any number of dimensions.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.ones(2, 3).T.shape
    xtensor.Size([3, 2])
    """
    return reverse_dims(self)


def mT(self: Tensor) -> Tensor:
    """The view with the last two dimensions swapped; a tensor of one number is given back.

    Shape: `(*, n, m)`, result `(*, m, n)`.
    Differs from PyTorch: which warns of the latter.

    Raises: RuntimeError for fewer than two dimensions.
    """
    if self.dim() == 0:
        return self
    if self.dim() < 2:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return matrix_transpose(self)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The elements as a view of the sizes of `other`; RuntimeError where strides do not allow that.

    Shape: `(*)` of as many elements as `other`; result that of `other`.

    Raises: RuntimeError where sizes do not fit.

    >>> xtensor.arange(4).view_as(xtensor.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return sized_view(self, tuple(sizes_of(other)))


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The elements in the sizes of `other`, as a view where that is possible.

    Shape: `(*)` of as many elements as `other`; result that of `other`.

    Raises: RuntimeError where sizes do not fit.
    """
    return reshape(self, tuple(sizes_of(other)))


attach_methods(sum_to_size, broadcast_to, expand_as, flatten, ravel)
attach_methods(
    reshape=reshape_method,
    split=split_method,
    view_as=view_as,
    reshape_as=reshape_as,
    T=property(T),
    mT=property(mT),
)
