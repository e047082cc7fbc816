"""Primitives that multiply and add: products, convolutions, windows, Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from .building import Untranslated, Value
from .kernels import Pair, Primitives, primitive, real_type
from .moving import Params, Results, fixed, padded

__all__: list[str] = []


@primitive("dot_general")
def dot_general(p: Primitives, params: Params, results: Results, x: Value, y: Value) -> Value:
    b, dtype = p.builder, results[0].dtype
    (left, right), (batch_left, batch_right) = params["dimension_numbers"]
    x, y = b.cast(x, dtype), b.cast(y, dtype)
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    one = [next(letters) for _ in range(x.rank)]
    two = [next(letters) for _ in range(y.rank)]
    for mine, theirs in (*zip(left, right, strict=True), *zip(batch_left, batch_right, strict=True)):
        two[theirs] = one[mine]
    result = [one[d] for d in batch_left]
    result += [c for d, c in enumerate(one) if d not in left and d not in batch_left]
    result += [c for d, c in enumerate(two) if d not in right and d not in batch_right]
    equation = f"{''.join(one)},{''.join(two)}->{''.join(result)}"
    return b.op("Einsum", x, y, equation=equation, dtype=dtype, shape=results[0].shape)


@primitive("conv_general_dilated")
def convolution(p: Primitives, params: Params, results: Results, x: Value, weight: Value) -> Value:
    b, numbers = p.builder, params["dimension_numbers"]
    if params["batch_group_count"] != 1:
        raise Untranslated("a convolution in groups of samples has no form in ONNX")
    dtype = results[0].dtype
    x, weight = (
        b.transpose(b.cast(x, dtype), numbers.lhs_spec),
        b.transpose(b.cast(weight, dtype), numbers.rhs_spec),
    )
    edges = [
        (0, 0, 0),
        (0, 0, 0),
        *[
            (low, high, d - 1)
            for (low, high), d in zip(params["padding"], params["lhs_dilation"], strict=True)
        ],
    ]
    if any(v for edge in edges for v in edge):
        sizes = [
            n if not isinstance(n, int) else max((n - 1) * (c + 1) + 1, 0) + i + j
            for n, (i, j, c) in zip(x.shape, edges, strict=True)
        ]
        x = padded(b, x, b.zero_like(x), edges, sizes)
    found = b.op(
        "Conv", x, weight, strides=list(params["window_strides"]), dilations=list(params["rhs_dilation"]), group=params["feature_group_count"],
        shape=[results[0].shape[d] for d in numbers.out_spec],
    )  # fmt: skip
    back = [numbers.out_spec.index(d) for d in range(len(numbers.out_spec))]
    return b.transpose(found, back)


def window(kind: str) -> Any:
    def run(p: Primitives, params: Params, results: Results, x: Value) -> Value:
        b = p.builder
        fixed(x.shape)
        first: Any = 0
        if kind != "Add":
            first = (-np.inf if kind == "Max" else np.inf) if x.dtype.is_floating_point else None
        if first is None:
            limits = np.iinfo(x.dtype.numpy)
            first = limits.min if kind == "Max" else limits.max
        edges = [
            (low, high, d - 1)
            for (low, high), d in zip(params["padding"], params["base_dilation"], strict=True)
        ]
        sizes = [max((n - 1) * (c + 1) + 1, 0) + i + j for n, (i, j, c) in zip(x.shape, edges, strict=True)]
        if any(v for edge in edges for v in edge):
            x = padded(b, x, b.constant(first, x.dtype), edges, sizes)
        # One dimension after the other: a window's elements are slices.
        for dim, (length, step, apart) in enumerate(
            zip(params["window_dimensions"], params["window_strides"], params["window_dilation"], strict=True)
        ):
            count = results[0].shape[dim]
            shape = [*x.shape[:dim], count, *x.shape[dim + 1 :]]
            if length == 1 and step == 1:
                continue
            parts = [b.op("Slice", x, b.constant([at * apart]), b.constant([at * apart + (count - 1) * step + 1]), b.constant([dim]),
                          b.constant([step]), shape=shape) for at in range(length)]  # fmt: skip
            x = parts[0]
            for part in parts[1:]:
                x = b.op(kind, x, part)
        return x

    return run


primitive("reduce_window_sum")(window("Add"))
primitive("reduce_window_max")(window("Max"))
primitive("reduce_window_min")(window("Min"))


@primitive("fft", pairs=True)
def fourier(p: Primitives, params: Params, results: Results, x: Any) -> Any:
    b, kind, lengths = (
        p.builder,
        ("FFT", "IFFT", "RFFT", "IRFFT")[int(params["fft_type"])],
        list(params["fft_lengths"]),
    )
    dtype = real_type(results[0].dtype)
    rank = len(results[0].shape)
    fixed(lengths)

    def along(value: Value, matrix: np.ndarray[Any, Any], dim: int) -> Value:
        order = [*[d for d in range(rank) if d != dim], dim]
        moved = b.transpose(value, order)
        made = b.op("MatMul", moved, b.constant(matrix, dtype), shape=(*moved.shape[:-1], matrix.shape[1]))
        return b.transpose(made, [order.index(d) for d in range(rank)])

    def turned(value: Any, matrix: np.ndarray[Any, Any], dim: int) -> Pair:
        if isinstance(value, Value):
            return Pair(along(value, matrix.real, dim), along(value, matrix.imag, dim))
        (a, c), (s, t) = value, (matrix.real, matrix.imag)
        real = b.op("Sub", along(a, s, dim), along(c, t, dim))
        return Pair(real, b.op("Add", along(a, t, dim), along(c, s, dim)))

    sign, dims = (-1 if kind in ("FFT", "RFFT") else 1), list(range(rank - len(lengths), rank))
    last = dims[-1]
    factors = {dim: waves(n, sign) / (1 if sign < 0 else n) for dim, n in zip(dims, lengths, strict=True)}
    if kind == "RFFT":
        x = turned(x, factors[last][:, : lengths[-1] // 2 + 1], last)
    for dim in dims[:-1] if kind in ("RFFT", "IRFFT") else dims:
        x = turned(x, factors[dim], dim)
    if kind == "IRFFT":
        # The frequencies that are left out are conjugates of those that are there.
        n, half = lengths[-1], lengths[-1] // 2 + 1
        weights = np.where((np.arange(half) == 0) | (2 * np.arange(half) == n), 1, 2)[:, None]
        matrix = factors[last][:half] * weights
        x = b.op("Sub", along(x.real, matrix.real, last), along(x.imag, matrix.imag, last))
    return x


def waves(count: int, sign: int) -> np.ndarray[Any, Any]:
    """The matrix of a Fourier transform."""
    return np.exp(sign * 2j * np.pi * (np.outer(np.arange(count), np.arange(count)) % count) / count)
