"""The view operators of PyTorch's "Tensor Views" page, and those that view where they can and copy where they cannot."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import checks, dtypes, geometry
from ..dtypes import dtype as DType
from ..engine import Error, modes
from ..geometry import Geometry
from ..tensor import (
    MULTI_OUTPUT,
    Tensor,
    alias,
    counter_of,
    edge_of,
    make_view,
    meta_of,
    plain_edge,
    sizes_of,
    strides_of,
)
from .dispatch import memory_order
from .inplace import check_inplace
from .views import VIEWS, ViewOperator, alias_of, geometry_of, ints, view
from .write import bump, resize_tensor

__all__ = [
    "adjoint",
    "as_strided",
    "broadcast_to",
    "chunk",
    "conj",
    "detach",
    "diagonal",
    "dsplit",
    "expand_as",
    "flatten",
    "hsplit",
    "imag",
    "is_conj",
    "is_neg",
    "moveaxis",
    "movedim",
    "narrow",
    "permute",
    "ravel",
    "real",
    "reshape",
    "resolve_conj",
    "resolve_neg",
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
    "view_as_complex",
    "view_as_real",
    "vsplit",
]

Dims = int | Sequence[int]


# -- dimensions rearranged


@view(node="Transpose")
def transpose(g: Geometry, dim0: int, dim1: int) -> Geometry:
    """The view with two dimensions swapped."""
    return geometry.transpose(g, dim0, dim1)


@view(node="Transpose")
def swapaxes(g: Geometry, axis0: int, axis1: int) -> Geometry:
    """The view with two dimensions swapped."""
    return geometry.transpose(g, axis0, axis1)


@view(node="Transpose")
def swapdims(g: Geometry, dim0: int, dim1: int) -> Geometry:
    """The view with two dimensions swapped."""
    return geometry.transpose(g, dim0, dim1)


@view(node="T")
def t(g: Geometry) -> Geometry:
    """The transpose of a tensor of at most two dimensions."""
    return geometry.t(g)


@view(varargs="dims")
def permute(g: Geometry, dims: Sequence[int]) -> Geometry:
    """The view with the dimensions in the order `dims`."""
    return geometry.permute(g, ints(dims))


@view(node="Permute")
def movedim(g: Geometry, source: Dims, destination: Dims) -> Geometry:
    """The view with dimensions `source` moved to the places `destination`."""
    return geometry.movedim(g, ints(source), ints(destination))


@view(node="Permute")
def moveaxis(g: Geometry, source: Dims, destination: Dims) -> Geometry:
    """The view with dimensions `source` moved to the places `destination`."""
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
    return value.__index__()


@view()
def select(g: Geometry, dim: int, index: int) -> Geometry:
    """The view at one index of a dimension, which it loses."""
    return geometry.select(g, dim, index if type(index) is int else as_int(index))


@view(name="slice", method=False)
def slice_view(
    g: Geometry, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Geometry:
    """The view of every `step`-th index of a dimension from `start` up to `end`."""
    return geometry.slice(g, dim, start, end, step)


@view(node="Slice")
def narrow(g: Geometry, dim: int, start: int, length: int) -> Geometry:
    """The view of `length` indices of a dimension from `start` on."""
    return geometry.narrow(g, dim, start if type(start) is int else as_int(start), length)


@view()
def diagonal(g: Geometry, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Geometry:
    """The view of the diagonal of two dimensions, which become one at the end."""
    return geometry.diagonal(g, offset, dim1, dim2)


@view()
def unfold(g: Geometry, dimension: int, size: int, step: int) -> Geometry:
    """Windows of `size` elements, `step` apart, along a dimension; their elements come last."""
    return geometry.unfold(g, dimension, size, step)


@view(multiple=True)
def unbind(g: Geometry, dim: int = 0) -> list[Geometry]:
    """All slices along a dimension, without it."""
    return geometry.unbind(g, dim)


@view(multiple=True, node="Split")
def split(g: Geometry, split_size_or_sections: int | Sequence[int], dim: int = 0) -> list[Geometry]:
    """Pieces of `split_size_or_sections` indices along a dimension (the last may be smaller), or of these lengths."""
    if isinstance(split_size_or_sections, int):
        return geometry.split(g, split_size_or_sections, dim)
    return geometry.split_with_sizes(g, ints(split_size_or_sections), dim)


@view(multiple=True, node="SplitWithSizes")
def split_with_sizes(g: Geometry, split_sizes: Sequence[int], dim: int = 0) -> list[Geometry]:
    """Pieces of these lengths along a dimension."""
    return geometry.split_with_sizes(g, ints(split_sizes), dim)


@view(multiple=True, node="Split")
def chunk(g: Geometry, chunks: int, dim: int = 0) -> list[Geometry]:
    """At most `chunks` pieces of equal length along a dimension (the last may be smaller)."""
    return geometry.chunk(g, chunks, dim)


def pieces(where: Any) -> Any:
    """Sections or indices, which may come in a tensor."""
    if isinstance(where, Tensor):
        where = where.tolist()
    return where if isinstance(where, int) else ints(where)


@view(multiple=True, node="Slice")
def tensor_split(g: Geometry, indices_or_sections: int | Sequence[int], dim: int = 0) -> list[Geometry]:
    """Pieces along a dimension: as many as given, of nearly equal length, or cut at these indices."""
    return geometry.tensor_split(g, pieces(indices_or_sections), dim)


@view(multiple=True, node="Slice", varargs="indices_or_sections")
def hsplit(g: Geometry, indices_or_sections: int | Sequence[int]) -> list[Geometry]:
    """`tensor_split` by columns."""
    return geometry.hsplit(g, pieces(indices_or_sections))


@view(multiple=True, node="Slice", varargs="indices_or_sections")
def vsplit(g: Geometry, indices_or_sections: int | Sequence[int]) -> list[Geometry]:
    """`tensor_split` by rows."""
    return geometry.vsplit(g, pieces(indices_or_sections))


@view(multiple=True, node="Slice", varargs="indices_or_sections")
def dsplit(g: Geometry, indices_or_sections: int | Sequence[int]) -> list[Geometry]:
    """`tensor_split` by depth."""
    return geometry.dsplit(g, pieces(indices_or_sections))


# -- sizes


@view(varargs="dim")
def squeeze(g: Geometry, dim: Dims | None = None) -> Geometry:
    """The view without dimensions of size one: all, or those named that have it."""
    return geometry.squeeze(g, dim if dim is None or isinstance(dim, int) else ints(dim))


@view()
def unsqueeze(g: Geometry, dim: int) -> Geometry:
    """The view with a new dimension of size one."""
    return geometry.unsqueeze(g, dim)


@view(varargs="size")
def expand(g: Geometry, size: Sequence[int], implicit: bool = False) -> Geometry:
    """The view broadcast to `size` with stride 0; -1 keeps a size."""
    return geometry.expand(g, ints(size))


@view(name="view", varargs="shape", method=False)
def sized_view(g: Geometry, shape: Sequence[int]) -> Geometry:
    """The same elements in the same order with other sizes; RuntimeError where that needs a copy."""
    return geometry.view(g, ints(shape))


@view()
def unflatten(g: Geometry, dim: int, sizes: Sequence[int]) -> Geometry:
    """One dimension split into `sizes`."""
    return geometry.unflatten(g, dim, ints(sizes))


def as_strided_geometry(g: Geometry, size: Any, stride: Any, storage_offset: int) -> Geometry:
    return Geometry(size, stride, storage_offset)


AS_STRIDED = ViewOperator("as_strided", as_strided_geometry, "AsStrided")


def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """The view of any sizes, strides and offset over the storage, in elements.

    Raises RuntimeError where it would reach outside the storage.
    Differs from PyTorch: no gradient for an input whose own elements overlap or leave gaps.
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("as_strided", "input", 1, "Tensor", input)
    start = input.storage_offset()
    offset = start if storage_offset is None else as_int(storage_offset)
    found = geometry.as_strided(
        ints(size), ints(stride), offset, input.dtype.itemsize, input._storage.nbytes()
    )
    if edge_of(input) is None or modes.state.mode & modes.NO_GRAD:
        return alias_of(AS_STRIDED, input, found, ())
    sizes, strides = tuple(sizes_of(input)), tuple(strides_of(input))
    args = (found.sizes, found.strides, found.offset - start)
    if strides == geometry.contiguous_strides(sizes):
        return alias_of(AS_STRIDED, input, found, args)
    if geometry.is_non_overlapping_and_dense(sizes, strides):
        # The elements in memory order are a contiguous tensor, of which this is a strided view.
        return alias_of(AS_STRIDED, permute(input, memory_order(sizes, strides)), found, args)
    result = alias_of(AS_STRIDED, input, found, args)
    result._edge = (Error("as_strided: no gradient for an input with gaps or overlapping elements"), 0)
    return result


