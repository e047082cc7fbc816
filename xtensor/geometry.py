"""The arithmetic of strided tensors: sizes, strides and offsets in, sizes, strides and offsets out.

Every function is pure; results, exception classes and wordings are PyTorch's, down to the strides of dimensions of
size 0 and 1. Strides and offsets count elements of the tensor's dtype. A view function takes any `(sizes, strides,
offset)` triple of tuples and ints, and returns a `Geometry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Literal, NamedTuple

from .checks import wrap_dim

Ints = tuple[int, ...]
MemoryFormat = Literal["contiguous_format", "channels_last", "channels_last_3d", "preserve_format"]
_MAX = 2**63 - 1


class Geometry(NamedTuple):
    """Where a tensor's elements lie in its storage, in elements of its dtype."""

    sizes: Ints
    strides: Ints
    offset: int


GeometryLike = Geometry | tuple[Ints, Ints, int]
_make = tuple.__new__  # a NamedTuple's own constructor costs twice as much


def numel(sizes: Ints) -> int:
    """The number of elements of a tensor of these sizes."""
    return prod(sizes)


def check_numel(sizes: Sequence[int]) -> None:
    """Refuse sizes whose product, taken from the first, leaves 64 bits, and negative ones.

    Differs from PyTorch: a negative size next to a size of 0 is refused too.
    """
    total = 1
    for size in sizes:
        total *= size
        if size < 0 or total > _MAX:
            raise RuntimeError("numel: integer multiplication overflow")


# --- layout: which strides are dense, contiguous, channels last ----------------------------------------------------


@lru_cache(maxsize=8192)
def contiguous_strides(sizes: Ints) -> Ints:
    """Row-major strides; a dimension of size 0 counts as 1, as in PyTorch."""
    strides = []
    step = 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size or 1
    return tuple(reversed(strides))


_CHANNELS_LAST_ORDER = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}
_RANK = {"channels_last": 4, "channels_last_3d": 5}


def channels_last_strides(sizes: Ints) -> Ints:
    """Strides of a channels-last tensor, NCHW (4 dimensions) or NCDHW (5); a size of 0 multiplies, as in PyTorch."""
    strides = [0] * len(sizes)
    step = 1
    for dim in _CHANNELS_LAST_ORDER[len(sizes)]:
        strides[dim] = step
        step *= sizes[dim]
    return tuple(strides)


def format_strides(sizes: Ints, memory_format: MemoryFormat) -> Ints:
    """Strides of a new tensor in `contiguous_format`, `channels_last` (4-d) or `channels_last_3d` (5-d)."""
    if memory_format == "contiguous_format":
        return contiguous_strides(sizes)
    rank = _RANK.get(memory_format)
    if rank is None:
        raise RuntimeError("unsupported memory format Preserve")
    if len(sizes) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format} format")
    return channels_last_strides(sizes)


def is_contiguous(sizes: Ints, strides: Ints, memory_format: MemoryFormat = "contiguous_format") -> bool:
    """Whether the elements lie in memory in the order of `memory_format`, without gaps."""
    rank = _RANK.get(memory_format)
    if rank is not None:
        return len(sizes) == rank and _is_dense_in(sizes, strides, _CHANNELS_LAST_ORDER[rank])
    if strides == contiguous_strides(sizes) or 0 in sizes:
        return True
    return _is_dense_in(sizes, strides, range(len(sizes) - 1, -1, -1))


def _is_dense_in(sizes: Ints, strides: Ints, order: Sequence[int]) -> bool:
    """Whether the dimensions, fastest first in `order`, are packed; the strides of sizes of 1 do not matter."""
    expected = 1
    for dim in order:
        size = sizes[dim]
        if size != 1:
            if strides[dim] != expected:
                return False
            expected *= size
    return True


