"""Parts of sparse tensors and other shapes of them: coordinates change, elements stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import checks, devices, dtypes
from ..operators.below.dispatching import twin
from ..ops.shape.joining import cat as dense_cat
from ..ops.tensor.conversion import parse_to
from ..tensor import Tensor
from .convert import as_coo, densify
from .elementwise import restored
from .layout import (
    HANDLERS,
    SparseTensor,
    adopt,
    assembled,
    elements,
    given,
    handles,
    host,
    indices_from,
    is_coo,
    like_source,
    make,
    passing,
    place_of,
    refuse,
    with_elements,
)
from .parts import coalesce, of_pattern, pattern_of, picked, sparse_dims
from .pattern import Pattern

__all__: list[str] = []

FLIPPED = {
    dtypes.sparse_csr: dtypes.sparse_csc,
    dtypes.sparse_csc: dtypes.sparse_csr,
    dtypes.sparse_bsr: dtypes.sparse_bsc,
    dtypes.sparse_bsc: dtypes.sparse_bsr,
}


@handles("detach", "detach_copy")
def detach(input: SparseTensor) -> Tensor:
    """The same elements, cut off from the graph."""
    return twin(input)


@handles("detach_")
def detach_(self: SparseTensor) -> Tensor:
    """Cut this tensor off from the graph, in place."""
    self._xt_edge = None
    return self


@handles("alias", "view_as_self")
def alias(self: SparseTensor) -> Tensor:
    """The same tensor, in the graph too."""
    return passing("AliasBackward0", lambda s: with_elements(s, elements(s)), (self,), lambda grad: (grad,))


@handles("clone")
def clone(input: SparseTensor, *, memory_format: Any = None) -> Tensor:
    """A copy, with coordinates of its own."""
    checks.check(
        memory_format in (None, dtypes.preserve_format),
        "unsupported memory format option {}",
        "" if memory_format is None else str(memory_format).partition(".")[2].split("_")[0].capitalize(),
    )
    return passing(
        "CloneBackward0", lambda s: with_elements(s, elements(s).clone()), (input,), lambda grad: (grad,)
    )


@handles("contiguous")
def contiguous(self: SparseTensor, memory_format: Any = None) -> Tensor:
    """RuntimeError, as in PyTorch: sparse tensors have no strides; of compressed layouts, the tensor."""
    if is_coo(self):
        raise RuntimeError("unsupported memory format option Contiguous")
    return self


@handles("__deepcopy__")
def deepcopy(self: SparseTensor, memo: Any) -> Tensor:
    """A copy of a leaf, with its gradient."""
    if id(self) in memo:
        return memo[id(self)]
    made = make(self._layout, [t.detach().clone() for t in self._held], tuple(self.shape), self._coalesced)
    if self.requires_grad:
        made.requires_grad_()
    if self.grad is not None:
        made.grad = self.grad.__deepcopy__(memo)
    memo[id(self)] = made
    return made


# ---- dtypes and devices --------------------------------------------------------------------------------------------


@handles("to")
def to(self: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor with another dtype or on another device."""
    dtype, place, copy, _ = parse_to(args, kwargs)
    place = devices.resolve(place) if place is not None else self.device
    if not copy and (dtype is None or dtype is self.dtype) and place is self.device:
        return self
    held = [t.to(place) for t in self._held[:-1]]

    def moved(s: SparseTensor) -> Tensor:
        if place.type == "meta":
            return HANDLERS["zeros_like"](s, dtype=dtype, device=place)  # as PyTorch's: without elements
        values = elements(s).to(device=place, dtype=dtype or s.dtype, copy=copy)
        return assembled(s._layout, (*held, values), tuple(s.shape), s._coalesced, place_of(s))

    origin = self.device
    return passing(
        "ToCopyBackward0",
        moved,
        (self,),
        lambda grad: (like_source(grad if place is origin else grad.to(origin), self),),
    )