AS_STRIDED.function = as_strided
VIEWS["as_strided"] = AS_STRIDED


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """The view broadcast to `size`."""
    return expand(input, size)


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """The view broadcast to the sizes of `other`."""
    return expand(input, tuple(sizes_of(other)))


def shape_arguments(name: str, shape: tuple[Any, ...], keyword: Any) -> tuple[int, ...]:
    """Sizes given one by one, as one sequence, or by keyword."""
    if keyword is not None:
        return ints(keyword)
    if len(shape) == 1 and not isinstance(shape[0], int) and not (isinstance(shape[0], Tensor) and shape[0].dim() == 0):
        return ints(shape[0])
    try:
        return tuple([s if type(s) is int else as_int(s) for s in shape])
    except (TypeError, AttributeError):
        bad = next(s for s in shape if not hasattr(s, "__index__"))
        raise checks.argument_error(name, "shape", 1, "tuple of ints", bad) from None


def view_method(self: Tensor, *shape: Any, dtype: Any = None, size: Any = None) -> Tensor:
    """The same elements with other sizes, or reinterpreted as another dtype; never a copy."""
    if dtype is not None or (len(shape) == 1 and isinstance(shape[0], DType)):
        return view_dtype(self, dtype or shape[0])
    return sized_view(self, shape_arguments("view", shape, size))