@lru_cache(maxsize=8192)
def is_non_overlapping_and_dense(sizes: Ints, strides: Ints) -> bool:
    """Whether the elements fill one block of memory, each place once, in some order of the dimensions."""
    if 0 in sizes:
        return True
    expected = 1
    for stride, size in sorted((st, s) for s, st in zip(sizes, strides) if s != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def suggest_memory_format(sizes: Ints, strides: Ints) -> MemoryFormat:
    """The memory format that these strides show; ambiguous cases are contiguous."""
    order = _CHANNELS_LAST_ORDER.get(len(sizes))
    if order is None or strides[1] == 0 or 0 in sizes:
        return "contiguous_format"
    least = 0
    for dim in order:
        if strides[dim] < least or (dim == 0 and least == strides[1]):
            return "contiguous_format"
        least = strides[dim] * sizes[dim]
    return "channels_last" if len(sizes) == 4 else "channels_last_3d"


@lru_cache(maxsize=8192)
def preserve_strides(sizes: Ints, strides: Ints) -> Ints:
    """The strides that `clone` and `empty_like` give under `preserve_format`."""
    if is_non_overlapping_and_dense(sizes, strides):
        return strides
    order = _fastest_first(sizes, [strides])
    result = [0] * len(sizes)
    step = 1
    for dim in order:
        result[dim] = step
        step *= sizes[dim] or 1
    return tuple(result)


def _fastest_first(shape: Ints, operands: Sequence[Ints]) -> list[int]:
    """Dimensions from fastest to slowest by the operands' strides, the first operand that tells them apart deciding.

    The comparison is partial (a broadcast dimension says nothing), so this is PyTorch's insertion sort, not `sorted`.
    """
    perm = list(range(len(shape) - 1, -1, -1))
    for start in range(1, len(perm)):
        here = start
        for other in range(start - 1, -1, -1):
            fast, slow = perm[other], perm[here]
            verdict = 0
            for strides in operands:
                a, b = strides[fast], strides[slow]
                if a == 0 or b == 0:
                    continue
                if a != b:
                    verdict = 1 if a > b else -1
                    break
                if shape[fast] > shape[slow]:
                    verdict = 1
                    break
            if verdict > 0:
                perm[other], perm[here] = slow, fast
                here = other
            elif verdict < 0:
                break
    return perm


@lru_cache(maxsize=8192)
def iterator_strides(shape: Ints, operands: tuple[tuple[Ints, Ints], ...]) -> Ints:
    """Strides of the fresh result of a pointwise operator over operands of these (sizes, strides).

    `shape` is the broadcast shape. A Python scalar counts as an operand of sizes `()`, as it does in PyTorch.
    """
    if all(sizes == shape for sizes, _ in operands):
        if all(is_contiguous(sizes, strides) for sizes, strides in operands):
            return contiguous_strides(shape)
        if all(is_contiguous(sizes, strides, "channels_last") for sizes, strides in operands):
            return channels_last_strides(shape)
        first = operands[0][1]
        if all(
            strides == first and is_non_overlapping_and_dense(sizes, strides) for sizes, strides in operands
        ):
            return first
    ndim = len(shape)
    aligned = []
    for sizes, strides in operands:
        lead = ndim - len(sizes)
        own = [0 if sizes[i] == 1 and shape[lead + i] != 1 else strides[i] for i in range(len(sizes))]
        aligned.append((0,) * lead + tuple(own))
    order = _fastest_first(shape, aligned)
    if order == list(range(ndim - 1, -1, -1)):
        return contiguous_strides(shape)
    result = [0] * ndim
    step = 1
    for dim in order:
        result[dim] = step
        step *= shape[dim]
    return tuple(result)


# --- memory: extent, bounds, overlap -------------------------------------------------------------------------------


def storage_extent(g: GeometryLike) -> tuple[int, int]:
    """The half-open range of element indices that a tensor touches; empty at its offset for an empty tensor."""
    sizes, strides, offset = g
    if 0 in sizes:
        return offset, offset
    last = offset
    for size, stride in zip(sizes, strides):
        last += (size - 1) * stride
    return offset, last + 1


def storage_nbytes(sizes: Ints, strides: Ints, itemsize: int, offset: int = 0) -> int:
    """The bytes a storage must have to hold this tensor; 0 for an empty one."""
    if 0 in sizes:
        return 0
    needed = (storage_extent((sizes, strides, offset))[1]) * itemsize
    if needed > _MAX or min(sizes, default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(sizes)} and strides={list(strides)}"
        )
    return needed


