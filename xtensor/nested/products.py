"""Products of jagged tensors: with weights over the values, per row over the padded form, and attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..checks import check
from ..nn.functional import scaled_dot_product_attention as attend
from ..tensor import Tensor
from .layout import JAGGED, NestedTensor, handles, is_jagged, values_of, with_values
from .padding import packed, padded

__all__ = ["attention"]


@handles(JAGGED, "linear")
def linear(func: Callable[..., Any], input: Any, weight: Any, bias: Any = None) -> Any:
    """A weight over the last dimension of every row."""
    if not is_jagged(input) or input._nested_dim == input.dim() - 1 or input._nested_rows.lengths is not None:
        raise ValueError(
            "NestedTensor linear_default(input: jt, weight: t, bias: t?): expected input to be a contiguous jagged layout "
            "NestedTensor"
        )
    return with_values(func(values_of(input), weight, bias), input._nested_rows, input._nested_dim)


@handles(JAGGED, "embedding")
def embedding(func: Callable[..., Any], input: Any, weight: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Rows of a weight for the elements."""
    return with_values(func(values_of(input), weight, *args, **kwargs), input._nested_rows, input._nested_dim)


@handles(JAGGED, "one_hot")
def one_hot(func: Callable[..., Any], input: Any, num_classes: int = -1) -> Any:
    return with_values(func(values_of(input), num_classes), input._nested_rows, input._nested_dim)


@handles(JAGGED, "matmul", "__matmul__", "bmm")
def matmul(func: Callable[..., Any], input: Any, other: Any) -> Any:
    """A product in which one argument has rows, or both, over which then is summed."""
    shapes = [tuple(input.shape) if is_jagged(input) else input.shape, other.shape]
    wrong = RuntimeError(f"matmul(): not supported between inputs of shapes {shapes[0]} and {shapes[1]}")
    if func.__name__ == "bmm":
        check(
            input.dim() == 3 and other.dim() == 3,
            "batch1 must be a 3D tensor" if input.dim() != 3 else "batch2 must be a 3D tensor",
        )
    if is_jagged(input) and is_jagged(other):
        rows = input._nested_rows
        summed = input._nested_dim == input.dim() - 1 and other._nested_dim == other.dim() - 2
        if rows is not other._nested_rows or not summed:
            raise wrong
        return padded(input, 0).matmul(padded(other, 0))
    if is_jagged(input):
        rows, at = input._nested_rows, input._nested_dim
        if at == input.dim() - 1 or isinstance(other, NestedTensor):
            raise wrong
        if other.dim() <= 2 and rows.lengths is None:
            return with_values(values_of(input).matmul(other), rows, at)
        if other.dim() != input.dim() or other.shape[0] != rows.count:
            raise wrong
        return packed(padded(input, 0).matmul(other), rows, at)
    rows, at = other._nested_rows, other._nested_dim
    if at != other.dim() - 1 or input.dim() != other.dim():
        raise wrong
    return packed(input.matmul(padded(other, 0)), rows, at)


@handles(JAGGED, "scaled_dot_product_attention")
def attention(
    func: Callable[..., Any],
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Attention of each row to its own keys: `(batch, heads, rows, size)`."""
    if not (is_jagged(query) and is_jagged(key) and is_jagged(value)):
        raise ValueError(
            "Expected query, key, and value to all be nested tensors of the jagged layout, "
            f"but got query.layout: {query.layout}, key.layout: {key.layout}, value.layout: {value.layout}"
        )
    check(
        query.dim() == 4 and key.dim() == 4 and value.dim() == 4,
        "Expected query, key and value of 4 dimensions",
    )
    if attn_mask is not None:
        raise ValueError("attn_mask must not be set for jagged layout NestedTensors")
    rows, keys = query._nested_rows, key._nested_rows
    check(
        keys.count == rows.count and value._nested_rows is keys,
        "Expected key and value to have the same rows",
    )
    place = query.device
    allowed = keys.told("allowed", keys.padding(place)[1].numpy() | (keys.counts == 0)[:, None], place)
    mask = allowed[:, None, None, :]
    if is_causal:
        mask = mask.logical_and(mask.new_ones((rows.high, keys.high)).tril())
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    made = attend(
        padded(query, 0),
        padded(key, 0),
        padded(value, 0),
        mask,
        dropout_p,
        scale=scale,
        enable_gqa=enable_gqa,
    )
    return packed(made, rows, query._nested_dim)
