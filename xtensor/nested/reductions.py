"""Sums, extrema, softmax and normalisation of jagged tensors: over the values, and over the padded form where rows are crossed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..checks import check
from ..tensor import Tensor
from .layout import JAGGED, NestedTensor, handles, values_of, with_values
from .padding import mask_at, packed, padded
from .shapes import axis

__all__ = ["neutral"]

NEUTRAL = {"sum": 0, "mean": 0, "prod": 1, "any": 0, "all": 1}


def neutral(name: str, dtype: Any) -> Any:
    """What padding is, for a reduction not to see it."""
    if name in NEUTRAL:
        return NEUTRAL[name]
    low = name in ("amax", "max", "argmax")
    if dtype.is_floating_point:
        limits = dtypes.finfo(dtype)
        return limits.min if low else limits.max
    if dtype is dtypes.bool:
        return not low
    limits = dtypes.iinfo(dtype)
    return limits.min if low else limits.max


@handles(JAGGED, "sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all")
def reduce(
    func: Callable[..., Any], input: NestedTensor, dim: Any = None, keepdim: bool = False, **kwargs: Any
) -> Any:
    """A reduction; one over the ragged dimension alone has a dense result, one that leaves it a jagged one."""
    name = func.__name__
    rows, at = input._nested_rows, input._nested_dim
    if isinstance(dim, (Tensor, NestedTensor)):
        raise NotImplementedError(f"aten.{name}.other")
    if dim is None or dim == ():
        return func(values_of(input), **kwargs)
    dims = sorted({axis(input, d) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))})
    across = at in dims
    if dims[0] == 0:
        check(
            across,
            "{}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors",
            name,
        )
        check(rows.lengths is None, HOLES, name)
        made = func(values_of(input), tuple(d - 1 for d in dims[1:]), keepdim, **kwargs)
        return made.unsqueeze(0) if keepdim else made
    if across:
        if len(dims) > 1:
            if name == "mean":
                raise AssertionError(
                    "Cannot reduce on both ragged and non-batch dimensions without also reducing on batch"
                )
            raise RuntimeError(
                f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
            )
        check(rows.lengths is None, HOLES, name)
        filled = padded(input, neutral(name, input.dtype))
        if name == "mean":
            sizes = rows.sizes(input.device).reshape([rows.count, *[1] * (input.dim() - 1)])
            total = filled.sum(at, True, **kwargs) / sizes
            return total if keepdim else total.squeeze(at)
        return func(filled, at, keepdim, **kwargs)
    inside = tuple(d - 1 for d in dims)
    made = func(values_of(input), inside[0] if len(inside) == 1 else inside, keepdim, **kwargs)
    left = at if keepdim else at - sum(d < at for d in dims)
    if isinstance(made, Tensor):
        return with_values(made, rows, left)
    return type(made)(*[with_values(part, rows, left) for part in made])


HOLES = (
    "{}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes"
)


@handles(JAGGED, "softmax", "log_softmax")
def soften(func: Callable[..., Any], input: NestedTensor, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Softmax within rows' elements, or across the elements of each row.

    Differs from PyTorch: the gradient across rows' elements is that of softmax; PyTorch 2.13 gives another.
    """
    name, rows, at = func.__name__, input._nested_rows, input._nested_dim
    place = axis(input, -1 if dim is None else dim)
    check(place != 0, "{}(): not supported when reducing across the batch dimension for NestedTensor", name)
    if place != at:
        return with_values(func(values_of(input), place - 1, *args, **kwargs), rows, at)
    check(
        name == "softmax",
        "{}(): not supported when reducing along the ragged dimension for NestedTensor",
        name,
    )
    check(rows.lengths is None, HOLES, name)
    return packed(func(padded(input, -math.inf), at, *args, **kwargs), rows, at)


@handles(JAGGED, "rms_norm")
def rms_norm(
    func: Callable[..., Any], input: NestedTensor, normalized_shape: Any, *args: Any, **kwargs: Any
) -> Any:
    made = func(values_of(input), normalized_shape, *args, **kwargs)
    return with_values(made, input._nested_rows, input._nested_dim)


@handles(JAGGED, "layer_norm")
def layer_norm(
    func: Callable[..., Any],
    input: NestedTensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """Normalisation over the last dimensions, of which the ragged one may be the first."""
    rows, at = input._nested_rows, input._nested_dim
    first = input.dim() - len(tuple(normalized_shape))
    if first > at:
        return with_values(func(values_of(input), normalized_shape, weight, bias, eps), rows, at)
    check(first > 0, "layer_norm(): normalizing over the batch dimension not supported for NestedTensor")
    check(first == at, "layer_norm(): normalizing over the ragged dimension is for dimensions from it on")
    check(rows.lengths is None, "layer_norm(): not supported for non-contiguous nested tensors with holes")
    filled = padded(input, 0)
    inside = mask_at(rows, at, input.dim(), input.device)
    dims = tuple(range(at, input.dim()))
    total = inside.sum(at, True) * math.prod(filled.shape[at + 1 :])
    centre = filled.sum(dims, True) / total
    apart = (filled - centre) * inside
    spread = (apart * apart).sum(dims, True) / total
    made = packed(apart * (spread + eps).rsqrt(), rows, at)
    made = made if weight is None else made * weight
    return made if bias is None else made + bias