def check_in_storage(g: GeometryLike, itemsize: int, nbytes: int) -> None:
    """Raise PyTorch's RuntimeError where a tensor reaches beyond a storage of `nbytes` bytes."""
    sizes, strides, offset = g
    needed = storage_nbytes(sizes, strides, itemsize, offset)
    if needed > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {needed} are out of bounds for storage of size {nbytes}"
        )


Overlap = Literal["NO", "YES", "TOO_HARD"]
OverlapStatus = Literal["FULL", "PARTIAL", "NO", "TOO_HARD"]


@lru_cache(maxsize=8192)
def has_internal_overlap(sizes: Ints, strides: Ints) -> Overlap:
    """Whether two elements share a place: `YES` only for an expanded dimension, `TOO_HARD` where it takes a search."""
    if is_non_overlapping_and_dense(sizes, strides):
        return "NO"
    for size, stride in zip(sizes, strides):
        if stride == 0 and size > 1:
            return "YES"
    return "TOO_HARD"


def overlap_status(
    a: GeometryLike, b: GeometryLike, a_itemsize: int = 1, b_itemsize: int = 1
) -> OverlapStatus:
    """How two different tensors of ONE storage share memory; `TOO_HARD` unless both are dense."""
    if 0 in a[0] or 0 in b[0]:
        return "NO"
    if not is_non_overlapping_and_dense(a[0], a[1]) or not is_non_overlapping_and_dense(b[0], b[1]):
        return "TOO_HARD"
    a_start, b_start = a[2] * a_itemsize, b[2] * b_itemsize
    a_end, b_end = a_start + prod(a[0]) * a_itemsize, b_start + prod(b[0]) * b_itemsize
    if a_start == b_start and a_end == b_end:
        return "FULL" if a[1] == b[1] else "PARTIAL"
    return "PARTIAL" if a_start < b_end and b_start < a_end else "NO"


_INTERNAL_OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)
INPUT_OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


def assert_no_internal_overlap(sizes: Ints, strides: Ints) -> None:
    """Refuse a destination in which an expanded dimension stores several elements in one place."""
    if has_internal_overlap(sizes, strides) == "YES":
        raise RuntimeError(_INTERNAL_OVERLAP)


def assert_no_partial_overlap(
    a: GeometryLike, b: GeometryLike, a_itemsize: int = 1, b_itemsize: int = 1
) -> None:
    """Refuse a destination that shares part of its memory with an input of the same storage (pointwise operators)."""
    if overlap_status(a, b, a_itemsize, b_itemsize) == "PARTIAL":
        raise RuntimeError(INPUT_OVERLAP)


def assert_no_overlap(a: GeometryLike, b: GeometryLike, a_itemsize: int = 1, b_itemsize: int = 1) -> None:
    """Refuse a destination that shares any memory with an input of the same storage (indexing operators)."""
    if overlap_status(a, b, a_itemsize, b_itemsize) in ("PARTIAL", "FULL"):
        raise RuntimeError(INPUT_OVERLAP)


# --- shapes: broadcasting, view sizes ------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Ints) -> Ints:
    """The shape to which all broadcast; RuntimeError names the first pair of sizes that disagree."""
    result: Ints = ()
    for shape in shapes:
        result = shape if not result else _broadcast_two(result, shape)
    return result


def _broadcast_two(a: Ints, b: Ints) -> Ints:
    if a == b:
        return a
    short = len(a) - len(b)
    padded_a, padded_b = (1,) * -short + a, (1,) * short + b
    result = []
    for dim in range(len(padded_a) - 1, -1, -1):
        x, y = padded_a[dim], padded_b[dim]
        if x != y and x != 1 and y != 1:
            raise RuntimeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {dim}"
            )
        result.append(y if x == 1 else x)
    return tuple(reversed(result))


