"""Strided nested tensors: rows of any sizes, flat and one after the other in the values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..checks import check
from ..nn.functional import pad
from ..ops.create.ingest import tensor as tensor_of
from ..ops.shape.joining import cat as join
from ..ops.shape.joining import stack
from ..tensor import Tensor
from .layout import STRIDED, NestedTensor, handles, is_jagged, numel_of, values_of, with_values
from .pointwise import refused
from .rows import Pieces
from .shapes import axis, numbered

__all__ = ["assembled", "parts"]


def parts(nested: Any) -> list[Tensor]:
    """The rows, as views of the values."""
    sizes = nested._nested_rows.sizes
    if not sizes:
        return []
    flat = values_of(nested).split([math.prod(size) for size in sizes])
    return [piece.view(size) for piece, size in zip(flat, sizes, strict=True)]


def assembled(rows: Sequence[Tensor], dims: int | None = None, like: Tensor | None = None) -> Any:
    """A strided nested tensor of rows, which autograd follows."""
    sizes = tuple(tuple(row.shape) for row in rows)
    dims = len(sizes[0]) + 1 if sizes else 1 if dims is None else dims
    values = join([row.reshape(-1) for row in rows]) if rows else like
    return with_values(tensor_of([]) if values is None else values, Pieces(sizes, dims))


def each(nested: NestedTensor, change: Callable[[Tensor], Tensor]) -> Any:
    """A change of every row."""
    return assembled([change(row) for row in parts(nested)], nested.dim(), nested._nested_values)


@handles(STRIDED, "size")
def size(func: Any, self: NestedTensor, dim: int | None = None) -> Any:
    """The size of a dimension in which rows are alike."""
    if dim is None:
        return self.shape
    at = axis(self, dim)
    known = len(self._nested_rows.sizes) if not at else self._nested_rows.regular(at - 1)
    check(known is not None, "Given dimension {} is irregular and does not have a size.", at)
    return known


@handles(STRIDED, "is_same_size")
def is_same_size(func: Any, input: Any, other: Any) -> bool:
    nested = [isinstance(t, NestedTensor) for t in (input, other)]
    words = ["nested" if n else "not nested" for n in nested]
    check(
        all(nested),
        "Expected both self and other to be nested tensors. Self is {}. While Other is {}.",
        *words,
    )
    return input._nested_rows == other._nested_rows


@handles(STRIDED, "stride")
def stride(func: Any, self: NestedTensor, *rest: Any) -> Any:
    raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides. Please file an issue.")


@handles(STRIDED, "__len__", "numpy", "__array__", "tolist")
def length(func: Any, self: NestedTensor, *rest: Any, **options: Any) -> Any:
    raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")


@handles(STRIDED, "values", "_values")
def values(func: Any, self: NestedTensor) -> Tensor:
    return values_of(self)


@handles(STRIDED, "numel", "nelement")
def numel(func: Any, self: NestedTensor) -> int:
    return numel_of(self)


@handles(STRIDED, "is_contiguous")
def is_contiguous(func: Any, self: NestedTensor, *args: Any, **kwargs: Any) -> bool:
    return True


@handles(STRIDED, "unbind")
def unbind(func: Any, input: NestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    check(
        axis(input, dim) == 0,
        "NestedTensor can only be unbound along dimension 0 got dimension {} instead.",
        dim,
    )
    return tuple(parts(input))


@handles(STRIDED, "to_padded_tensor")
def to_padded_tensor(
    func: Any, self: NestedTensor, padding: float, output_size: Sequence[int] | None = None
) -> Tensor:
    """The dense form, as large as the largest row in each dimension, or of the sizes asked for."""
    rows = self._nested_rows
    largest = [max((size[d] for size in rows.sizes), default=0) for d in range(rows.dims - 1)]
    if output_size is not None:
        check(
            len(output_size) == rows.dims,
            "Internal error: output_size must have the dimensions of the nested tensor",
        )
        check(
            all(n >= m for n, m in zip(output_size[1:], largest, strict=True)),
            "Value in output_size is less than NestedTensor padded size. Truncation is not supported.",
        )
        largest = [int(n) for n in output_size[1:]]
    made: list[Tensor] = []
    for row in parts(self):
        short = [n - m for n, m in zip(largest, row.shape, strict=True)]
        made.append(pad(row, [n for m in reversed(short) for n in (0, m)], value=padding))
    return stack(made) if made else self._nested_values.new_zeros([0, *largest])


@handles(STRIDED, "select", "__getitem__")
def select(func: Any, input: NestedTensor, *places: Any) -> Any:
    """A row, or a part of every row."""
    if func.__name__ == "select":
        at = axis(input, places[0])
        given = [slice(None)] * at + [places[1]]
    else:
        given = list(places[0]) if isinstance(places[0], tuple) else [places[0]]
    if given[0] is Ellipsis:
        given[:1] = [slice(None)] * (input.dim() - len(given) + 1)
    if isinstance(given[0], int):
        count = len(input._nested_rows.sizes)
        if not -count <= given[0] < count:
            raise IndexError(f"index {given[0]} is out of bounds for dimension 0 with size {count}")
        row = parts(input)[given[0]]
        return row[tuple(given[1:])] if given[1:] else row
    if given[0] != slice(None) or any(isinstance(g, slice) and g != slice(None) for g in given[1:]):
        raise refused(input, "slice.Tensor")
    if func.__name__ == "__getitem__" and len(given) == 2 and input.dim() > 2:
        raise refused(input, "slice.Tensor")
    made = [row[tuple(given[1:])] for row in parts(input)]
    return assembled(made)


@handles(STRIDED, "transpose", "swapaxes", "swapdims")
def transpose(func: Any, input: NestedTensor, dim0: int, dim1: int) -> Any:
    first, second = axis(input, dim0), axis(input, dim1)
    if first == second:
        return input
    check(first and second, "Nested tensor dimension 0 cannot be transposed")
    return each(input, lambda row: row.transpose(first - 1, second - 1))


@handles(STRIDED, "unsqueeze")
def unsqueeze(func: Any, input: NestedTensor, dim: int) -> Any:
    at = axis(input, dim, 1)
    check(
        at > 0,
        "unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported at the moment if you need this feature, "
        "please open an issue on github describing your use case.",
    )
    return each(input, lambda row: row.unsqueeze(at - 1))


@handles(STRIDED, "squeeze")
def squeeze(func: Any, input: NestedTensor, dim: int | None = None) -> Any:
    check(dim is not None, "squeeze(): For nested tensors, a dim is required")
    at = axis(input, dim or 0)
    check(at > 0, "squeeze(): For nested tensors, squeezing dimension 0 is not supported at the moment")
    if input._nested_rows.regular(at - 1) != 1:
        return input
    return each(input, lambda row: row.squeeze(at - 1))


@handles(STRIDED, "view", "reshape")
def view(func: Callable[..., Any], self: NestedTensor, *shape: Any, **kwargs: Any) -> Any:
    """Other sizes of every row; -1 keeps the row's own, or is what is left of its elements."""
    name = func.__name__
    sizes = [int(n) for n in numbered(shape or (kwargs["shape"],))]
    check(
        sizes[0] == len(self._nested_rows.sizes),
        "{0}: For now nested {0} cannot change or infer the implicit batch dimension",
        name,
    )

    def told(row: Tensor) -> list[int]:
        old, new = tuple(row.shape), sizes[1:]
        return [old[d] if n == -1 and d < len(old) else n for d, n in enumerate(new)]

    return each(self, lambda row: row.view(told(row)))


