"""Primitives that move elements: other sizes and orders, and parts; and sizes as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import Literal

from ....dtypes import FROM_NUMPY
from ....tensor import Tensor
from .table import asked, op, rule

__all__ = ["as_tensor", "cut", "padded", "permuted"]


def as_tensor(size: Any) -> Tensor:
    """A size as a tensor."""
    return op("add", op("full", [], 0, dtype=FROM_NUMPY[np.dtype(np.int64)]), size)


def permuted(x: Tensor, order: Sequence[int]) -> Tensor:
    """The dimensions in another order."""
    return x if list(order) == list(range(len(order))) else op("permute", x, list(order))


@rule("broadcast_in_dim", moves=True)
def broadcast(equation: Any, x: Any, *sizes: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    shape, dims = equation.params["shape"], equation.params["broadcast_dimensions"]
    first = dims[0] if dims else len(shape)
    for dim in range(first, len(shape)):
        if dim not in dims and dims:
            x = op("unsqueeze", x, dim - first)
    return op("expand", x, list(shape))


@rule("reshape", moves=True)
def reshape(equation: Any, x: Any, *sizes: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    order = equation.params["dimensions"]
    return op("reshape", x if order is None else permuted(x, order), list(equation.params["new_sizes"]))


@rule("squeeze", moves=True)
def squeeze(equation: Any, x: Any) -> Any:
    return op("squeeze", x, list(equation.params["dimensions"])) if isinstance(x, Tensor) else x


@rule("expand_dims", moves=True)
def expand_dims(equation: Any, x: Any) -> Any:
    for dim in sorted(equation.params["dimensions"]) if isinstance(x, Tensor) else ():
        x = op("unsqueeze", x, dim)
    return x


@rule("transpose", moves=True)
def transpose(equation: Any, x: Any) -> Any:
    return op("permute", x, list(equation.params["permutation"])) if isinstance(x, Tensor) else x


@rule("rev", moves=True)
def reverse(equation: Any, x: Any) -> Any:
    return op("flip", x, list(equation.params["dimensions"])) if isinstance(x, Tensor) else x


@rule("concatenate")
def concatenate(equation: Any, *parts: Tensor) -> Tensor:
    return op("cat", list(parts), equation.params["dimension"])


@rule("stack")
def stack(equation: Any, *parts: Tensor) -> Tensor:
    return op("stack", list(parts), equation.params["axis"])


@rule("split")
def split(equation: Any, x: Tensor) -> Any:
    return op("split_with_sizes", x, list(equation.params["sizes"]), equation.params["axis"])


@rule("unstack")
def unstack(equation: Any, x: Tensor) -> Any:
    return list(op("unbind", x, equation.params["axis"]))


@rule("slice", moves=True)
def slice_(equation: Any, x: Any) -> Any:
    params = equation.params
    starts, ends = params["start_indices"], params["limit_indices"]
    steps = params["strides"] or [1] * len(starts)
    for dim, (start, end, step) in enumerate(zip(starts, ends, steps, strict=True)):
        if isinstance(x, Tensor):
            x = cut(x, dim, start, end, step)
    return x


def cut(x: Tensor, dim: int, start: Any, end: Any, step: int = 1) -> Tensor:
    """A part of one dimension."""
    whole = start == 0 and end == x.shape[dim] and step == 1
    return x if whole else op("slice", x, dim, start, end, step)


@rule("pad")
def pad(equation: Any, x: Tensor, value: Tensor) -> Tensor:
    filler = equation.invars[1]
    if not isinstance(filler, Literal):
        return padded_with(equation, x, value)
    return padded(x, equation.params["padding_config"], np.asarray(filler.val).item())


def padded_with(equation: Any, x: Tensor, value: Tensor) -> Tensor:
    """A tensor with elements around it that a tensor holds."""
    config = equation.params["padding_config"]
    inside = padded(op("ones_like", x, dtype=FROM_NUMPY[np.dtype(bool)]), config, False)
    return op("where", inside, padded(x, config, 0), value)


def padded(x: Tensor, config: Sequence[tuple[Any, Any, Any]], value: Any) -> Tensor:
    """A tensor with elements around it and between; with fewer, where a width is negative."""
    for dim, (_, _, between) in enumerate(config):
        if between and x.shape[dim] > 1:
            sizes = list(x.shape)
            sizes[dim] = (sizes[dim] - 1) * (between + 1) + 1
            wide = op("full", sizes, value, dtype=x.dtype)
            x = asked("slice_scatter", "default", wide, x, dim, 0, sizes[dim], between + 1)
    for dim, (low, high, _) in enumerate(config):
        x = cut(x, dim, max(-low, 0), x.shape[dim] - max(-high, 0))
    widths = [max(w, 0) for low, high, _ in reversed(config) for w in (low, high)]
    return op("constant_pad_nd", x, widths, value) if any(widths) else x


@rule("empty2", moves=True)
def empty(equation: Any) -> Any:
    return np.dtype(equation.params["dtype"]).type(0)


@rule("iota", moves=True)
def iota(equation: Any, *sizes: Any) -> Any:
    params = equation.params
    shape, dim = params["shape"], params["dimension"]
    found = op("arange", shape[dim], dtype=FROM_NUMPY[params["dtype"]])
    for _ in range(len(shape) - dim - 1):
        found = op("unsqueeze", found, -1)
    return op("expand", found, list(shape)) if len(shape) > 1 else found


@rule("dim_as_value")
def dim_as_value(equation: Any) -> Any:
    return as_tensor(equation.params["dim"])