def infer_size(shape: Ints, count: int) -> Ints:
    """`shape` with its -1, if any, replaced so that it holds `count` elements."""
    known = 1
    unknown = -1
    for dim, size in enumerate(shape):
        if size == -1:
            if unknown >= 0:
                raise RuntimeError("only one dimension can be inferred")
            unknown = dim
        elif size < 0:
            raise RuntimeError(f"invalid shape dimension {size} at index {dim} of shape {list(shape)}")
        else:
            known *= size
    if unknown < 0:
        if known == count:
            return shape
    elif known == count == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    elif known > 0 and count % known == 0:
        return (*shape[:unknown], count // known, *shape[unknown + 1 :])
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")


def view_strides(sizes: Ints, strides: Ints, shape: Ints) -> Ints | None:
    """Strides under which the same memory reads as `shape` (same number of elements), or None where none exist."""
    if not sizes:
        return (1,) * len(shape)
    if 0 in sizes:
        return strides if sizes == shape else contiguous_strides(shape)
    result = [0] * len(shape)
    dim = len(shape) - 1
    base = strides[-1]
    chunk = viewed = 1
    for old in range(len(sizes) - 1, -1, -1):
        chunk *= sizes[old]
        # A chunk is a run of old dimensions that are contiguous with one another; new ones must fill it exactly.
        if old and (sizes[old - 1] == 1 or strides[old - 1] == chunk * base):
            continue
        while dim >= 0 and (viewed < chunk or shape[dim] == 1):
            result[dim] = viewed * base
            viewed *= shape[dim]
            dim -= 1
        if viewed != chunk:
            return None
        if old:
            base = strides[old - 1]
            chunk = viewed = 1
    return None if dim >= 0 else tuple(result)


@lru_cache(maxsize=8192)
def _view(sizes: Ints, strides: Ints, shape: Ints) -> tuple[Ints, Ints] | None:
    shape = infer_size(shape, prod(sizes))
    result = view_strides(sizes, strides, shape)
    return None if result is None else (shape, result)


def view(g: GeometryLike, shape: Ints) -> Geometry:
    """The same elements as `shape` (one size may be -1) without a copy; RuntimeError where strides do not allow it."""
    found = _view(g[0], g[1], shape)
    if found is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return _make(Geometry, (found[0], found[1], g[2]))


def reshape(g: GeometryLike, shape: Ints) -> Geometry | None:
    """As `view`, but None where only a copy can have this shape."""
    found = _view(g[0], g[1], shape)
    return None if found is None else _make(Geometry, (found[0], found[1], g[2]))


def flatten_sizes(sizes: Ints, start_dim: int = 0, end_dim: int = -1) -> Ints:
    """The shape that `flatten` reshapes to: dimensions `start_dim` to `end_dim` inclusive become one."""
    ndim = len(sizes)
    start, end = wrap_dim(start_dim, ndim), wrap_dim(end_dim, ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not ndim:
        return (1,)
    return (*sizes[:start], prod(sizes[start : end + 1]), *sizes[end + 1 :])


def flatten(g: GeometryLike, start_dim: int = 0, end_dim: int = -1) -> Geometry | None:
    """Dimensions `start_dim` to `end_dim` inclusive as one, or None where only a copy can have that shape."""
    sizes = g[0]
    shape = flatten_sizes(sizes, start_dim, end_dim)
    return _make(Geometry, tuple(g)) if len(shape) == len(sizes) else reshape(g, shape)


def unflatten(g: GeometryLike, dim: int, shape: Ints) -> Geometry:
    """Split dimension `dim` into `shape` (one size may be -1)."""
    sizes, _, _ = g
    if not shape:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not sizes and dim in (0, -1):
        raise RuntimeError(
            "unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions"
        )
    dim = wrap_dim(dim, len(sizes))
    try:
        inner = infer_size(shape, sizes[dim])
    except RuntimeError as error:
        message = str(error)
        if message.startswith("shape '"):
            raise RuntimeError(
                f"unflatten: Provided sizes {list(shape)} don't multiply up to the size of dim {dim} ({sizes[dim]}) "
                "in the input tensor"
            ) from None
        raise RuntimeError(f"unflatten got an unexpected error:\n{message}") from None
    return view(g, (*sizes[:dim], *inner, *sizes[dim + 1 :]))


# --- views that rearrange dimensions -------------------------------------------------------------------------------


def expand(g: GeometryLike, shape: Ints, type_name: str = "torch.FloatTensor") -> Geometry:
    """Broadcast to `shape` with stride 0; -1 keeps a size. `type_name` is PyTorch's `type()`, for the message."""
    sizes, strides, offset = g
    lead = len(shape) - len(sizes)
    if lead < 0:
        raise RuntimeError(
            f"expand({type_name}{{{list(sizes)}}}, size={list(shape)}): the number of sizes provided ({len(shape)}) "
            f"must be greater or equal to the number of dimensions in the tensor ({len(sizes)})"
        )
    if not sizes:
        new_sizes, new_strides = list(shape), [0] * lead
    else:
        new_sizes, new_strides = list(shape), [0] * len(shape)
        for i in range(len(shape) - 1, -1, -1):
            target = shape[i]
            if i >= lead:
                size, stride = sizes[i - lead], strides[i - lead]
                if target == -1:
                    target = size
            else:
                size, stride = 1, new_sizes[i + 1] * new_strides[i + 1]
                if target == -1:
                    raise RuntimeError(
                        f"The expanded size of the tensor ({target}) isn't allowed in a leading, non-existing "
                        f"dimension {i}"
                    )
            if size != target:
                if size != 1:
                    raise RuntimeError(
                        f"The expanded size of the tensor ({target}) must match the existing size ({size}) at "
                        f"non-singleton dimension {i}.  Target sizes: {list(shape)}.  Tensor sizes: {list(sizes)}"
                    )
                stride = 0
            new_sizes[i], new_strides[i] = target, stride
    check_numel(new_sizes)
    return _make(Geometry, (tuple(new_sizes), tuple(new_strides), offset))


def permute(g: GeometryLike, dims: Sequence[int]) -> Geometry:
    """The dimensions in the order `dims`."""
    sizes, strides, offset = g
    ndim = len(sizes)
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    order: list[int] = []
    for dim in dims:
        dim = wrap_dim(dim, ndim)
        if dim in order:
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        order.append(dim)
    return _make(Geometry, (tuple([sizes[d] for d in order]), tuple([strides[d] for d in order]), offset))


def transpose(g: GeometryLike, dim0: int, dim1: int) -> Geometry:
    """Two dimensions swapped."""
    sizes, strides, offset = g
    ndim = len(sizes)
    a = dim0 + ndim if dim0 < 0 else dim0
    b = dim1 + ndim if dim1 < 0 else dim1
    if not (0 <= a < ndim and 0 <= b < ndim):
        wrap_dim(dim0, ndim)
        wrap_dim(dim1, ndim)
        return _make(Geometry, (sizes, strides, offset))  # 0 and -1 are dimensions of a 0-d tensor
    if a == b:
        return _make(Geometry, (sizes, strides, offset))
    if ndim == 2:
        return _make(Geometry, ((sizes[1], sizes[0]), (strides[1], strides[0]), offset))
    new_sizes, new_strides = list(sizes), list(strides)
    new_sizes[a], new_sizes[b] = new_sizes[b], new_sizes[a]
    new_strides[a], new_strides[b] = new_strides[b], new_strides[a]
    return _make(Geometry, (tuple(new_sizes), tuple(new_strides), offset))


def t(g: GeometryLike) -> Geometry:
    """The transpose of a matrix; a vector or a scalar as it is."""
    sizes, strides, offset = g
    ndim = len(sizes)
    if ndim == 2:
        return _make(Geometry, ((sizes[1], sizes[0]), (strides[1], strides[0]), offset))
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return _make(Geometry, (sizes, strides, offset))


def movedim(g: GeometryLike, source: Sequence[int], destination: Sequence[int]) -> Geometry:
    """Dimensions `source` moved to places `destination`; the others keep their order."""
    ndim = len(g[0])
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number "
            f"of dims as destination ({list(destination)} dims)"
        )
    sources = [wrap_dim(d, ndim) for d in source]
    places = [wrap_dim(d, ndim) for d in destination]
    for name, wrapped, given in (("source", sources, source), ("destination", places, destination)):
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if not ndim:
        return _make(Geometry, tuple(g))
    order = [d for d in range(ndim) if d not in sources]
    for place, dim in sorted(zip(places, sources)):
        order.insert(place, dim)
    return permute(g, order)


def squeeze(g: GeometryLike, dim: int | Sequence[int] | None = None) -> Geometry:
    """Without the dimensions of size 1: all of them, or those among `dim`."""
    sizes, strides, offset = g
    ndim = len(sizes)
    if dim is None:
        dims: Sequence[int] = range(ndim)
    elif isinstance(dim, int):
        dims = (wrap_dim(dim, ndim),)
    else:
        dims = []
        for d in dim:
            d = wrap_dim(d, ndim)
            if d in dims:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
            dims.append(d)
    kept = [d for d in range(ndim) if sizes[d] != 1 or d not in dims]
    return _make(Geometry, (tuple([sizes[d] for d in kept]), tuple([strides[d] for d in kept]), offset))


def unsqueeze(g: GeometryLike, dim: int) -> Geometry:
    """With a new dimension of size 1 before `dim`."""
    sizes, strides, offset = g
    dim = wrap_dim(dim, len(sizes) + 1)
    stride = sizes[dim] * strides[dim] if dim < len(sizes) else 1
    return _make(
        Geometry, ((*sizes[:dim], 1, *sizes[dim:]), (*strides[:dim], stride, *strides[dim:]), offset)
    )


# --- views that take a part ----------------------------------------------------------------------------------------


def select(g: GeometryLike, dim: int, index: int) -> Geometry:
    """The slice at `index` of dimension `dim`, without that dimension; IndexError out of range."""
    sizes, strides, offset = g
    ndim = len(sizes)
    if not ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = dim + ndim if dim < 0 else dim
    if not 0 <= d < ndim:
        wrap_dim(dim, ndim)
    size = sizes[d]
    i = index + size if index < 0 else index
    if not 0 <= i < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(sizes)} at dimension {d}"
        )
    offset += i * strides[d]
    if d == 0:
        return _make(Geometry, (sizes[1:], strides[1:], offset))
    return _make(Geometry, (sizes[:d] + sizes[d + 1 :], strides[:d] + strides[d + 1 :], offset))


