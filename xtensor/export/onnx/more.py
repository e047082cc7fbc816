"""Translations of writes by index, distances, losses and other operators that take several nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from .building import Builder, Untranslated, Value, dim_of, translation
from .pointwise import reduced
from .reductions import reduce

__all__: list[str] = []


# ---- writes by index


@translation("index_put")
def index_put(
    b: Builder,
    input: Value,
    indices: Sequence[Any],
    values: Any,
    accumulate: bool = False,
    *rest: Any,
    **more: Any,
) -> Value:
    own = [i for i in indices if i is not None]
    if list(indices[: len(own)]) != own or any(i.dtype is dtypes.bool for i in own):
        if len(own) == 1 and own[0].dtype is dtypes.bool and own[0].shape == input.shape and not accumulate:
            return b.op("Where", own[0], b.number(values, input), input, like=input)
        raise Untranslated("index_put with masks, or whose indices do not stand first")
    shape = b.broadcast([i.shape for i in own])
    columns = [
        b.op("Unsqueeze", b.expand(i, shape), b.constant([len(shape)]), shape=(*shape, 1)) for i in own
    ]
    where = (
        columns[0]
        if len(columns) == 1
        else b.op("Concat", *columns, axis=len(shape), shape=(*shape, len(own)))
    )
    source = b.expand(b.number(values, input), [*shape, *input.shape[len(own) :]])
    return b.op("ScatterND", input, where, source, reduction="add" if accumulate else None, like=input)


@translation("index_add", "index_copy")
def index_add(
    b: Builder, input: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1, **rest: Any
) -> Value:
    if not input.rank:
        raise Untranslated(f"{b.operator} of a tensor without dimensions")
    at = dim_of(dim, input.rank)
    if alpha != 1:
        source = b.op("Mul", source, b.number(alpha, source))
    where = b.reshape(index, [1] * at + [source.shape[at]] + [1] * (input.rank - 1 - at))
    where = b.expand(where, source.shape)
    how = "add" if b.operator == "index_add" else None
    return b.op("ScatterElements", input, where, source, axis=at, reduction=how, like=input)


@translation("new_tensor")
def new_tensor(b: Builder, self: Value, data: Any, **rest: Any) -> Value:
    return b.constant(data, b.result.dtype)


@translation("diag_embed")
def diag_embed(b: Builder, input: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    rank = input.rank + 1
    if (
        offset
        or (dim_of(dim1, rank), dim_of(dim2, rank)) != (rank - 2, rank - 1)
        or not isinstance(input.shape[-1], int)
    ):
        raise Untranslated("diag_embed off the main diagonal, or of open sizes")
    one = b.constant(np.eye(input.shape[-1]), input.dtype)
    return b.op("Mul", b.reshape(input, [*input.shape, 1]), one, shape=b.result.shape)


# ---- comparisons and signs


@translation("isclose")
def isclose(
    b: Builder, input: Value, other: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:
    if not input.dtype.is_floating_point or equal_nan:
        raise Untranslated("isclose of integers, or with equal_nan")
    allowed = b.op("Add", b.op("Mul", b.op("Abs", other), b.number(rtol, other)), b.number(atol, other))
    near = b.op(
        "LessOrEqual",
        b.op("Abs", b.op("Sub", input, other)),
        allowed,
        dtype=dtypes.bool,
        shape=b.result.shape,
    )
    return b.op("Or", near, b.op("Equal", input, other, dtype=dtypes.bool))


@translation("isreal")
def isreal(b: Builder, input: Value) -> Value:
    return b.expand(b.constant(True), input.shape)


# ---- products and distances


@translation("tensordot")
def tensordot(
    b: Builder, a: Value, other: Value, dims_self: Sequence[int], dims_other: Sequence[int], **rest: Any
) -> Value:
    letters = "abcdefghijklmnopqrstuvwxyz"
    one = list(letters[: a.rank])
    two = list(letters[a.rank : a.rank + other.rank])
    mine, theirs = [dim_of(d, a.rank) for d in dims_self], [dim_of(d, other.rank) for d in dims_other]
    for m, t in zip(mine, theirs, strict=True):
        two[t] = one[m]
    left = [c for i, c in enumerate(one) if i not in mine] + [c for i, c in enumerate(two) if i not in theirs]
    equation = f"{''.join(one)},{''.join(two)}->{''.join(left)}"
    return b.op("Einsum", *b.common(a, other), equation=equation, shape=b.result.shape)


@translation("linalg_vecdot")
def vecdot(b: Builder, x: Value, y: Value, *, dim: int = -1, **rest: Any) -> Value:
    found = b.op("Mul", *b.common(x, y), shape=b.broadcast([x.shape, y.shape]))
    return reduce(b, "ReduceSum", found, dim, False)


@translation("linalg_det")
def det(b: Builder, input: Value, **rest: Any) -> Any:
    return (b.op("Det", input, shape=input.shape[:-2]),)


def norm_of(b: Builder, x: Value, p: Any, dim: Any, keepdim: bool) -> Value:
    """The p-norm over dimensions."""
    if p in (1, 2):
        return reduce(b, "ReduceL1" if p == 1 else "ReduceL2", x, dim, keepdim)
    if p == float("inf"):
        return reduce(b, "ReduceMax", b.op("Abs", x), dim, keepdim)
    if p in (0, float("-inf")):
        raise Untranslated(f"a distance of order {p}")
    powers = reduce(b, "ReduceSum", b.op("Pow", b.op("Abs", x), b.number(float(p), x)), dim, keepdim)
    return b.op("Pow", powers, b.number(1 / float(p), x))


@translation("pairwise_distance")
def pairwise_distance(
    b: Builder, x1: Value, x2: Value, p: Any = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Value:
    apart = b.op("Sub", x1, x2, shape=b.broadcast([x1.shape, x2.shape]))
    return norm_of(b, b.op("Add", apart, b.number(eps, apart)), p, -1, keepdim)


@translation("dist")
def dist(b: Builder, input: Value, other: Value, p: Any = 2) -> Value:
    return norm_of(
        b, b.op("Sub", input, other, shape=b.broadcast([input.shape, other.shape])), p, None, False
    )


@translation("cdist")
def cdist(b: Builder, x1: Value, x2: Value, p: Any = 2.0, *rest: Any, **more: Any) -> Value:
    one = b.op("Unsqueeze", x1, b.constant([x1.rank - 1]), shape=(*x1.shape[:-1], 1, x1.shape[-1]))
    two = b.op("Unsqueeze", x2, b.constant([x2.rank - 2]), shape=(*x2.shape[:-2], 1, *x2.shape[-2:]))
    apart = b.op("Sub", one, two, shape=b.broadcast([one.shape, two.shape]))
    return norm_of(b, apart, p, -1, False)


# ---- windows


@translation("im2col")
def im2col(
    b: Builder, input: Value, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Value:
    two = [v if isinstance(v, (list, tuple)) else (v, v) for v in (kernel_size, dilation, padding, stride)]
    kernel, dilations, pads, strides = [list(v) * (2 if len(v) == 1 else 1) for v in two]
    if input.rank != 4 or not isinstance(input.shape[1], int):
        raise Untranslated("unfold of a sample alone, or of open channels")
    channels, count = input.shape[1], kernel[0] * kernel[1]
    # Each output channel of a grouped convolution picks one place of the window.
    weight = np.zeros((channels * count, 1, *kernel))
    for channel in range(channels):
        for at in range(count):
            weight[channel * count + at, 0, at // kernel[1], at % kernel[1]] = 1
    found = b.op(
        "Conv", input, b.constant(weight, input.dtype), strides=strides, dilations=dilations, pads=pads * 2, group=channels, shape=(),
    )  # fmt: skip
    return b.op("Reshape", found, b.constant([0, channels * count, -1]), shape=b.result.shape)


@translation("upsample_nearest_exact1d", "upsample_nearest_exact2d", "upsample_nearest_exact3d")
def nearest_exact(
    b: Builder, input: Value, output_size: Any = None, align_corners: Any = False, scale_factors: Any = None
) -> Value:
    count = input.rank - 2
    more: dict[str, Any] = {
        "mode": "nearest",
        "coordinate_transformation_mode": "half_pixel",
        "nearest_mode": "round_prefer_ceil",
    }
    if output_size is not None:
        sizes = [output_size] * count if isinstance(output_size, int) else list(output_size)
        return b.op(
            "Resize", input, None, None, b.sized([*input.shape[:2], *sizes]), shape=b.result.shape, **more
        )
    factors = [scale_factors] * count if isinstance(scale_factors, (int, float)) else list(scale_factors)
    scales = b.constant(np.asarray([1.0, 1.0, *factors], np.float32))
    return b.op("Resize", input, None, scales, shape=b.result.shape, **more)


# ---- losses


@translation("kl_div")
def kl_div(
    b: Builder, input: Value, target: Value, reduction: Any = "mean", log_target: bool = False, **rest: Any
) -> Value:
    if log_target:
        found = b.op("Mul", b.op("Exp", target), b.op("Sub", target, input))
    else:
        log = b.op("Log", target)
        zero = b.op("Equal", target, b.zero_like(target), dtype=dtypes.bool)
        found = b.op(
            "Sub",
            b.op("Where", zero, target, b.op("Mul", target, log), like=target),
            b.op("Mul", target, input),
        )
    if reduction == "batchmean":
        total = b.op("ReduceSum", found, keepdims=0, shape=())
        return b.op("Div", total, b.number(input.shape[0] if input.rank else 1, total))
    return reduced(b, found, reduction)


@translation("binary_cross_entropy")
def binary_cross_entropy(
    b: Builder, input: Value, target: Value, weight: Any = None, reduction: Any = "mean", **rest: Any
) -> Value:
    one, least = b.number(1.0, input), b.number(-100.0, input)
    yes = b.op("Max", b.op("Log", input), least)
    no = b.op("Max", b.op("Log", b.op("Sub", one, input, like=input)), least)
    rest_of = b.op("Sub", one, target, like=target)
    found = b.op("Neg", b.op("Add", b.op("Mul", target, yes), b.op("Mul", rest_of, no)))
    return reduced(b, found if weight is None else b.op("Mul", found, weight), reduction)


@translation("soft_margin_loss")
def soft_margin_loss(b: Builder, input: Value, target: Value, reduction: Any = "mean", **rest: Any) -> Value:
    return reduced(b, b.op("Softplus", b.op("Neg", b.op("Mul", target, input))), reduction)


@translation("margin_ranking_loss")
def margin_ranking_loss(
    b: Builder,
    input1: Value,
    input2: Value,
    target: Value,
    margin: Any = 0.0,
    reduction: Any = "mean",
    **rest: Any,
) -> Value:
    apart = b.op(
        "Neg",
        b.op("Mul", target, b.op("Sub", input1, input2), shape=b.broadcast([target.shape, input1.shape])),
    )
    return reduced(b, b.op("Relu", b.op("Add", apart, b.number(margin, apart))), reduction)


@translation("hinge_embedding_loss")
def hinge_embedding_loss(
    b: Builder, input: Value, target: Value, margin: Any = 1.0, reduction: Any = "mean", **rest: Any
) -> Value:
    one, zero = b.number(1.0, input), b.zero_like(input)
    far = b.op("Relu", b.op("Sub", b.number(margin, input), input, like=input))
    near = b.op(
        "Where", b.op("Equal", target, b.cast(one, target.dtype), dtype=dtypes.bool), input, zero, like=input
    )
    low = b.op("Equal", target, b.cast(b.op("Neg", one), target.dtype), dtype=dtypes.bool)
    return reduced(b, b.op("Add", near, b.op("Where", low, far, zero, like=input)), reduction)


@translation("poisson_nll_loss")
def poisson_nll_loss(
    b: Builder,
    input: Value,
    target: Value,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: Any = "mean",
    **rest: Any,
) -> Value:
    if full:
        raise Untranslated("poisson_nll_loss with Stirling's term")
    if log_input:
        found = b.op("Sub", b.op("Exp", input), b.op("Mul", target, input))
    else:
        found = b.op("Sub", input, b.op("Mul", target, b.op("Log", b.op("Add", input, b.number(eps, input)))))
    return reduced(b, found, reduction)
