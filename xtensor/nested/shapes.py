"""Views and parts of jagged tensors: of their values, a dimension less, and of their rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..checks import check
from ..ops.shape.joining import cat as join
from ..tensor import Tensor
from .layout import JAGGED, NestedTensor, found, handles, numel_of, symbolic, values_of, with_values
from .pointwise import unlike
from .rows import ragged

__all__ = ["axis", "numbered", "rows_in"]


def axis(nested: NestedTensor, dim: int, extra: int = 0) -> int:
    """A dimension counted from the first; IndexError where there is none."""
    dims = nested.dim() + extra
    if not -dims <= dim < dims:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-dims}, {dims - 1}], but got {dim})"
        )
    return dim % dims


def inner(nested: NestedTensor, dim: int, name: str, ragged_too: bool = False, extra: int = 0) -> int:
    """A dimension of the values; RuntimeError for that of the batch, and of the rows unless that may be."""
    at = axis(nested, dim, extra)
    check(at != 0, "{}(): not supported for NestedTensor on dim=0", name)
    check(ragged_too or at != nested._nested_dim, "{}(): not supported for NestedTensor on ragged dim", name)
    return at - 1


def numbered(sizes: Sequence[Any]) -> list[Any]:
    """Sizes given one by one, or as one sequence."""
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else list(sizes)


def rows_in(nested: NestedTensor) -> list[Tensor]:
    """The rows, as views of the values."""
    values, rows = values_of(nested), nested._nested_rows
    places = zip(rows.starts.tolist(), rows.counts.tolist(), strict=True)
    return [values.narrow(nested._nested_dim - 1, start, count) for start, count in places]


@handles(JAGGED, "size")
def size(func: Any, self: NestedTensor, dim: int | None = None) -> Any:
    return self.shape if dim is None else self.shape[axis(self, dim)]


@handles(JAGGED, "stride")
def stride(func: Any, self: NestedTensor, dim: int | None = None) -> Any:
    values = self._nested_values
    at = self._nested_dim - 1
    strides = values.stride()
    whole: Any = self._nested_rows.size * strides[at]
    for d, n in enumerate(values.shape):
        whole = whole * n if d < at and strides[d] >= strides[at] else whole
    found = (whole, *strides)
    return found if dim is None else found[axis(self, dim)]


@handles(JAGGED, "values", "_values")
def values(func: Any, self: NestedTensor) -> Tensor:
    return values_of(self)


@handles(JAGGED, "numel", "nelement")
def numel(func: Any, self: NestedTensor) -> int:
    return numel_of(self)


@handles(JAGGED, "__len__")
def length(func: Any, self: NestedTensor) -> int:
    return self._nested_rows.count


@handles(JAGGED, "is_same_size")
def is_same_size(func: Any, input: Any, other: Any) -> bool:
    return input.shape == other.shape


@handles(JAGGED, "is_contiguous")
def is_contiguous(func: Any, self: NestedTensor, *args: Any, **kwargs: Any) -> bool:
    return self._nested_rows.lengths is None and self._nested_values.is_contiguous(*args, **kwargs)


@handles(JAGGED, "contiguous")
def contiguous(func: Any, self: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    """The tensor; where rows leave values out, one of the others alone."""
    rows, at = self._nested_rows, self._nested_dim
    if rows.lengths is None:
        return self if is_contiguous(func, self) else with_values(func(values_of(self)), rows, at)
    kept = values_of(self).index_select(at - 1, rows.picked(self.device))
    sizes = rows.sizes(self.device).to(rows.offsets.dtype)
    edges = join([sizes.new_zeros(1), sizes.cumsum(0).to(sizes.dtype)])
    return with_values(kept, ragged(edges), at)


@handles(JAGGED, "unbind")
def unbind(func: Any, input: NestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    check(axis(input, dim) == 0, "unbind(): only supported for NestedTensor on dim=0")
    return tuple(rows_in(input))


@handles(JAGGED, "select")
def select(func: Any, input: NestedTensor, dim: int, index: int) -> Any:
    if axis(input, dim) == 0:
        count = input._nested_rows.count
        if not -count <= index < count:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {count}")
        return rows_in(input)[index]
    at = inner(input, dim, "select")
    return with_values(
        values_of(input).select(at, index),
        input._nested_rows,
        input._nested_dim - (at + 1 < input._nested_dim),
    )


@handles(JAGGED, "__getitem__")
def getitem(func: Any, self: NestedTensor, index: Any) -> Any:
    """A row, or parts of every row: of the batch a number or all of it, of the ragged dimension all of it."""
    given = list(index) if isinstance(index, tuple) else [index]
    if any(g is Ellipsis for g in given):
        at = next(i for i, g in enumerate(given) if g is Ellipsis)
        lacking = self.dim() - sum(g is not None for g in given) + 1
        given[at : at + 1] = [slice(None)] * lacking
    first = given[0]
    if isinstance(first, int):
        row = select(func, self, 0, first)
        return row[tuple(given[1:])] if given[1:] else row
    check(first == slice(None), "slice(): not supported for NestedTensor on dim=0")
    at = self._nested_dim
    check(None not in given[: at + 1], "unsqueeze(): not supported for NestedTensor on dim=0")
    if len(given) == 2 and at == 1 and isinstance(given[1], int):
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
    check(
        len(given) <= at or given[at] == slice(None), "slice(): not supported for NestedTensor on ragged dim"
    )
    gone = sum(isinstance(g, int) for g in given[1:at])
    return with_values(values_of(self)[tuple(given[1:])], self._nested_rows, at - gone)


@handles(JAGGED, "unsqueeze")
def unsqueeze(func: Any, input: NestedTensor, dim: int) -> Any:
    at = inner(input, dim, "unsqueeze", True, 1)
    return with_values(
        values_of(input).unsqueeze(at), input._nested_rows, input._nested_dim + (at + 1 <= input._nested_dim)
    )


@handles(JAGGED, "squeeze")
def squeeze(func: Any, input: NestedTensor, dim: int | None = None) -> Any:
    if dim is None:
        raise RuntimeError("squeeze(): not supported for NestedTensor without a dim")
    at = inner(input, dim, "squeeze")
    made = values_of(input).squeeze(at)
    gone = made.dim() < input.dim() - 1 and at + 1 < input._nested_dim
    return with_values(made, input._nested_rows, input._nested_dim - gone)


@handles(JAGGED, "transpose", "swapaxes", "swapdims")
def transpose(func: Any, input: NestedTensor, dim0: int, dim1: int) -> Any:
    first, second = axis(input, dim0), axis(input, dim1)
    if first == second:
        return input
    if not first or not second:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    at = input._nested_dim
    at = second if at == first else first if at == second else at
    return with_values(values_of(input).transpose(first - 1, second - 1), input._nested_rows, at)


@handles(JAGGED, "permute")
def permute(func: Any, input: NestedTensor, *dims: Any) -> Any:
    order = [axis(input, d) for d in numbered(dims)]
    if order[0]:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    made = values_of(input).permute(*[d - 1 for d in order[1:]])
    return with_values(made, input._nested_rows, order.index(input._nested_dim))


@handles(JAGGED, "movedim", "moveaxis")
def movedim(func: Any, input: NestedTensor, source: int, destination: int) -> Any:
    order = list(range(input.dim()))
    order.insert(axis(input, destination), order.pop(axis(input, source)))
    return permute(func, input, order)


@handles(JAGGED, "view", "reshape")
def view(func: Callable[..., Any], self: NestedTensor, *shape: Any, **kwargs: Any) -> Any:
    """Other sizes of the dimensions around the ragged one, which is -1 or its own size."""
    if len(shape) == 1 and not isinstance(shape[0], (list, tuple)) and not isinstance(shape[0], int):
        return with_values(func(values_of(self), *shape), self._nested_rows, self._nested_dim)
    sizes = numbered(shape or (kwargs["shape"],))
    values, at = values_of(self), self._nested_dim
    places = [i for i, n in enumerate(sizes) if symbolic(n)]
    if not places:
        # A -1 is the ragged size where as many elements lie before it as did.
        places = [i for i, n in enumerate(sizes) if n == -1][:1]
    fits = bool(places) and places[0] > 0 and sizes[0] in (self._nested_rows.count, -1)
    if not fits or (symbolic(sizes[places[0]]) and sizes[places[0]] != self._nested_rows.size):
        raise RuntimeError(f"view(): cannot view shape {tuple(self.shape)} as {sizes}")
    if math.prod(sizes[1 : places[0]]) != math.prod(values.shape[: at - 1]):
        raise RuntimeError(f"view(): cannot view shape {tuple(self.shape)} as {sizes}")
    sizes[places[0]] = values.shape[at - 1]
    made = func(values, sizes[1:])
    return with_values(made, self._nested_rows, places[0])


@handles(JAGGED, "expand")
def expand(func: Callable[..., Any], self: NestedTensor, *size: Any) -> Any:
    sizes = numbered(size)
    sizes = [-1 if symbolic(n) else n for n in sizes]
    check(sizes[0] in (-1, self._nested_rows.count), "expand(): not supported for NestedTensor on dim=0")
    return with_values(func(values_of(self), sizes[1:]), self._nested_rows, self._nested_dim)


@handles(JAGGED, "flatten")
def flatten(func: Callable[..., Any], input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    first, last = axis(input, start_dim), axis(input, end_dim)
    check(first != 0, "flatten(): not supported for NestedTensor on dim=0")
    at = input._nested_dim
    check(first == last or not first <= at <= last, "flatten(): not supported for NestedTensor on ragged dim")
    made = values_of(input).flatten(first - 1, last - 1)
    return with_values(made, input._nested_rows, at - (last - first if last < at else 0))


@handles(JAGGED, "unflatten")
def unflatten(func: Callable[..., Any], input: NestedTensor, dim: int, sizes: Any) -> Any:
    at = inner(input, dim, "unflatten")
    made = values_of(input).unflatten(at, sizes)
    more = made.dim() - input.dim() + 1 if at + 1 < input._nested_dim else 0
    return with_values(made, input._nested_rows, input._nested_dim + more)


@handles(JAGGED, "chunk", "split", "split_with_sizes")
def pieces(func: Callable[..., Any], input: NestedTensor, count: Any, dim: int = 0) -> Any:
    """Parts along a dimension; of the batch, rows together."""
    rows, at, name = input._nested_rows, input._nested_dim, func.__name__
    if axis(input, dim) == 0 and name == "chunk":
        each = -(-rows.count // count)
        made: list[Any] = []
        for first in range(0, rows.count, each):
            edges = rows.offsets[first : first + each + 1]
            kept = values_of(input).narrow(
                at - 1, int(rows.starts[first]), int(rows.counts[first : first + each].sum())
            )
            made.append(with_values(kept, ragged(edges - edges[0]), at))
        return tuple(made)
    found = func(values_of(input), count, inner(input, dim, name))
    return tuple(with_values(part, rows, at) for part in found)


@handles(JAGGED, "narrow")
def narrow(func: Callable[..., Any], input: NestedTensor, dim: int, start: Any, length: Any) -> Any:
    at = inner(input, dim, "narrow")
    return with_values(func(values_of(input), at, start, length), input._nested_rows, input._nested_dim)


@handles(JAGGED, "cat", "concat", "concatenate")
def cat(func: Callable[..., Any], tensors: Any, dim: int = 0) -> Any:
    first: Any = found(tensors)
    at = inner(first, dim, "cat")
    for other in tensors:
        if not isinstance(other, NestedTensor) or other._nested_rows is not first._nested_rows:
            raise unlike("cat", tuple(first.shape), tuple(other.shape))
    return with_values(func([values_of(t) for t in tensors], at), first._nested_rows, first._nested_dim)


@handles(JAGGED, "stack")
def stack(func: Callable[..., Any], tensors: Any, dim: int = 0) -> Any:
    first: Any = found(tensors)
    at = inner(first, dim, "stack", True, 1)
    made = func([values_of(t) for t in tensors], at)
    return with_values(made, first._nested_rows, first._nested_dim + (at + 1 <= first._nested_dim))