def slice(
    g: GeometryLike, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Geometry:
    """Elements `start:end:step` of dimension `dim`, clamped as a Python slice is; `step` must be positive."""
    sizes, strides, offset = g
    ndim = len(sizes)
    if not ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    d = dim + ndim if dim < 0 else dim
    if not 0 <= d < ndim:
        wrap_dim(dim, ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    size = sizes[d]
    if start is None:
        start = 0
    elif start < 0:
        start = max(start + size, 0)
    elif start > size:
        start = size
    if end is None or end > size:
        end = size
    elif end < 0:
        end += size
    length = (end - start + step - 1) // step if end > start else 0
    stride = strides[d]
    offset += start * stride
    if step != 1:
        strides = (*strides[:d], stride * step, *strides[d + 1 :])
    if d == 0:
        return _make(Geometry, ((length, *sizes[1:]), strides, offset))
    return _make(Geometry, ((*sizes[:d], length, *sizes[d + 1 :]), strides, offset))


def narrow(g: GeometryLike, dim: int, start: int, length: int) -> Geometry:
    """`length` elements of dimension `dim` from `start`; unlike a slice, a range that does not fit is an error."""
    sizes, strides, offset = g
    ndim = len(sizes)
    if not ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    d = dim + ndim if dim < 0 else dim
    if not 0 <= d < ndim:
        wrap_dim(dim, ndim)
    size = sizes[d]
    first = start + size if start < 0 else start
    if not 0 <= first <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    offset += first * strides[d]
    if d == 0:
        return _make(Geometry, ((length, *sizes[1:]), strides, offset))
    return _make(Geometry, ((*sizes[:d], length, *sizes[d + 1 :]), strides, offset))


def diagonal(g: GeometryLike, diagonal: int = 0, dim1: int = 0, dim2: int = 1) -> Geometry:
    """The diagonal of dimensions `dim1` and `dim2`, `diagonal` places above the main one, as a new last dimension."""
    sizes, strides, offset = g
    a, b = wrap_dim(dim1, len(sizes)), wrap_dim(dim2, len(sizes))
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if diagonal >= 0:
        length = max(min(sizes[a], sizes[b] - diagonal), 0)
        start = diagonal * strides[b]
    else:
        length = max(min(sizes[a] + diagonal, sizes[b]), 0)
        start = -diagonal * strides[a]
    kept = [d for d in range(len(sizes)) if d != a and d != b]
    return Geometry(
        (*[sizes[d] for d in kept], length),
        (*[strides[d] for d in kept], strides[a] + strides[b]),
        offset + start if length else offset,
    )


def unfold(g: GeometryLike, dim: int, size: int, step: int) -> Geometry:
    """Windows of `size` elements, `step` apart, along `dim`: their count replaces it, their elements come last."""
    sizes, strides, offset = g
    dim = wrap_dim(dim, len(sizes))
    length, stride = (sizes[dim], strides[dim]) if sizes else (1, 1)
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not sizes:
        return Geometry((size,), (1,), offset)
    count = (length - size) // step + 1
    return Geometry(
        (*sizes[:dim], count, *sizes[dim + 1 :], size),
        (*strides[:dim], stride * step, *strides[dim + 1 :], stride),
        offset,
    )


def as_strided(sizes: Ints, strides: Ints, offset: int, itemsize: int, nbytes: int) -> Geometry:
    """Any geometry inside a storage of `nbytes` bytes; RuntimeError for one that reaches outside it."""
    if len(sizes) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if strides and min(strides) < 0:
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}"
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    result = Geometry(sizes, strides, offset)
    check_in_storage(result, itemsize, nbytes)
    check_numel(sizes)
    return result


# --- views that split ----------------------------------------------------------------------------------------------


def _pieces(g: GeometryLike, dim: int, lengths: Sequence[int]) -> list[Geometry]:
    """Consecutive parts of dimension `dim`, of these lengths."""
    sizes, strides, offset = g
    before, after, stride = sizes[:dim], sizes[dim + 1 :], strides[dim]
    result = []
    for length in lengths:
        result.append(Geometry((*before, length, *after), strides, offset))
        offset += length * stride
    return result


def split(g: GeometryLike, split_size: int, dim: int = 0) -> list[Geometry]:
    """Parts of `split_size` along `dim`; the last may be smaller."""
    sizes = g[0]
    if not sizes:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    dim = wrap_dim(dim, len(sizes))
    size = sizes[dim]
    if split_size == 0:
        if size:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
            )
        return _pieces(g, dim, [0])
    whole, rest = divmod(size, split_size)
    return _pieces(g, dim, [split_size] * whole + ([rest] if rest or not whole else []))