def reshape(input: Tensor, shape: Sequence[int]) -> Tensor:
    """The elements in row-major order with other sizes: a view where strides allow, else a copy."""
    if not isinstance(input, Tensor):
        raise checks.argument_error("reshape", "input", 1, "Tensor", input)
    sizes = ints(shape)
    found = geometry.reshape(geometry_of(input), sizes)
    if found is not None:
        return sized_view(input, found.sizes)
    return sized_view(input.contiguous(), geometry.infer_size(sizes, input.numel()))


def reshape_method(self: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The elements in row-major order with other sizes: a view where strides allow, else a copy."""
    return reshape(self, shape_arguments("reshape", shape, named.get("shape")))


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` as one: a view where strides allow, else a copy."""
    sizes = geometry.flatten_sizes(tuple(sizes_of(input)), start_dim, end_dim)
    return input if len(sizes) == input.dim() else reshape(input, sizes)


def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension: a view where strides allow, else a copy."""
    return reshape(input.contiguous(), (-1,))


# -- elements reinterpreted


def _same(g: Geometry) -> Geometry:
    return g


def _dtype_geometry(g: Geometry, itemsize: int, new_itemsize: int, name: str, new_name: str) -> Geometry:
    return geometry.view_dtype(g, itemsize, new_itemsize, name, new_name)


VIEW_AS_REAL = ViewOperator("view_as_real", geometry.view_as_real, "ViewAsReal")
VIEW_AS_COMPLEX = ViewOperator("view_as_complex", geometry.view_as_complex, "ViewAsComplex")
CONJ = ViewOperator("_conj", _same, "Conj")
NEG_VIEW = ViewOperator("_neg_view", _same, "NegView")
VIEW_DTYPE = ViewOperator("view", _dtype_geometry, "View")


def view_as_real(input: Tensor) -> Tensor:
    """A complex tensor as pairs of reals in a new last dimension."""
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if input.is_conj():
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    made = geometry.view_as_real(geometry_of(input))
    return alias_of(VIEW_AS_REAL, input, made, (), dtype=input.dtype.to_real())


def view_as_complex(input: Tensor) -> Tensor:
    """A real tensor with a last dimension of pairs as complex numbers."""
    if input.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{input.dtype.scalar_name}"
        )
    if input.is_neg():
        input = resolve_neg(input)
    made = geometry.view_as_complex(geometry_of(input))
    return alias_of(VIEW_AS_COMPLEX, input, made, (), dtype=input.dtype.to_complex())


def view_dtype(input: Tensor, dtype: DType) -> Tensor:
    """The bytes of `input` read as another dtype."""
    old = input.dtype
    if dtype is old:
        return alias_of(VIEW_DTYPE, input, geometry_of(input), (old.itemsize, old.itemsize, "", ""))
    args = (old.itemsize, dtype.itemsize, old.scalar_name, dtype.scalar_name)
    made = geometry.view_dtype(geometry_of(input), *args)
    result = alias_of(VIEW_DTYPE, input, made, args, dtype=dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        result._edge = None
    return result


def conj(input: Tensor) -> Tensor:
    """The complex conjugate: a view with the conjugate bit flipped; a real tensor is itself."""
    if not isinstance(input, Tensor):
        raise checks.argument_error("conj", "input", 1, "Tensor", input)
    if not input.dtype.is_complex:
        return input
    return alias_of(CONJ, input, geometry_of(input), (), conj=not input.is_conj())


def neg_view(input: Tensor) -> Tensor:
    """The negative as a view with the negative bit flipped."""
    return alias_of(NEG_VIEW, input, geometry_of(input), (), neg=not input.is_neg())


def resolve_conj(input: Tensor) -> Tensor:
    """`input` itself, or a copy without the conjugate bit."""
    return input.clone() if input.is_conj() else input


def resolve_neg(input: Tensor) -> Tensor:
    """`input` itself, or a copy without the negative bit."""
    return input.clone() if input.is_neg() else input


def is_conj(input: Tensor) -> bool:
    """Whether the conjugate bit is set."""
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """Whether the negative bit is set."""
    return input.is_neg()


def real(input: Tensor) -> Tensor:
    """The real parts: a view of a complex tensor; a real tensor is itself."""
    if not input.dtype.is_complex:
        return input
    return select(view_as_real(conj(input) if input.is_conj() else input), -1, 0)


def imag(input: Tensor) -> Tensor:
    """The imaginary parts of a complex tensor, as a view."""
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if input.is_conj():
        return neg_view(select(view_as_real(conj(input)), -1, 1))
    return select(view_as_real(input), -1, 1)


def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions, as a view."""
    if input.dim() < 2 and input.dim() != 0:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return conj(matrix_transpose(input)) if input.dim() else conj(input)


# -- views outside the graph


def detach(input: Tensor) -> Tensor:
    """The same memory and version, cut off from the graph."""
    g = geometry_of(input)
    result = alias(input, g.sizes, g.strides, g.offset)
    if modes.state.mode & modes.INFERENCE or input.is_inference():
        meta_of(result).inference = True
    return result


def detach_(self: Tensor) -> Tensor:
    """Cut this tensor off from the graph, in place."""
    view = self._view
    if view is not None and view.base is not None:
        if view.creation == MULTI_OUTPUT or edge_of(self) is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as a solution."
            )
        view.base = None
    self._edge = None
    return self