def converter(name: str, dtype: Any) -> None:
    def convert_to(self: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
        return to(self, dtype)

    convert_to.__name__ = name
    convert_to.__doc__ = f"The tensor in {dtype}."
    handles(name)(convert_to)


for _name in "float double half bfloat16 int long short bool cfloat cdouble".split():
    converter(_name, getattr(dtypes, {"bool": "bool"}.get(_name, _name)))
converter("byte", dtypes.uint8)
converter("char", dtypes.int8)


@handles("type_as")
def type_as(self: SparseTensor, tensor: Tensor) -> Tensor:
    """The tensor in another one's dtype."""
    return to(self, tensor.dtype)


@handles("type")
def type_of(self: SparseTensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, or the tensor in another dtype."""
    if dtype is not None:
        return to(self, dtype)
    library, _, name = checks.tensor_type(self).partition(".")
    return f"{library}.sparse.{name}"


@handles("cpu")
def cpu(self: SparseTensor, memory_format: Any = None) -> Tensor:
    """The tensor on the CPU."""
    return to(self, "cpu")


# ---- the order of dimensions ---------------------------------------------------------------------------------------


@handles("t")
def t(input: SparseTensor) -> Tensor:
    """A matrix with rows and columns exchanged."""
    checks.check(
        input.dim() <= 2,
        "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but self is {}D",
        input.dim(),
    )
    return input if input.dim() < 2 else transpose(input, 0, 1)


@handles("transpose", "swapaxes", "swapdims")
def transpose(input: SparseTensor, dim0: int, dim1: int) -> Tensor:
    """The tensor with two dimensions exchanged: both sparse, or both dense."""
    first, second = checks.wrap_dim(dim0, input.dim()), checks.wrap_dim(dim1, input.dim())
    if first == second:
        return alias(input)
    return passing(
        "TransposeBackward0",
        lambda s: transposed(s, first, second),
        (input,),
        lambda grad: (grad.transpose(first, second),),
    )


def transposed(input: SparseTensor, first: int, second: int) -> Tensor:
    if not is_coo(input):
        return transpose_compressed(input, first, second)
    count = sparse_dims(input)
    if first >= count and second >= count:
        size = list(input.shape)
        size[first], size[second] = size[second], size[first]
        return with_elements(input, elements(input).transpose(first - count + 1, second - count + 1), size)
    checks.check(
        first < count and second < count,
        "sparse transpose: transposed dimensions must be sparse Got sparse_dim: {}, d0: {}, d1: {}", count, first, second,
    )  # fmt: skip
    order = list(range(count))
    order[first], order[second] = second, first
    return reordered(input, order)


def reordered(sparse: SparseTensor, order: Sequence[int]) -> SparseTensor:
    """A COO tensor with its sparse dimensions in another order."""
    count = sparse_dims(sparse)
    pattern = pattern_of(sparse)
    size = (*(sparse.shape[d] for d in order), *sparse.shape[count:])
    made = of_pattern(
        Pattern(pattern.indices[list(order)], tuple(pattern.sizes[d] for d in order)),
        elements(sparse),
        size,
        False,
    )
    # Nothing is out of order with less than two elements.
    made._coalesced = sparse._coalesced and pattern.nnz < 2
    return made


def transpose_compressed(sparse: SparseTensor, first: int, second: int) -> SparseTensor:
    batch = sparse._held[1].dim() - 1
    size = list(sparse.shape)
    size[first], size[second] = size[second], size[first]
    if {first, second} == {batch, batch + 1}:
        values = elements(sparse)
        if sparse._layout in (dtypes.sparse_bsr, dtypes.sparse_bsc):
            values = values.transpose(batch + 1, batch + 2)
        return assembled(FLIPPED[sparse._layout], (*sparse._held[:-1], values), size, True)
    if first < batch and second < batch:
        held = [part.transpose(first, second) for part in sparse._held[:-1]]
        return assembled(sparse._layout, (*held, elements(sparse).transpose(first, second)), size, True)
    raise RuntimeError(
        f"transpose(): can only transpose dims within batch or matrix dimensions of {sparse._layout}"
    )


@handles("permute", "permute_copy")
def permute(input: SparseTensor, *dims: Any) -> Tensor:
    """The tensor with its dimensions in another order; sparse ones stay before dense ones."""
    wanted = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    checks.check(len(wanted) == input.dim(), "permute(sparse_coo): number of dimensions in the tensor input does not match the length "
                 "of the desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}", input.dim(), len(wanted))  # fmt: skip
    order = [checks.wrap_dim(d, input.dim()) for d in wanted]
    checks.check(len(set(order)) == len(order), "permute(): duplicate dims are not allowed.")
    count = sparse_dims(input)
    checks.check(
        sorted(order[:count]) == list(range(count)),
        "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.Only transpositions "
        "within sparse and dense dimensions are supported.",
    )
    if not is_coo(input):
        if order == list(range(input.dim())):
            return alias(input)
        return transpose(input, *[d for d, o in enumerate(order) if d != o])
    back = [order.index(d) for d in range(len(order))]
    made: Any = passing(
        "PermuteBackward0", lambda s: permuted(s, order), (input,), lambda grad: (grad.permute(back),)
    )
    # PyTorch asks whether the first number, as it was given, is 0; that alone would not keep the others in order.
    made._coalesced = (
        input._coalesced and order[:count] == list(range(count)) and (not order or wanted[0] == 0)
    )
    return made


def permuted(input: SparseTensor, order: list[int]) -> Tensor:
    count = sparse_dims(input)
    made = reordered(input, order[:count]) if order[:count] != list(range(count)) else input
    inner = [d - count + 1 for d in order[count:]]
    if inner == list(range(1, len(inner) + 1)):
        return made if made is not input else with_elements(input, elements(input))
    size = [input.shape[d] for d in order]
    return with_elements(made, elements(made).permute(0, *inner), size)


@handles("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> Tensor:
    """The tensor with a dimension of size 1 more."""
    at = checks.wrap_dim(dim, input.dim() + 1)
    return passing(
        "UnsqueezeBackward0", lambda s: unsqueezed(as_coo(s), at), (input,), lambda grad: (grad.squeeze(at),)
    )


def unsqueezed(coo: SparseTensor, at: int) -> Tensor:
    count = sparse_dims(coo)
    size = (*coo.shape[:at], 1, *coo.shape[at:])
    if at > count:
        return with_elements(coo, elements(coo).unsqueeze(at - count + 1), size)
    pattern = pattern_of(coo)
    index = np.insert(pattern.indices, at, 0, axis=0)
    sizes = (*pattern.sizes[:at], 1, *pattern.sizes[at:])
    return of_pattern(Pattern(index, sizes), elements(coo), size, coo._coalesced)


@handles("squeeze")
def squeeze(input: SparseTensor, dim: Any = None) -> Tensor:
    """The tensor without dimensions of size 1."""
    coo = as_coo(input)
    wanted = (
        range(coo.dim())
        if dim is None
        else [checks.wrap_dim(d, coo.dim()) for d in (dim if isinstance(dim, (tuple, list)) else [dim])]
    )
    gone = {d for d in wanted if d < coo.dim() and coo.shape[d] == 1}
    count, pattern = sparse_dims(coo), pattern_of(coo)
    left = [d for d in range(count) if d not in gone]
    size = tuple(s for d, s in enumerate(coo.shape) if d not in gone)
    values = elements(coo)
    for d in sorted((d for d in gone if d >= count), reverse=True):
        values = values.squeeze(d - count + 1)
    return of_pattern(
        Pattern(pattern.indices[left], tuple(pattern.sizes[d] for d in left)), values, size, coo._coalesced
    )


@handles("reshape", "flatten", "view_as", "unflatten")
def reshape(self: SparseTensor, *shape: Any, **more: Any) -> Tensor:
    """RuntimeError, as in PyTorch."""
    raise RuntimeError("reshape is not implemented for sparse tensors")


@handles("expand")
def expand(self: SparseTensor, *shape: Any, **more: Any) -> Tensor:
    """RuntimeError, as in PyTorch."""
    raise RuntimeError("expand is unsupported for Sparse tensors")


@handles("broadcast_tensors")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors of one size as they are; RuntimeError where a sparse one would have to grow."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    size = np.broadcast_shapes(*(tuple(t.shape) for t in given))
    return tuple([t if tuple(t.shape) == size else t.expand(size) for t in given])


@handles("matrix_transpose")
def matrix_transpose(input: SparseTensor) -> Tensor:
    """Matrices with rows and columns exchanged."""
    if input.dim() == 0:
        return input
    checks.check(
        input.dim() > 1,
        "tensor.mT is only supported on matrices or batches of matrices. Got {}-D tensor.",
        input.dim(),
    )
    return transpose(input, -2, -1)


# ---- parts ---------------------------------------------------------------------------------------------------------


@handles("select", "select_copy")
def select(input: SparseTensor, dim: int, index: int) -> Tensor:
    """The part at one index of a dimension; dense where that was the only sparse one."""
    at = checks.wrap_dim(dim, input.dim(), wrap_scalar=False)
    size = input.shape[at]
    number = int(index)
    if not -size <= number < size:
        raise IndexError(
            f"select(): index {number} out of range for tensor of size {list(input.shape)} at dimension {at}"
        )
    number += size if number < 0 else 0
    coo = as_coo(input)
    count = sparse_dims(coo)
    left = tuple(s for d, s in enumerate(coo.shape) if d != at)
    if at >= count:
        made: Any = with_elements(coo, elements(coo).select(at - count + 1, number), left)
    else:
        pattern = pattern_of(coo)
        here = np.flatnonzero(pattern.indices[at] == number)
        values = picked(elements(coo), here)
        if count == 1:
            return values.any(0) if values.dtype is dtypes.bool else values.sum(0, dtype=values.dtype)
        rest = [d for d in range(count) if d != at]
        found = Pattern(pattern.indices[rest][:, here], tuple(pattern.sizes[d] for d in rest))
        made = of_pattern(found, values, left, coo._coalesced)
    if is_coo(input) or sparse_dims(made) < 2:
        return made
    return restored(coalesce(made), input)


@handles("embedding")
def embedding(input: Tensor, weight: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
    """Rows of a sparse table by their numbers, a vector of them."""
    checks.check(input.dim() == 1, "reshape is not implemented for sparse tensors")
    return index_select(weight, 0, input)


@handles("index_select")
def index_select(input: SparseTensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor:
    """The parts at some indices of a dimension, in their order."""
    at = checks.wrap_dim(dim, input.dim())
    coo = as_coo(input)
    count, size = sparse_dims(coo), list(coo.shape)
    wanted = host(index).reshape(-1).astype(np.int64)
    limit = size[at]
    if wanted.size and (wanted.min() < -limit or wanted.max() >= limit):
        bad = wanted.max() if wanted.max() >= limit else wanted.min()
        raise IndexError(
            f"index_select(): index contains {bad} that is out of range for tensor of size {list(coo.shape)} at dimension {at}"
        )
    wanted = np.where(wanted < 0, wanted + limit, wanted)
    size[at] = len(wanted)
    if at >= count:
        made: Any = with_elements(coo, elements(coo).index_select(at - count + 1, index), size)
        return made if is_coo(input) else restored(coalesce(made), input)
    pattern = pattern_of(coo)
    order = np.argsort(pattern.indices[at], kind="stable")
    ranked = pattern.indices[at][order]
    first, last = np.searchsorted(ranked, wanted), np.searchsorted(ranked, wanted, "right")
    lengths = last - first
    place = np.repeat(np.arange(len(wanted)), lengths)
    within = np.arange(len(place)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    here = order[np.repeat(first, lengths) + within]
    found = pattern.indices[:, here].copy()
    found[at] = place
    sizes = tuple(len(wanted) if d == at else s for d, s in enumerate(pattern.sizes))
    made = of_pattern(Pattern(found, sizes), picked(elements(coo), here), size, False)
    if not is_coo(input):
        return restored(coalesce(made), input)
    return coalesce(made) if coo._coalesced else made


@handles("narrow_copy")
def narrow_copy(self: SparseTensor, dim: int, start: int, length: int) -> Tensor:
    """A stretch of a dimension."""
    checks.check(
        0 <= dim < self.dim(), "Dimension {} out of range. Expecting 0 <= dim < {}.", dim, self.dim()
    )
    checks.check(length >= 0, "narrow(): length must be non-negative.")
    checks.check(
        0 <= start <= self.shape[dim] - length,
        "Invalid range to narrow. range(start, start+length) must be a subset of range(0, {}).",
        self.shape[dim],
    )
    return index_select(self, dim, indices_from(np.arange(start, start + length), self.device))


@handles("__getitem__")
def getitem(self: SparseTensor, index: Any) -> Tensor:
    """`x[i]`, `x[i, j]`, `x[:, j]`, `x[None]`: parts at ints; slices that take a part are refused as in PyTorch."""
    made: Any = self
    dim = 0
    items = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [i for i in items if not isinstance(i, Tensor)]:
        at = items.index(Ellipsis)
        missing = self.dim() - sum(i is not None for i in items) + 1
        items[at : at + 1] = [slice(None)] * missing
    for item in items:
        if item is None:
            made, dim = unsqueeze(made, dim), dim + 1
        elif isinstance(item, slice):
            if item != slice(None):
                raise NotImplementedError(
                    "Could not run 'aten::as_strided' with arguments from the 'SparseCPU' backend."
                )
            dim += 1
        elif isinstance(item, Tensor) and (item.dim() or item.dtype is dtypes.bool):
            if item.dim() != 1 or item.dtype is dtypes.bool:
                raise NotImplementedError(
                    "Could not run 'aten::index.Tensor' with arguments from the 'SparseCPU' backend."
                )
            made, dim = index_select(made, dim, item), dim + 1
        else:
            made = (
                select(made, dim, int(item))
                if isinstance(made, SparseTensor)
                else made.select(dim, int(item))
            )
    return made


@handles("__setitem__")
def setitem(self: SparseTensor, index: Any, value: Any) -> None:
    """TypeError, as in PyTorch."""
    raise TypeError("Cannot assign to a sparse tensor")


@handles("unbind")
def unbind(input: SparseTensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts at every index of a dimension."""
    return tuple([select(input, dim, i) for i in range(input.shape[checks.wrap_dim(dim, input.dim())])])


@handles("__iter__")
def iterate(self: SparseTensor) -> Any:
    """The parts at every index of the first dimension."""
    return iter(unbind(self))


# ---- several -------------------------------------------------------------------------------------------------------


@handles("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None, out: Any = None) -> Tensor:
    """Sparse tensors one after the other along a dimension."""
    dim = dim if axis is None else axis
    checks.check(all(isinstance(s, SparseTensor) for s in tensors), "Concatenating sparse tensors, but a dense tensor was found at position {}.",
                 next((i for i, s in enumerate(tensors) if not isinstance(s, SparseTensor)), 0))  # fmt: skip
    at = checks.wrap_dim(dim, tensors[0].dim())
    parts = [as_coo(s) for s in tensors]
    count = sparse_dims(parts[0])
    for i, part in enumerate(parts):
        same = [s for d, s in enumerate(part.shape) if d != at] == [
            s for d, s in enumerate(parts[0].shape) if d != at
        ]
        checks.check(
            same, "All tensors must have the same shape: {} (except in the concatenating dimension), but found shape: {} at position {}",
            list(parts[0].shape), list(part.shape), i,
        )  # fmt: skip
        checks.check(
            sparse_dims(part) == count,
            "All tensors must have the same sparse_dim and dense_dim: {}, {}, but tensor at position {} has {}, {}.",
            count, parts[0].dim() - count, i, sparse_dims(part), part.dim() - sparse_dims(part),
        )  # fmt: skip
    made = passing("CatBackward0", lambda *s: joined(s, at), tensors, lambda grad: cut(grad, tensors, at))
    return given(out, made, "cat")


def cut(grad: Any, tensors: Sequence[Any], dim: int) -> list[Any]:
    """The parts of a gradient that are for each of the tensors."""
    found, start = [], 0
    for part in tensors:
        narrow = grad.narrow_copy if isinstance(grad, SparseTensor) else grad.narrow
        found.append(like_source(narrow(dim, start, part.shape[dim]), part))
        start += part.shape[dim]
    return found


def joined(tensors: Sequence[Any], at: int) -> Tensor:
    """Sparse tensors of sizes that fit one after the other along a dimension."""
    parts = [as_coo(s) for s in tensors]
    count = sparse_dims(parts[0])
    dtype = parts[0].dtype
    for part in parts[1:]:
        dtype = dtypes.promote_types(dtype, part.dtype)
    size = list(parts[0].shape)
    size[at] = sum(p.shape[at] for p in parts)
    held = [elements(p).to(dtype) for p in parts]
    if at >= count:
        grown = []
        before = 0
        for part, value in zip(parts, held, strict=True):
            grown.append(padded(value, at - count + 1, before, size[at]))
            before += part.shape[at]
        held = grown
        index = np.concatenate([pattern_of(p).indices for p in parts], 1)
    else:
        shifts = np.cumsum([0, *(p.shape[at] for p in parts[:-1])])
        rows = []
        for part, shift in zip(parts, shifts, strict=True):
            row = pattern_of(part).indices.copy()
            row[at] += shift
            rows.append(row)
        index = np.concatenate(rows, 1)
    made = of_pattern(Pattern(index, tuple(size[:count])), dense_cat(held), size, False)
    if not is_coo(tensors[0]):
        return restored(coalesce(made), tensors[0])
    return made


def padded(value: Tensor, dim: int, before: int, size: int) -> Tensor:
    """A tensor with zeros around it along a dimension."""
    front, back = list(value.shape), list(value.shape)
    front[dim], back[dim] = before, size - before - value.shape[dim]
    return dense_cat([value.new_zeros(front), value, value.new_zeros(back)], dim)


@handles("stack")
def stack(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Tensor:
    """Sparse tensors along a new dimension."""
    at = checks.wrap_dim(dim, tensors[0].dim() + 1)
    return cat([unsqueeze(s, at) for s in tensors], at, out=out)


@handles("repeat_interleave", "roll", "flip")
def unsupported(self: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
    """NotImplementedError, as in PyTorch."""
    raise NotImplementedError("Could not run 'aten::flip' with arguments from the 'SparseCPU' backend.")


@handles("t_", "transpose_")
def transpose_(self: SparseTensor, *dims: int) -> Tensor:
    """Exchange two dimensions in place."""
    return adopt(self, transpose(self, *(dims or (0, 1))), "transpose_")


# ---- the host ------------------------------------------------------------------------------------------------------


@handles("numpy", "__array__")
def numpy(self: SparseTensor, *args: Any, **kwargs: Any) -> Any:
    """TypeError, as in PyTorch."""
    kind = "Sparse" if is_coo(self) else "Sparse" + str(self._layout)[-3:].capitalize()
    raise TypeError(f"can't convert {kind} layout tensor to numpy. Use Tensor.to_dense() first.")


@handles("tolist")
def tolist(self: SparseTensor) -> Any:
    """RuntimeError, as in PyTorch."""
    raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


@handles("data_ptr", "const_data_ptr")
def data_ptr(self: SparseTensor) -> int:
    """RuntimeError, as in PyTorch."""
    raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


@handles("storage", "untyped_storage", "storage_offset", "_typed_storage")
def storage(self: SparseTensor) -> Any:
    """NotImplementedError, as in PyTorch."""
    raise NotImplementedError(
        "Cannot access storage of SparseTensorImpl"
        if is_coo(self)
        else "Cannot access storage of SparseCsrTensorImpl"
    )


@handles("is_contiguous")
def is_contiguous(self: SparseTensor, memory_format: Any = None) -> bool:
    """False: there are no strides."""
    return False


@handles("is_pinned", "is_shared")
def no(self: SparseTensor, *args: Any) -> bool:
    """False."""
    return False


@handles("stride")
def stride(self: SparseTensor, dim: int | None = None) -> Any:
    """Zeros for COO; RuntimeError of compressed layouts, which have no strides."""
    if not is_coo(self):
        raise RuntimeError(
            "Sparse CSR tensors do not have strides"
            if "csr" in str(self._layout)
            else "Sparse compressed tensors do not have strides"
        )
    return (0,) * self.dim() if dim is None else 0


@handles("trace")
def trace(input: SparseTensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    coo = as_coo(input)
    if coo.dim() != 2 or sparse_dims(coo) != 2:
        raise refuse("trace", input)
    row, column = pattern_of(coo).indices
    return picked(elements(coo), np.flatnonzero(row == column)).sum()


@handles("bool_", "__bool__", "is_nonzero")
def truth(self: SparseTensor) -> bool:
    """Whether a tensor's one element is not zero."""
    if self.numel() != 1:
        raise RuntimeError(
            f"Boolean value of Tensor with {'no values' if self.numel() == 0 else 'more than one value'} is ambiguous"
        )
    return bool(densify(self).item())