def split_with_sizes(g: GeometryLike, split_sizes: Sequence[int], dim: int = 0) -> list[Geometry]:
    """Parts of the given sizes along `dim`, which must add up to its size."""
    sizes = g[0]
    if not sizes:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    wrapped = wrap_dim(dim, len(sizes))
    if any(length < 0 for length in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != sizes[wrapped]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {sizes[wrapped]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    return _pieces(g, wrapped, split_sizes)


def chunk(g: GeometryLike, chunks: int, dim: int = 0) -> list[Geometry]:
    """At most `chunks` parts of equal size along `dim`, the last perhaps smaller."""
    sizes = g[0]
    if not sizes:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, len(sizes))
    size = sizes[dim]
    return split(g, (size + chunks - 1) // chunks, dim) if size else _pieces(g, dim, [0] * chunks)


def tensor_split(g: GeometryLike, sections_or_indices: int | Sequence[int], dim: int = 0) -> list[Geometry]:
    """`sections` parts whose sizes differ by at most one, or parts cut at the given indices (as slices clamp them)."""
    sizes = g[0]
    if not sizes:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    dim = wrap_dim(dim, len(sizes))
    if isinstance(sections_or_indices, int):
        sections = sections_or_indices
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        least, extra = divmod(sizes[dim], sections)
        return _pieces(g, dim, [least + 1] * extra + [least] * (sections - extra))
    bounds = [0, *sections_or_indices, sizes[dim]]
    return [slice(g, dim, bounds[i], bounds[i + 1]) for i in range(len(bounds) - 1)]


def _named_split(
    name: str, rank: int, g: GeometryLike, dim: int, where: int | Sequence[int]
) -> list[Geometry]:
    sizes = g[0]
    if len(sizes) < rank:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {rank} dimension, but got a tensor with {len(sizes)} "
            "dimensions!"
        )
    if isinstance(where, int) and (where == 0 or sizes[dim] % where):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {sizes[dim]} is not "
            f"divisible by the split_size {where}!"
        )
    return tensor_split(g, where, dim)