def regenerate(tensor: Tensor) -> Any:
    """The edge of a view whose base was written since: an `as_strided` of the base."""
    view = tensor._view
    assert view is not None and view.base is not None
    base = view.base
    edge = plain_edge(edge_of(base))
    if edge is None:
        return tensor._edge
    made = Geometry(view.sizes, view.strides, view.offset)
    mode = modes.state.mode
    modes.state.mode = mode & ~(modes.NO_GRAD | modes.INFERENCE)
    try:
        if view.dtype is base.dtype and view.conj is base.is_conj() and view.neg is base.is_neg():
            fresh = as_strided(base, *made)
        else:
            fresh = alias_of(
                reinterpreted(base, view), base, made, (), dtype=view.dtype, conj=view.conj, neg=view.neg
            )
    finally:
        modes.state.mode = mode
    tensor._edge = fresh._edge
    view.attr_version = view.counter.version
    return tensor._edge


def reinterpreted(base: Tensor, view: Any) -> ViewOperator:
    """A view operator for one view of other dtype or bits than its base's, by its geometry in the base's memory."""
    shift = base.storage_offset() * base.dtype.itemsize // view.dtype.itemsize
    made = Geometry(view.sizes, view.strides, view.offset - shift)
    return ViewOperator("as_strided", lambda g: made, "AsStrided")


Tensor._regenerate = regenerate


# -- geometry changed in place


