"""The view operators of the NumPy model, each in terms of sizes, strides and an offset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.fuzz.strided import (
    COMPLEX_PARTS,
    DTYPES,
    WHOLE,
    DType,
    Strided,
    Undefined,
    channels_last_strides,
    contiguous_strides,
    fail,
    infer_shape,
    is_dense,
    layout_order,
    refuse_negative_zero,
    strides_in_order,
    view_strides,
)


def flat_args(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes or dims given one by one or as one sequence."""
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


def without(seq: Sequence[int], dim: int) -> tuple[int, ...]:
    return (*seq[:dim], *seq[dim + 1 :])


class Views(Strided):
    """Strided with PyTorch's view operators."""

    def detach(self) -> Any:
        result = self.alias(self.sizes, self.strides)
        result._base = None
        return result

    def as_strided(
        self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
    ) -> Any:
        if len(size) != len(stride) or any(s < 0 for s in (*size, *stride)):
            fail("RuntimeError", "as_strided")
        offset = self.offset if storage_offset is None else storage_offset
        last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1
        if offset < 0 or (0 not in size and last * self.dtype.itemsize > self.storage.nbytes()):
            fail("RuntimeError", "setStorage: out of bounds")
        return self.alias(size, stride, offset)

    def select(self, dim: int, index: int) -> Any:
        if not self.sizes:
            fail("IndexError", "select() cannot be applied to a 0-dim tensor.")
        dim = self.dimension(dim)
        if not -self.sizes[dim] <= index < self.sizes[dim]:
            fail("IndexError", "select(): index out of range")
        at = self.offset + index % self.sizes[dim] * self.strides[dim]
        return self.alias(without(self.sizes, dim), without(self.strides, dim), at)

    def slice(self, dim: int, start: int, stop: int, step: int = 1) -> Any:
        """`[start:stop:step]` along one dimension, bounds already counted from the front."""
        length = max(0, -(-(stop - start) // step))
        sizes, strides = list(self.sizes), list(self.strides)
        sizes[dim], strides[dim] = length, strides[dim] * step
        return self.alias(sizes, strides, self.offset + start * self.strides[dim])

    def narrow(self, dim: int, start: int, length: int) -> Any:
        if not self.sizes:
            fail("RuntimeError", "narrow() cannot be applied to a 0-dim tensor.")
        if length < 0:
            fail("RuntimeError", "narrow(): length must be non-negative.")
        dim = self.dimension(dim)
        size = self.sizes[dim]
        if not -size <= start <= size:
            fail("IndexError", "start out of range")
        start = start + size if start < 0 else start
        if start + length > size:
            fail("RuntimeError", "start + length exceeds dimension size")
        return self.slice(dim, start, start + length)

    def permute(self, *dims: Any) -> Any:
        dims = flat_args(dims)
        if len(dims) != self.dim():
            fail("RuntimeError", "permute: number of dimensions")
        order = [self.dimension(d) for d in dims]
        if len(set(order)) != len(order):
            fail("RuntimeError", "permute(): duplicate dims are not allowed.")
        return self.alias([self.sizes[d] for d in order], [self.strides[d] for d in order])

    def movedim(self, source: Any, destination: Any) -> Any:
        source = (source,) if isinstance(source, int) else tuple(source)
        destination = (destination,) if isinstance(destination, int) else tuple(destination)
        if len(source) != len(destination):
            fail("RuntimeError", "movedim: Invalid source or destination dims")
        origin = [self.dimension(d) for d in source]
        target = [self.dimension(d) for d in destination]
        if len(set(origin)) != len(origin) or len(set(target)) != len(target):
            fail("RuntimeError", "movedim: repeated dim")
        if not self.sizes:
            return self.alias((), ())
        rest = iter(d for d in range(self.dim()) if d not in origin)
        moved = dict(zip(target, origin, strict=True))
        return self.permute([moved[d] if d in moved else next(rest) for d in range(self.dim())])

    def transpose(self, dim0: int, dim1: int) -> Any:
        a, b = self.dimension(dim0), self.dimension(dim1)
        if not self.sizes:
            return self.alias((), ())
        order = list(range(self.dim()))
        order[a], order[b] = order[b], order[a]
        return self.permute(order)

    swapaxes = swapdims = transpose

    def t(self) -> Any:
        if self.dim() > 2:
            fail("RuntimeError", "t() expects a tensor with <= 2 dimensions")
        return self.permute(list(reversed(range(self.dim()))))

    @property
    def T(self) -> Any:
        return self.permute(list(reversed(range(self.dim()))))

    @property
    def mT(self) -> Any:
        if not self.sizes:
            return self
        if self.dim() == 1:
            fail("RuntimeError", "tensor.mT is only supported on matrices or batches of matrices.")
        return self.transpose(-2, -1)

    def conj(self) -> Any:
        if self.dtype.category != 3:
            return self
        result = self.alias(self.sizes, self.strides)
        result.conjugated = not self.conjugated
        return result

    def adjoint(self) -> Any:
        if not self.sizes:
            return self.conj()
        if self.dim() == 1:
            fail("RuntimeError", "tensor.adjoint() is only supported on matrices or batches of matrices.")
        return self.transpose(-2, -1).conj()

    @property
    def mH(self) -> Any:
        return self.adjoint()

    @property
    def H(self) -> Any:
        if self.dim() not in (0, 2):
            fail("RuntimeError", "tensor.H is only supported on matrices (2-D tensors).")
        return self.adjoint()

    def _parts(self) -> Any:
        strides = (*(2 * s for s in self.strides), 1)
        result = self.alias(
            (*self.sizes, 2), strides, 2 * self.offset, DTYPES[COMPLEX_PARTS[self.dtype.name]]
        )
        result.conjugated = False
        return result

    @property
    def real(self) -> Any:
        return self if self.dtype.category != 3 else self._parts().select(-1, 0)

    @property
    def imag(self) -> Any:
        if self.dtype.category != 3:
            fail("RuntimeError", "imag is not implemented for tensors with non-complex dtypes.")
        result = self._parts().select(-1, 1)
        result.negated = result.negated != self.conjugated
        return result

    def view_as_real(self) -> Any:
        if self.dtype.category != 3 or self.conjugated:
            fail("RuntimeError", "view_as_real is only supported for complex tensors")
        return self._parts()

    def view_as_complex(self) -> Any:
        if self.dtype.name not in ("float16", "float32", "float64"):
            fail("RuntimeError", "view_as_complex is only supported for half, float and double tensors")
        if not self.sizes or self.sizes[-1] != 2 or self.strides[-1] != 1:
            fail("RuntimeError", "Tensor must have a last dimension of size 2 with stride 1")
        if any(s % 2 for s, n in zip(self.strides, self.sizes[:-1]) if n != 1) or self.offset % 2:
            fail("RuntimeError", "Tensor must have a stride divisible by 2 for all but last dimension")
        if self.dtype.name == "float16":
            raise Undefined("complex32, a tensor of another class")
        strides = [s // 2 for s in self.strides[:-1]]
        return self.alias(self.sizes[:-1], strides, self.offset // 2, DTYPES[WHOLE[self.dtype.name]])

    def expand(self, *sizes: Any) -> Any:
        sizes = flat_args(sizes)
        lead = len(sizes) - self.dim()
        if lead < 0:
            fail("RuntimeError", "expand: the number of sizes provided must be greater or equal")
        result, strides = list(sizes), [0] * len(sizes)
        for d in reversed(range(len(sizes))):
            size, old = sizes[d], self.sizes[d - lead] if d >= lead else None
            if size < -1 or (size == -1 and old is None) or (old not in (None, 1) and size not in (-1, old)):
                fail("RuntimeError", "The expanded size of the tensor must match the existing size")
            result[d] = old if size == -1 else size
            if old is not None:
                strides[d] = self.strides[d - lead] if result[d] == old else 0
            elif size == 1 and d + 1 < len(sizes):
                strides[d] = result[d + 1] * strides[d + 1]
        return self.alias(result, strides)

    def expand_as(self, other: Any) -> Any:
        return self.expand(other.sizes)

    def squeeze(self, dim: Any = None) -> Any:
        if dim is None:
            dims = set(range(self.dim()))
        else:
            found = [self.dimension(d) for d in ((dim,) if isinstance(dim, int) else dim)]
            dims = set(found)
            if len(dims) != len(found):
                fail("RuntimeError", "dim appears multiple times in the list of dims")
        kept = [d for d in range(self.dim()) if d not in dims or self.sizes[d] != 1]
        return self.alias([self.sizes[d] for d in kept], [self.strides[d] for d in kept])

    def unsqueeze(self, dim: int) -> Any:
        dim = self.dimension(dim, 1)
        step = self.sizes[dim] * self.strides[dim] if dim < self.dim() else 1
        return self.alias(
            (*self.sizes[:dim], 1, *self.sizes[dim:]), (*self.strides[:dim], step, *self.strides[dim:])
        )

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
        a, b = self.dimension(dim1), self.dimension(dim2)
        if a == b:
            fail("RuntimeError", "diagonal dimensions cannot be identical")
        length = min(self.sizes[a] + min(offset, 0), self.sizes[b] - max(offset, 0))
        start = self.offset
        if length > 0:
            start += offset * self.strides[b] if offset >= 0 else -offset * self.strides[a]
        rest = [d for d in range(self.dim()) if d not in (a, b)]
        sizes = [*(self.sizes[d] for d in rest), max(length, 0)]
        return self.alias(sizes, [*(self.strides[d] for d in rest), self.strides[a] + self.strides[b]], start)

    def unfold(self, dimension: int, size: int, step: int) -> Any:
        dim = self.dimension(dimension)
        whole = self.sizes[dim] if self.sizes else 1
        if size < 0 or size > whole or step <= 0:
            fail("RuntimeError", "unfold")
        sizes, strides = list(self.sizes), list(self.strides)
        stride = self.strides[dim] if self.sizes else 1
        if self.sizes:
            sizes[dim], strides[dim] = (whole - size) // step + 1, stride * step
        return self.alias((*sizes, size), (*strides, stride))

    def view(self, *shape: Any) -> Any:
        if len(shape) == 1 and isinstance(shape[0], DType):
            return self._view_dtype(shape[0])
        sizes = infer_shape(flat_args(shape), self.numel())
        strides = view_strides(self.sizes, self.strides, sizes)
        if strides is None:
            fail("RuntimeError", "view size is not compatible with input tensor's size and stride")
        return self.alias(sizes, strides)

    def _view_dtype(self, dtype: DType) -> Any:
        if self.conjugated or self.negated:
            fail("RuntimeError", "torch.Tensor.view is not supported for conjugate view tensors")
        old, new = self.dtype.itemsize, dtype.itemsize
        sizes, strides, offset = self.sizes, self.strides, self.offset
        if old != new:
            if not sizes or strides[-1] != 1:
                fail("RuntimeError", "self.stride(-1) must be 1 to view")
            if old > new:
                ratio = old // new
                sizes, offset = (*sizes[:-1], sizes[-1] * ratio), offset * ratio
                strides = (*(s * ratio for s in strides[:-1]), 1)
            else:
                ratio = new // old
                if sizes[-1] % ratio or offset % ratio or any(s % ratio for s in strides[:-1]):
                    fail("RuntimeError", "self.size(-1) must be divisible by the ratio of element sizes")
                sizes, offset = (*sizes[:-1], sizes[-1] // ratio), offset // ratio
                strides = (*(s // ratio for s in strides[:-1]), 1)
        result = self.alias(sizes, strides, offset, dtype)
        result._base = None
        if dtype is not self.dtype:
            refuse_negative_zero(self.raw())
            self.storage.punned = True
        return result

    def view_as(self, other: Any) -> Any:
        return self.view(other.sizes)

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Any:
        dim = self.dimension(dim)
        if not sizes or not self.sizes:
            fail("RuntimeError", "unflatten: sizes must be non-empty")
        inner = infer_shape(tuple(sizes), self.sizes[dim])
        return self.view((*self.sizes[:dim], *inner, *self.sizes[dim + 1 :]))

    def reshape(self, *shape: Any) -> Any:
        sizes = infer_shape(flat_args(shape), self.numel())
        strides = view_strides(self.sizes, self.strides, sizes)
        return self.fresh(self.values().reshape(sizes)) if strides is None else self.alias(sizes, strides)

    def reshape_as(self, other: Any) -> Any:
        return self.reshape(other.sizes)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Any:
        start, end = self.dimension(start_dim), self.dimension(end_dim)
        if start > end:
            fail("RuntimeError", "flatten() has invalid args: start_dim cannot come after end_dim")
        if not self.sizes:
            return self.reshape((1,))
        if start == end:
            return self
        merged = 1
        for size in self.sizes[start : end + 1]:
            merged *= size
        return self.reshape((*self.sizes[:start], merged, *self.sizes[end + 1 :]))

    def ravel(self) -> Any:
        return self.contiguous().view(-1)

    def contiguous(self, memory_format: str = "contiguous_format") -> Any:
        if memory_format == "channels_last" and self.dim() != 4:
            fail("RuntimeError", "required rank 4 tensor to use channels_last format")
        return self if self.is_contiguous(memory_format) else self.clone(memory_format)

    def clone(self, memory_format: str = "preserve_format") -> Any:
        if memory_format == "channels_last":
            if self.dim() != 4:
                fail("RuntimeError", "required rank 4 tensor to use channels_last format")
            return self.fresh(self.values(), channels_last_strides(self.sizes))
        if memory_format == "contiguous_format":
            return self.fresh(self.values())
        if is_dense(self.sizes, self.strides):
            return self.fresh(self.values(), self.strides)
        return self.fresh(
            self.values(), strides_in_order(self.sizes, layout_order(self.sizes, [self.strides]))
        )

    # In place: the tensor itself takes on a view's sizes and strides.

    def _become(self, other: Any) -> Any:
        self.sizes, self.strides, self.offset = other.sizes, other.strides, other.offset
        self.storage.version += 1
        return self

    def t_(self) -> Any:
        return self._become(self.t())

    def transpose_(self, dim0: int, dim1: int) -> Any:
        return self._become(self.transpose(dim0, dim1))

    swapaxes_ = swapdims_ = transpose_

    def squeeze_(self, dim: Any = None) -> Any:
        return self._become(self.squeeze(dim))

    def unsqueeze_(self, dim: int) -> Any:
        return self._become(self.unsqueeze(dim))

    def as_strided_(
        self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
    ) -> Any:
        return self._become(self.as_strided(size, stride, storage_offset))

    def resize_(self, *sizes: Any) -> Any:
        sizes = flat_args(sizes)
        if any(s < 0 for s in sizes):
            fail("RuntimeError", "Trying to create tensor with negative dimension")
        count = 1
        for size in sizes:
            count *= size
        if (self.offset + count) * self.dtype.itemsize > self.storage.nbytes():
            raise Undefined("what a grown storage holds")
        if sizes == self.sizes:
            return self
        return self._become(self.alias(sizes, contiguous_strides(sizes)))

    # Operators with several results.

    def _need_rank(self, rank: int) -> None:
        if self.dim() < rank:
            fail("RuntimeError", f"expects at least a {rank}-dimensional tensor")

    def unbind(self, dim: int = 0) -> Any:
        if not self.sizes:
            fail("IndexError", "Dimension specified as 0 but tensor has no dimensions")
        dim = self.dimension(dim)
        return tuple(self.select(dim, i) for i in range(self.sizes[dim]))

    def split(self, split_size: Any, dim: int = 0) -> Any:
        self._need_rank(1)
        if isinstance(split_size, int):
            if split_size < 0:
                fail("RuntimeError", "split expects split_size be non-negative")
            dim = self.dimension(dim)
            size = self.sizes[dim]
            if split_size == 0 and size:
                fail("RuntimeError", "split_size can only be 0 if dimension size is 0")
            starts = range(0, size, split_size) if size else [0]
            return tuple(self.slice(dim, s, min(s + split_size, size)) for s in starts)
        dim = self.dimension(dim)
        if sum(split_size) != self.sizes[dim] or any(s < 0 for s in split_size):
            fail("RuntimeError", "split_with_sizes expects split_sizes to sum exactly")
        result, start = [], 0
        for size in split_size:
            result.append(self.slice(dim, start, start + size))
            start += size
        return tuple(result)

    def chunk(self, chunks: int, dim: int = 0) -> Any:
        self._need_rank(1)
        if chunks <= 0:
            fail("RuntimeError", "chunk expects `chunks` to be greater than 0")
        dim = self.dimension(dim)
        size = -(-self.sizes[dim] // chunks)
        return self.split([0] * chunks, dim) if size == 0 else self.split(size, dim)

    def tensor_split(self, indices_or_sections: Any, dim: int = 0) -> Any:
        self._need_rank(1)
        dim = self.dimension(dim)
        size = self.sizes[dim]
        if isinstance(indices_or_sections, int):
            if indices_or_sections <= 0:
                fail("RuntimeError", "number of sections must be larger than 0")
            least, more = divmod(size, indices_or_sections)
            return self.split([least + (i < more) for i in range(indices_or_sections)], dim)
        ends = [*indices_or_sections, size]
        result, start = [], 0
        for end in ends:
            low, high = (min(max(v + size if v < 0 else v, 0), size) for v in (start, end))
            result.append(self.slice(dim, low, max(low, high)))
            start = end
        return tuple(result)

    def _named_split(self, given: Any, rank: int, dim: int) -> Any:
        self._need_rank(rank)
        if isinstance(given, int) and (given == 0 or self.sizes[dim] % given):
            fail("RuntimeError", "attempted to split along a dimension not divisible by the split_size")
        return self.tensor_split(given, dim)

    def hsplit(self, given: Any) -> Any:
        return self._named_split(given, 1, 0 if self.dim() == 1 else 1)

    def vsplit(self, given: Any) -> Any:
        return self._named_split(given, 2, 0)

    def dsplit(self, given: Any) -> Any:
        return self._named_split(given, 3, 2)