def hsplit(g: GeometryLike, sections_or_indices: int | Sequence[int]) -> list[Geometry]:
    """Split by columns: along dimension 1, or 0 of a vector; a count must divide the size."""
    return _named_split("hsplit", 1, g, 0 if len(g[0]) == 1 else 1, sections_or_indices)


def vsplit(g: GeometryLike, sections_or_indices: int | Sequence[int]) -> list[Geometry]:
    """Split by rows, along dimension 0 of at least two; a count must divide the size."""
    return _named_split("vsplit", 2, g, 0, sections_or_indices)


def dsplit(g: GeometryLike, sections_or_indices: int | Sequence[int]) -> list[Geometry]:
    """Split by depth, along dimension 2 of at least three; a count must divide the size."""
    return _named_split("dsplit", 3, g, 2, sections_or_indices)


def unbind(g: GeometryLike, dim: int = 0) -> list[Geometry]:
    """Every slice along `dim`, without that dimension."""
    sizes, strides, offset = g
    if not sizes and dim in (0, -1):
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, len(sizes))
    rest_sizes, rest_strides = sizes[:dim] + sizes[dim + 1 :], strides[:dim] + strides[dim + 1 :]
    return [Geometry(rest_sizes, rest_strides, offset + i * strides[dim]) for i in range(sizes[dim])]