def inplace_view(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place form of a view operator: the tensor itself takes the new sizes and strides."""

    def change(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not modes.state.mode & modes.NO_GRAD:
            check_inplace(self, edge_of(self) is not None)
        take_view(self, function(self, *args, **kwargs))
        bump(self, name)
        view = self._view
        if view is not None:
            view.attr_version = view.counter.version
        return self

    change.__name__ = change.__qualname__ = name
    change.__doc__ = f"In-place version of `{name[:-1]}`: changes the sizes and strides of the tensor itself."
    return change


def take_view(self: Tensor, source: Tensor) -> None:
    """Let `self` see its storage as `source`, a view of it, does."""
    found = source._view
    assert found is not None
    old = self._view
    view = make_view(
        self._storage, counter_of(self), found.dtype, found.sizes, found.strides, found.offset, found.conj, found.neg
    )
    if old is not None:
        view.base, view.creation = old.base, old.creation
    view.attr_version = view.counter.version
    edge = source._edge
    self._view = view
    if type(edge) is tuple:
        self._edge = edge


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Let this tensor see another storage (or none): that of a tensor, or `source` with these sizes and strides."""
    if isinstance(source, Tensor) and size is None:
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype.abbr} to a tensor of type {self.dtype.abbr}"
            )
        storage, g = source._storage, geometry_of(source)
        if source._view is None and storage.cover is None:
            storage.cover = weakref.ref(source)
    elif source is None:
        fresh = self.new_empty((0,))
        storage, g = fresh._storage, Geometry((0,), (1,), 0)
    else:
        storage = source._storage
        if isinstance(source, Tensor) and source._view is None and storage.cover is None:
            storage.cover = weakref.ref(source)
        sizes = (storage.nbytes() // self.dtype.itemsize,) if size is None else ints(size)
        strides = geometry.contiguous_strides(sizes) if stride is None else ints(stride)
        geometry.check_in_storage(
            (sizes, strides, storage_offset), self.dtype.itemsize, storage.nbytes()
        )
        g = Geometry(sizes, strides, storage_offset)
    if not modes.state.mode & modes.NO_GRAD:
        check_inplace(self, edge_of(self) is not None)
    dtype = self.dtype
    self._storage = storage
    self._view = make_view(storage, storage, dtype, g.sizes, g.strides, g.offset)
    bump(self, "set_")
    return self


def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Change the sizes in place, growing the storage where it must; new elements are zero.

    Differs from PyTorch: new elements are zero, not uninitialised.
    """
    if edge_of(self) is not None:
        raise RuntimeError("cannot resize variables that require grad")
    sizes = shape_arguments("resize_", size, None)
    strides = None if memory_format is None else geometry.format_strides(sizes, memory_format.name)
    if sizes != tuple(sizes_of(self)) or strides is not None:
        resize_tensor(self, sizes, strides)
    return self


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Change the sizes in place to those of another tensor."""
    return resize_(self, tuple(sizes_of(the_template)), memory_format=memory_format)


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over broadcast dimensions that has these sizes."""
    sizes = shape_arguments("sum_to_size", size, None)
    have = tuple(sizes_of(self))
    lead = len(have) - len(sizes)
    if lead < 0 or any(s not in (1, h) for s, h in zip(sizes, have[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(sizes)}}} is not expandable to size {{{list(have)}}}.")
    dims = [*range(lead), *[lead + i for i, s in enumerate(sizes) if s == 1 and have[lead + i] != 1]]
    return self.sum(dims, keepdim=True).view(sizes) if dims else self


def T(self: Tensor) -> Tensor:
    """The view with the order of dimensions reversed."""
    return reverse_dims(self)


def mT(self: Tensor) -> Tensor:
    """The view with the last two dimensions swapped."""
    if self.dim() < 2:
        what = f"{self.dim()}-D" if self.dim() else "0-D"
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {what} tensor.")
    return matrix_transpose(self)


def H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix, as a view."""
    if self.dim() not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.dim()}-D tensor. For batches of matrices, "
            "consider using tensor.mH"
        )
    return adjoint(self)


def mH(self: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions, as a view."""
    return adjoint(self)


def set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value if isinstance(value, Tensor) else self.new_tensor(value, dtype=self.dtype.to_real()))


def set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value if isinstance(value, Tensor) else self.new_tensor(value, dtype=self.dtype.to_real()))


METHODS: dict[str, Any] = {
    "view": view_method,
    "view_as": lambda self, other: sized_view(self, tuple(sizes_of(other))),
    "reshape": reshape_method,
    "reshape_as": lambda self, other: reshape(self, tuple(sizes_of(other))),
    "T": property(T),
    "mT": property(mT),
    "H": property(H),
    "mH": property(mH),
    "real": property(real, set_real),
    "imag": property(imag, set_imag),
    "_conj": conj,
    "_neg_view": neg_view,
    "detach_": detach_,
    "set_": set_,
    "resize_": resize_,
    "resize_as_": resize_as_,
    "sum_to_size": sum_to_size,
    "as_strided_": inplace_view("as_strided_", as_strided),
    "squeeze_": inplace_view("squeeze_", squeeze),
    "swapaxes_": inplace_view("swapaxes_", swapaxes),
    "swapdims_": inplace_view("swapdims_", swapdims),
    "t_": inplace_view("t_", t),
    "transpose_": inplace_view("transpose_", transpose),
    "unsqueeze_": inplace_view("unsqueeze_", unsqueeze),
    **{
        f.__name__: f
        for f in (adjoint, broadcast_to, conj, detach, expand_as, flatten, ravel, resolve_conj, resolve_neg)
    },
}