@handles(STRIDED, "chunk")
def chunk(func: Any, input: NestedTensor, chunks: int, dim: int = 0) -> Any:
    at = axis(input, dim)
    check(
        at == input.dim() - 1, "Chunk for nested tensors is currently only supported for the last dimension."
    )
    split = [row.chunk(chunks, at - 1) for row in parts(input)]
    return tuple(assembled(list(piece)) for piece in zip(*split, strict=True))


@handles(STRIDED, "narrow")
def narrow(func: Any, input: NestedTensor, dim: int, start: int, length: int) -> Any:
    check(axis(input, dim) == 0, "narrow(): only dim=0 supported for nested tensors, but got: {}", dim)
    return assembled(parts(input)[start : start + length], input.dim(), input._nested_values)


@handles(STRIDED, "cat", "concat", "concatenate")
def cat(func: Any, tensors: Any, dim: int = 0) -> Any:
    """Rows after rows; along another dimension, the rows of the same number."""
    check(
        all(isinstance(t, NestedTensor) and not is_jagged(t) for t in tensors),
        "expected each tensor in given list to be nested",
    )
    at = axis(tensors[0], dim)
    if at == 0:
        return assembled([row for t in tensors for row in parts(t)])
    every = zip(*[parts(t) for t in tensors], strict=True)
    return assembled([join(list(rows), at - 1) for rows in every])


