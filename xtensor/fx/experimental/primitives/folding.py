"""Primitives that fold, scan, order or multiply."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....dtypes import FROM_NUMPY
from ....tensor import Tensor
from .moving import cut, padded, permuted
from .table import Rule, op, rule

__all__: list[str] = []


def fold(name: str, params: Any, x: Tensor) -> Any:
    axes = list(params["axes"])
    if not axes:
        return x
    if name in ("prod", "all", "any"):
        for axis in sorted(axes, reverse=True):
            x = op(name, x, axis)
        return x
    return op(name, x, axes)


@rule("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or")
def reduced(equation: Any, x: Tensor) -> Any:
    kind = equation.primitive.name.removeprefix("reduce_")
    if kind in ("and", "or") and x.dtype is not FROM_NUMPY[np.dtype(bool)]:
        raise NotImplementedError(
            f"make_fx: the primitive {equation.primitive.name} of integers is no operator"
        )
    names = {"max": "amax", "min": "amin", "and": "all", "or": "any"}
    return fold(names.get(kind, kind), equation.params, x)


@rule("argmax", "argmin")
def argument(equation: Any, x: Tensor) -> Tensor:
    (axis,) = equation.params["axes"]
    if x.dtype is FROM_NUMPY[np.dtype(bool)]:
        x = x.to(FROM_NUMPY[np.dtype(np.int32)])
    return op(equation.primitive.name, x, axis)


def scan_of(name: str) -> Rule:
    def run(equation: Any, x: Tensor) -> Any:
        axis, turned = equation.params["axis"], equation.params["reverse"]
        found = op(name, op("flip", x, [axis]) if turned else x, axis)
        found = found if isinstance(found, Tensor) else found[0]
        return op("flip", found, [axis]) if turned else found

    return run


for name in ("cumsum", "cumprod", "cummax", "cummin"):
    rule(name)(scan_of(name))
rule("cumlogsumexp")(scan_of("logcumsumexp"))


@rule("sort")
def sort(equation: Any, *values: Tensor) -> list[Tensor]:
    params = equation.params
    dim, count = params["dimension"], params["num_keys"]
    if len(values) == 1:
        return [op("sort", values[0], dim=dim, stable=True)[0]]
    order: Any = None
    for key in values[:count][::-1]:
        key = key if order is None else op("gather", key, dim, order)
        found = op("sort", key, dim=dim, stable=True)[1]
        order = found if order is None else op("gather", order, dim, found)
    return [op("gather", value, dim, order) for value in values]


@rule("top_k")
def top(equation: Any, x: Tensor) -> Any:
    return list(op("topk", x, equation.params["k"], equation.params.get("axis", -1)))


# ---- products


@rule("dot_general")
def dot_general(equation: Any, x: Tensor, y: Tensor) -> Tensor:
    (left, right), (batch_left, batch_right) = equation.params["dimension_numbers"]
    aval = equation.outvars[0].aval
    dtype = FROM_NUMPY[aval.dtype]
    x, y = x.to(dtype), y.to(dtype)
    own = [d for d in range(x.dim()) if d not in left and d not in batch_left]
    others = [d for d in range(y.dim()) if d not in right and d not in batch_right]
    sizes = [x.shape[d] for d in batch_left]
    inner = math.prod([x.shape[d] for d in left])
    count, columns = math.prod([x.shape[d] for d in own]), math.prod([y.shape[d] for d in others])

    def shaped(t: Tensor, order: list[int], shape: list[Any]) -> Tensor:
        t = permuted(t, order)
        return t if list(t.shape) == shape else op("reshape", t, shape)

    if batch_left:
        batch = math.prod(sizes)
        one = shaped(x, [*batch_left, *own, *left], [batch, count, inner])
        two = shaped(y, [*batch_right, *right, *others], [batch, inner, columns])
        found = op("bmm", one, two)
    else:
        one = shaped(x, [*own, *left], [count, inner])
        two = shaped(y, [*right, *others], [inner, columns])
        found = op("mm", one, two)
    shape = list(aval.shape)
    return found if list(found.shape) == shape else op("reshape", found, shape)


@rule("conv_general_dilated")
def convolution(equation: Any, x: Tensor, weight: Tensor) -> Tensor:
    params = equation.params
    numbers, groups = params["dimension_numbers"], params["feature_group_count"]
    dtype = FROM_NUMPY[equation.outvars[0].aval.dtype]
    x, weight = permuted(x.to(dtype), numbers.lhs_spec), permuted(weight.to(dtype), numbers.rhs_spec)
    apart = params["batch_group_count"]
    if apart != 1:  # groups of samples are groups of features of fewer samples
        n, c, *rest = x.shape
        x = op("reshape", x, [apart, n // apart, c, *rest])
        x = op("reshape", op("transpose", x, 0, 1), [n // apart, apart * c, *rest])
        groups = apart
    edges = params["padding"]
    config = [(0, 0, 0), (0, 0, 0), *[(low, high, d - 1) for (low, high), d in zip(edges, params["lhs_dilation"], strict=True)]]  # fmt: skip
    plain = all(low == high >= 0 and not between for low, high, between in config)
    if not plain:
        x = padded(x, config, 0)
    padding = [low if plain else 0 for low, _ in edges]
    steps, dilation = list(params["window_strides"]), list(params["rhs_dilation"])
    found = op("convolution", x, weight, None, steps, padding, dilation, False, [0] * len(steps), groups)
    spec = numbers.out_spec
    return permuted(found, [spec.index(d) for d in range(len(spec))])


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def window(equation: Any, x: Tensor) -> Tensor:
    params, kind = equation.params, equation.primitive.name.removeprefix("reduce_window_")
    first: Any = 0
    if kind != "sum":
        dtype = np.dtype(x.dtype.numpy)
        lowest, highest = (-math.inf, math.inf) if x.dtype.is_floating_point else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))  # fmt: skip
        first = lowest if kind == "max" else highest
    edges = zip(params["padding"], params["base_dilation"], strict=True)
    x = padded(x, [(low, high, d - 1) for (low, high), d in edges], first)
    fold = {"sum": "add", "max": "maximum", "min": "minimum"}[kind]
    widths = zip(
        params["window_dimensions"], params["window_strides"], params["window_dilation"], strict=True
    )
    for dim, (length, step, apart) in enumerate(widths):  # the elements of a window are slices
        if length == 1 and step == 1:
            continue
        count = equation.outvars[0].aval.shape[dim]
        parts = [cut(x, dim, at * apart, at * apart + (count - 1) * step + 1, step) for at in range(length)]
        x = parts[0]
        for each in parts[1:]:
            x = op(fold, x, each)
    return x


@rule("fft")
def fourier(equation: Any, x: Tensor) -> Tensor:
    params = equation.params
    name = ("fftn", "ifftn", "rfftn", "irfftn")[int(params["fft_type"])]
    lengths = list(params["fft_lengths"])
    return op(f"fft_{name}", x, lengths, list(range(-len(lengths), 0)))