# --- views that reinterpret elements -------------------------------------------------------------------------------


def view_as_real(g: GeometryLike) -> Geometry:
    """A complex tensor's geometry as pairs of reals: a new last dimension of size 2."""
    sizes, strides, offset = g
    return Geometry((*sizes, 2), (*[2 * s for s in strides], 1), 2 * offset)


def view_as_complex(g: GeometryLike) -> Geometry:
    """The geometry, in complex elements, of a real tensor whose last dimension holds the pairs."""
    sizes, strides, offset = g
    if not sizes:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if sizes[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(stride % 2 and size != 1 for size, stride in zip(sizes[:-1], strides)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return Geometry(sizes[:-1], tuple([stride // 2 for stride in strides[:-1]]), offset // 2)


def view_dtype(g: GeometryLike, itemsize: int, new_itemsize: int, name: str, new_name: str) -> Geometry:
    """The geometry of `view(dtype)`; the names are PyTorch's scalar types ("Float"), for the messages."""
    sizes, strides, offset = g
    if itemsize == new_itemsize:
        return Geometry(sizes, strides, offset)
    what = f"to view {name} as {new_name} (different element sizes)"
    if not sizes:
        raise RuntimeError(f"self.dim() cannot be 0 {what}")
    if itemsize > new_itemsize:
        ratio = itemsize // new_itemsize
        if strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {what}, but got {strides[-1]}")
        return Geometry(
            (*sizes[:-1], sizes[-1] * ratio), (*[s * ratio for s in strides[:-1]], 1), offset * ratio
        )
    ratio = new_itemsize // itemsize
    if sizes[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {what}, but got {sizes[-1]}")
    if offset % ratio:
        raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {what}, but got {offset}")
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {what}, but got {strides[-1]}")
    for dim, stride in enumerate(strides[:-1]):
        if stride % ratio:
            raise RuntimeError(f"self.stride({dim}) must be divisible by {ratio} {what}, but got {stride}")
    return Geometry(
        (*sizes[:-1], sizes[-1] // ratio), (*[s // ratio for s in strides[:-1]], 1), offset // ratio
    )