# ---- sums, products, normalisation ---------------------------------------------------------------------------------


@handles(STRIDED, "sum")
def sum_(func: Any, input: NestedTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if dim is None:
        raise refused(input, "sum")
    dims = list(dim) if isinstance(dim, (tuple, list)) else [dim]
    check(len(dims) == 1, "NestedTensor only allows reduction of a single dimension for now.")
    at = axis(input, dims[0])
    check(
        at == input.dim() - 1,
        "NestedTensor can only be reduced across the last dimension for now got dimension {} instead.",
        dims[0],
    )
    check(keepdim, "NestedTensor always requires keepdim=True for now.")
    return each(input, lambda row: row.sum(-1, True, dtype=dtype))


@handles(STRIDED, "softmax")
def softmax(func: Callable[..., Any], input: NestedTensor, dim: int, *args: Any, **kwargs: Any) -> Any:
    at = axis(input, dim)
    check(at > 0, "Cannot apply softmax across nested dimension 0")
    return each(input, lambda row: func(row, at - 1, *args, **kwargs))


@handles(STRIDED, "layer_norm")
def layer_norm(
    func: Callable[..., Any],
    input: NestedTensor,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    return each(input, lambda row: func(row, normalized_shape, weight, bias, eps))


@handles(STRIDED, "linear")
def linear(func: Callable[..., Any], input: Any, weight: Any, bias: Any = None) -> Any:
    """A weight over the last dimension of every row, all rows in one product."""
    if isinstance(weight, NestedTensor) or isinstance(bias, NestedTensor):
        raise RuntimeError("linear(): a nested weight is not supported")
    last = input._nested_rows.regular(-1)
    check(last is not None, "Expected all tensors in nested tensor to have the same trailing dimension")
    sizes = tuple((*size[:-1], weight.shape[0]) for size in input._nested_rows.sizes)
    made = func(values_of(input).view(-1, last), weight, bias)
    return with_values(made.reshape(-1), Pieces(sizes, input.dim()))


@handles(STRIDED, "embedding")
def embedding(func: Callable[..., Any], input: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    sizes = tuple((*size, weight.shape[1]) for size in input._nested_rows.sizes)
    made = func(values_of(input), weight, *args, **kwargs)
    return with_values(made.reshape(-1), Pieces(sizes, input.dim() + 1))


@handles(STRIDED, "matmul", "__matmul__", "bmm")
def matmul(func: Callable[..., Any], input: Any, other: Any) -> Any:
    """The rows' products, of two nested tensors; for bmm either may be dense."""
    both = isinstance(input, NestedTensor) and isinstance(other, NestedTensor)
    if func.__name__ != "bmm":
        check(
            both,
            "Expected both to be nested, but got a {} self and {}nested other",
            "nested" if isinstance(input, NestedTensor) else "non-nested",
            "" if isinstance(other, NestedTensor) else "non-",
        )
    left, right = (parts(t) if isinstance(t, NestedTensor) else list(t.unbind()) for t in (input, other))
    check(
        len(left) == len(right),
        "Expected size for the 1st dimension of batch2 tensor to be: {} but got: {}.",
        len(left),
        len(right),
    )
    return assembled([a.matmul(b) for a, b in zip(left, right, strict=True)])


@handles(STRIDED, "scaled_dot_product_attention")
def attention(
    func: Callable[..., Any],
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Attention of each row to its own keys."""
    check(
        all(isinstance(t, NestedTensor) for t in (query, key, value)) and attn_mask is None,
        "scaled_dot_product_attention: Nested tensors for query / key / value must all be nested, without an attn_mask",
    )
    every = zip(parts(query), parts(key), parts(value), strict=True)
    return assembled([func(*one, None, *args, **kwargs) for one in every])


@handles(STRIDED, "where")
def chosen(func: Any, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("self must not be nested")
