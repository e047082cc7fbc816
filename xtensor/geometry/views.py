"""Shapes, and the views that rearrange, select or reinterpret: geometry in, geometry out."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..checks import wrap_dim
from ..errors import noted
from ..xla.cache import bounded
from ..xla.symbolic import Inconclusive, at_least, clamped, is_below
from .layout import Geometry, GeometryLike, Ints, check_numel, contiguous_strides, make
from .memory import check_in_storage

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
    raise noted(RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}"))


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
        while dim >= 0 and (is_below(viewed, chunk) or shape[dim] == 1):
            result[dim] = viewed * base
            viewed *= shape[dim]
            dim -= 1
        if viewed != chunk:
            return None
        if old:
            base = strides[old - 1]
            chunk = viewed = 1
    return None if dim >= 0 else tuple(result)


@bounded(8192)
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
    return make(Geometry, (found[0], found[1], g[2]))


def reshape(g: GeometryLike, shape: Ints) -> Geometry | None:
    """As `view`, but None where only a copy can have this shape."""
    found = _view(g[0], g[1], shape)
    return None if found is None else make(Geometry, (found[0], found[1], g[2]))


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
    return make(Geometry, tuple(g)) if len(shape) == len(sizes) else reshape(g, shape)


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
    return make(Geometry, (tuple(new_sizes), tuple(new_strides), offset))


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
    return make(Geometry, (tuple([sizes[d] for d in order]), tuple([strides[d] for d in order]), offset))


def transpose(g: GeometryLike, dim0: int, dim1: int) -> Geometry:
    """Two dimensions swapped."""
    sizes, strides, offset = g
    ndim = len(sizes)
    a = dim0 + ndim if dim0 < 0 else dim0
    b = dim1 + ndim if dim1 < 0 else dim1
    if not (0 <= a < ndim and 0 <= b < ndim):
        wrap_dim(dim0, ndim)
        wrap_dim(dim1, ndim)
        return make(Geometry, (sizes, strides, offset))  # 0 and -1 are dimensions of a 0-d tensor
    if a == b:
        return make(Geometry, (sizes, strides, offset))
    if ndim == 2:
        return make(Geometry, ((sizes[1], sizes[0]), (strides[1], strides[0]), offset))
    new_sizes, new_strides = list(sizes), list(strides)
    new_sizes[a], new_sizes[b] = new_sizes[b], new_sizes[a]
    new_strides[a], new_strides[b] = new_strides[b], new_strides[a]
    return make(Geometry, (tuple(new_sizes), tuple(new_strides), offset))


def t(g: GeometryLike) -> Geometry:
    """The transpose of a matrix; a vector or a scalar as it is."""
    sizes, strides, offset = g
    ndim = len(sizes)
    if ndim == 2:
        return make(Geometry, ((sizes[1], sizes[0]), (strides[1], strides[0]), offset))
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return make(Geometry, (sizes, strides, offset))


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
        return make(Geometry, tuple(g))
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
    return make(Geometry, (tuple([sizes[d] for d in kept]), tuple([strides[d] for d in kept]), offset))


def unsqueeze(g: GeometryLike, dim: int) -> Geometry:
    """With a new dimension of size 1 before `dim`."""
    sizes, strides, offset = g
    dim = wrap_dim(dim, len(sizes) + 1)
    stride = sizes[dim] * strides[dim] if dim < len(sizes) else 1
    return make(Geometry, ((*sizes[:dim], 1, *sizes[dim:]), (*strides[:dim], stride, *strides[dim:]), offset))


LAST = 2**63 - 1
"""Where a slice without an end ends."""

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
    try:
        inside = 0 <= i < size
    except Inconclusive:
        inside = True  # of an open size
    if not inside:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(sizes)} at dimension {d}"
        )
    offset += i * strides[d]
    if d == 0:
        return make(Geometry, (sizes[1:], strides[1:], offset))
    return make(Geometry, (sizes[:d] + sizes[d + 1 :], strides[:d] + strides[d + 1 :], offset))


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
    try:
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
        begin, length = start, (end - start + step - 1) // step if end > start else 0
    except Inconclusive:  # of an open size
        begin = 0 if start is None else clamped(start, size)
        stop = size if end is None or end == LAST else clamped(end, size)
        length = at_least((stop - begin + step - 1) // step, 0)
    stride = strides[d]
    offset += begin * stride
    if step != 1:
        strides = (*strides[:d], stride * step, *strides[d + 1 :])
    if d == 0:
        return make(Geometry, ((length, *sizes[1:]), strides, offset))
    return make(Geometry, ((*sizes[:d], length, *sizes[d + 1 :]), strides, offset))


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
        return make(Geometry, ((length, *sizes[1:]), strides, offset))
    return make(Geometry, ((*sizes[:d], length, *sizes[d + 1 :]), strides, offset))


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
