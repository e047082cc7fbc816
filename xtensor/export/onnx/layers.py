"""Translations of products, convolutions, pools, interpolation, attention and recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from .building import Builder, Untranslated, Value, dim_of, several, translation
from .shapes import transpose

__all__: list[str] = []


# ---- products


@translation("matmul", "mm", "bmm", "mv", "dot", "vdot")
def matmul(b: Builder, input: Value, other: Value, **rest: Any) -> Value:
    return b.op("MatMul", *b.common(input, other), shape=b.result.shape)


@translation("linear")
def linear(b: Builder, input: Value, weight: Value, bias: Any = None) -> Value:
    if input.rank == 2 and weight.rank == 2:
        return b.op("Gemm", input, weight, bias, transB=1, shape=b.result.shape)
    turned = b.transpose(weight, list(range(weight.rank))[::-1])
    found = b.op("MatMul", input, turned, shape=b.result.shape)
    return found if bias is None else b.op("Add", found, bias)


@translation("addmm", "baddbmm", "addmv", "addr", "addbmm")
def addmm(
    b: Builder, input: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1, **rest: Any
) -> Value:
    if b.operator == "addr":
        mat1 = b.reshape(mat1, [*mat1.shape, 1])
        mat2 = b.reshape(mat2, [1, *mat2.shape])
    found = b.op("MatMul", mat1, mat2, shape=b.result.shape)
    if b.operator == "addbmm":
        found = b.op("ReduceSum", found, b.constant([0]), keepdims=0, shape=b.result.shape)
    if alpha != 1:
        found = b.op("Mul", found, b.number(alpha, found))
    if beta == 0:  # what is there does not count
        return found
    if beta != 1:
        input = b.op("Mul", input, b.number(beta, input))
    return b.op("Add", found, input, shape=b.result.shape)


@translation("outer")
def outer(b: Builder, input: Value, other: Value, **rest: Any) -> Value:
    one, two = b.common(input, other)
    return b.op("Mul", b.reshape(one, [*one.shape, 1]), b.reshape(two, [1, *two.shape]), shape=b.result.shape)


@translation("inner")
def inner(b: Builder, input: Value, other: Value, **rest: Any) -> Value:
    if not input.rank or not other.rank:
        return b.op("Mul", input, other, shape=b.result.shape)
    letters = "abcdefghijklmnopqrstuvwxy"
    one, two = letters[: input.rank - 1], letters[input.rank - 1 : input.rank + other.rank - 2]
    return b.op("Einsum", input, other, equation=f"{one}z,{two}z->{one}{two}", shape=b.result.shape)


@translation("einsum")
def einsum(b: Builder, operands: Sequence[Value], equation: str) -> Value:
    if "..." in equation:
        raise Untranslated("products over dimensions without letters")
    return b.op("Einsum", *b.common(*operands), equation=equation, shape=b.result.shape)


# ---- convolutions


def padding_of(padding: Any, count: int) -> dict[str, Any]:
    """The attributes that say how an input is padded."""
    if isinstance(padding, str):
        return {"auto_pad": "VALID"} if padding == "valid" else {"auto_pad": "SAME_UPPER"}
    return {"pads": several(padding, count) * 2}


def over_samples(b: Builder, kind: str, input: Value, count: int, *others: Any, **attributes: Any) -> Value:
    """A node of `count` spatial dimensions, whose input may lack the dimension of samples."""
    single = input.rank == count + 1
    x = b.reshape(input, [1, *input.shape]) if single else input
    shape = (1, *b.result.shape) if single else b.result.shape
    found = b.op(kind, x, *others, shape=shape, **attributes)
    return b.reshape(found, b.result.shape) if single else found


@translation("conv1d", "conv2d", "conv3d")
def convolution(
    b: Builder,
    input: Value,
    weight: Value,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    count = weight.rank - 2
    dilations = several(dilation, count)
    pads = padding_of(padding, count)
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:], strict=True)]
        pads = {"pads": [*[t // 2 for t in total], *[t - t // 2 for t in total]]}
    return over_samples(
        b,
        "Conv",
        input,
        count,
        weight,
        bias,
        strides=several(stride, count),
        dilations=dilations,
        group=groups,
        **pads,
    )


@translation("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolution(
    b: Builder, input: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> Value:  # fmt: skip
    count = weight.rank - 2
    return over_samples(
        b, "ConvTranspose", input, count, weight, bias, strides=several(stride, count), dilations=several(dilation, count), group=groups,
        pads=several(padding, count) * 2, output_padding=several(output_padding, count),
    )  # fmt: skip


# ---- pools


@translation(
    "max_pool1d_values", "max_pool2d_values", "max_pool3d_values", "max_pool1d", "max_pool2d", "max_pool3d"
)
def max_pool(
    b: Builder,
    input: Value,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    **rest: Any,
) -> Value:
    count = int(b.operator[8])
    kernel = several(kernel_size, count)
    return over_samples(
        b, "MaxPool", input, count, kernel_shape=kernel, strides=several(stride or kernel, count),
        pads=several(padding, count) * 2, dilations=several(dilation, count), ceil_mode=int(ceil_mode),
    )  # fmt: skip


@translation("max_pool1d_indexed", "max_pool2d_indexed", "max_pool3d_indexed")
def max_pool_indexed(
    b: Builder,
    input: Value,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    **rest: Any,
) -> Any:
    count = int(b.operator[8])
    kernel = several(kernel_size, count)
    if input.rank != count + 2:
        raise Untranslated("max_pool with indices of a sample alone")
    values, found = b.ops(
        "MaxPool", input, count=2, kernel_shape=kernel, strides=several(stride or kernel, count),
        pads=several(padding, count) * 2, dilations=several(dilation, count), ceil_mode=int(ceil_mode), shape=b.results[0].shape,
    )  # fmt: skip
    # ONNX counts through the whole tensor, PyTorch within a channel.
    plane = math.prod(input.shape[2:]) if all(isinstance(s, int) for s in input.shape[2:]) else None
    if plane is None:
        raise Untranslated("max_pool with indices over open sizes")
    found = found._replace(dtype=dtypes.int64)
    return values, b.op("Mod", found, b.constant(plane))


@translation("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    b: Builder, input: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: Any = None, **rest: Any,
) -> Value:  # fmt: skip
    count = int(b.operator[8])
    kernel = several(kernel_size, count)
    if ceil_mode and b.opset < 19:
        raise Untranslated("avg_pool with ceil_mode before opset 19")
    found = over_samples(
        b, "AveragePool", input, count, kernel_shape=kernel, strides=several(stride or kernel, count),
        pads=several(padding, count) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad or divisor_override is not None),
    )  # fmt: skip
    if divisor_override is None:
        return found
    return b.op("Mul", found, b.number(math.prod(kernel) / divisor_override, found))


@translation("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
@translation("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_pool(b: Builder, input: Value, output_size: Any, **rest: Any) -> Any:
    count = int(b.operator[-2])
    average = "avg" in b.operator
    wish = [
        s if s is not None else input.shape[input.rank - count + i]
        for i, s in enumerate(several(output_size, count))
    ]
    sizes = input.shape[input.rank - count :]
    if all(s == 1 for s in wish):
        found = over_samples(b, "GlobalAveragePool" if average else "GlobalMaxPool", input, count)
    elif all(
        isinstance(n, int) and isinstance(s, int) and n % s == 0 for n, s in zip(sizes, wish, strict=True)
    ):
        kernel = [n // s for n, s in zip(sizes, wish, strict=True)]
        found = over_samples(
            b, "AveragePool" if average else "MaxPool", input, count, kernel_shape=kernel, strides=kernel
        )
    else:
        found = windows(b, input, sizes, wish, average)
    return found if average else (found, None)


def windows(b: Builder, x: Value, sizes: Sequence[Any], wish: Sequence[int], average: bool) -> Value:
    """Windows of several lengths, one dimension after the other: by a product for means, by slices for maxima."""
    if not all(isinstance(n, int) for n in sizes):
        raise Untranslated("adaptive pools of open sizes")
    first = x.rank - len(sizes)
    for i, (size, count) in enumerate(zip(sizes, wish, strict=True)):
        dim = first + i
        bounds = [(at * size // count, -(-(at + 1) * size // count)) for at in range(count)]
        shape = [*x.shape[:dim], count, *x.shape[dim + 1 :]]
        if average:
            weights = np.zeros((size, count))
            for at, (start, end) in enumerate(bounds):
                weights[start:end, at] = 1 / (end - start)
            order = [*[d for d in range(x.rank) if d != dim], dim]
            turned = b.op("MatMul", b.transpose(x, order), b.constant(weights, x.dtype))
            turned = turned._replace(shape=(*[x.shape[d] for d in order[:-1]], count))
            x = b.transpose(turned, [order.index(d) for d in range(x.rank)])
            continue
        parts = [b.op("ReduceMax", b.slice(x, dim, s, e), b.constant([dim]), keepdims=1) for s, e in bounds]
        x = b.op("Concat", *parts, axis=dim, shape=shape)
    return x


# ---- interpolation


@translation(
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d",
    "upsample_bicubic2d",
)  # fmt: skip
def upsample(
    b: Builder, input: Value, output_size: Any = None, align_corners: Any = False, scale_factors: Any = None
) -> Value:
    count = input.rank - 2
    mode = "nearest" if "nearest" in b.operator else "cubic" if "cubic" in b.operator else "linear"
    if mode != "nearest" and not input.dtype.is_floating_point:
        raise Untranslated("interpolated integers are rounded")
    if mode == "nearest":
        attributes: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    else:
        attributes = {"coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel"}
        if mode == "cubic":
            attributes["cubic_coeff_a"] = -0.75
    if output_size is not None:
        sizes = b.sized([*input.shape[:2], *several(output_size, count)])
        return b.op("Resize", input, None, None, sizes, mode=mode, shape=b.result.shape, **attributes)
    scales = b.constant(np.asarray([1.0, 1.0, *several(scale_factors, count)], np.float32))
    return b.op("Resize", input, None, scales, mode=mode, shape=b.result.shape, **attributes)


@translation("grid_sampler_2d")
def grid_sample(
    b: Builder, input: Value, grid: Value, mode: Any = 0, padding: Any = 0, align_corners: bool = False
) -> Value:
    modes = {
        0: "linear" if b.opset >= 20 else "bilinear",
        1: "nearest",
        2: "cubic" if b.opset >= 20 else "bicubic",
    }
    return b.op(
        "GridSample", input, grid, mode=modes[int(mode)], padding_mode=("zeros", "border", "reflection")[int(padding)],
        align_corners=int(align_corners), shape=b.result.shape,
    )  # fmt: skip


# ---- attention


@translation("scaled_dot_product_attention")
def attention(
    b: Builder, query: Value, key: Value, value: Value, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: Any = None, enable_gqa: bool = False,
) -> Value:  # fmt: skip
    if enable_gqa or dropout_p:
        raise Untranslated("scaled_dot_product_attention with grouped heads or dropout")
    width = query.shape[-1]
    factor = 1 / math.sqrt(width) if scale is None else scale
    scores = (*query.shape[:-1], key.shape[-2])
    found = b.op(
        "MatMul", b.op("Mul", query, b.number(factor, query)), transpose(b, key, -1, -2), shape=scores
    )
    if is_causal:
        row = b.op(
            "Range",
            b.constant(0),
            b.scalar_size(query.shape[-2]),
            b.constant(1),
            dtype=dtypes.int64,
            shape=(query.shape[-2],),
        )
        column = b.op(
            "Range",
            b.constant(0),
            b.scalar_size(key.shape[-2]),
            b.constant(1),
            dtype=dtypes.int64,
            shape=(key.shape[-2],),
        )
        seen = b.op("LessOrEqual", column, b.op("Unsqueeze", row, b.constant([1])), dtype=dtypes.bool)
        found = b.op("Where", seen, found, b.number(float("-inf"), found), dtype=found.dtype, shape=scores)
    if attn_mask is not None:
        if attn_mask.dtype is dtypes.bool:
            found = b.op(
                "Where", attn_mask, found, b.number(float("-inf"), found), dtype=found.dtype, shape=scores
            )
        else:
            found = b.op("Add", found, attn_mask, shape=scores)
    weights = b.op("Softmax", found, axis=-1)
    if attn_mask is not None and attn_mask.dtype is dtypes.bool:
        # A row in which nothing is seen gives zeros.
        weights = b.op(
            "Where", b.op("IsNaN", weights, dtype=dtypes.bool), b.zero_like(weights), weights, like=weights
        )
    return b.op("MatMul", weights, value, shape=b.result.shape)


@translation("attention_weights")
def attention_weights(
    b: Builder,
    query: Value,
    key: Value,
    value: Any = None,
    attn_mask: Any = None,
    is_causal: bool = False,
    scale: Any = None,
    *rest: Any,
) -> Value:
    if is_causal:
        raise Untranslated("attention weights of causal attention")
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    found = b.op(
        "MatMul", b.op("Mul", query, b.number(factor, query)), transpose(b, key, -1, -2), shape=b.result.shape
    )
    if attn_mask is not None:
        masked = attn_mask.dtype is dtypes.bool
        found = (
            b.op("Where", attn_mask, found, b.number(float("-inf"), found), like=b.result)
            if masked
            else b.op("Add", found, attn_mask)
        )
    return softmax_last(b, found)


def softmax_last(b: Builder, x: Value) -> Value:
    """Softmax over the last dimension."""
    return b.op("Softmax", x, axis=-1)


# ---- recurrent layers


@translation("_recurrent")
def recurrent(
    b: Builder, input: Value, hidden: Value, cell: Any, lengths: Any, weights: Sequence[Value], kind: str, bidirectional: bool,
    has_biases: bool, projects: bool, batch_first: bool,
) -> Any:  # fmt: skip
    if lengths is not None:
        raise Untranslated("recurrent layers over packed sequences")
    ways = 2 if bidirectional else 1
    per = 4 if has_biases else 2
    if projects:
        raise Untranslated("recurrent layers with projections")
    if batch_first:
        input = b.transpose(input, [1, 0, 2])
    layers = len(weights) // (per * ways)
    width = hidden.shape[-1]
    batch = input.shape[1]
    x, states, cells = input, [], []
    for layer in range(layers):
        own = weights[layer * per * ways : (layer + 1) * per * ways]
        groups = [own[w * per : (w + 1) * per] for w in range(ways)]
        parts = [[gates(b, g[i], kind, width) for g in groups] for i in range(per)]
        w, r = stacked(b, parts[0]), stacked(b, parts[1])
        bias = None
        if has_biases:
            both = [
                b.op("Concat", i, h, axis=0, shape=(i.shape[0] * 2,))
                for i, h in zip(parts[2], parts[3], strict=True)
            ]
            bias = stacked(b, both)
        first = b.slice(hidden, 0, layer * ways, (layer + 1) * ways)
        attributes: dict[str, Any] = {
            "hidden_size": width,
            "direction": "bidirectional" if ways == 2 else "forward",
        }
        extra: list[Any] = []
        name = kind
        if kind == "LSTM":
            extra = [b.slice(cell, 0, layer * ways, (layer + 1) * ways)]
        elif kind == "GRU":
            attributes["linear_before_reset"] = 1
        else:
            attributes["activations"] = ["Relu" if "RELU" in kind.upper() else "Tanh"] * ways
            name = "RNN"
        shape = (input.shape[0], ways, batch, width)
        made = b.ops(
            name,
            x,
            w,
            r,
            bias,
            None,
            first,
            *extra,
            count=3 if kind == "LSTM" else 2,
            shape=shape,
            **attributes,
        )
        states.append(made[1]._replace(shape=(ways, batch, width)))
        if kind == "LSTM":
            cells.append(made[2]._replace(shape=(ways, batch, width)))
        turned = b.transpose(made[0], [0, 2, 1, 3])
        x = b.op(
            "Reshape", turned, b.constant([0, 0, ways * width]), shape=(input.shape[0], batch, ways * width)
        )
    shape = (layers * ways, batch, width)
    ends = [b.op("Concat", *s, axis=0, shape=shape) if len(s) > 1 else s[0] for s in (states, cells) if s]
    return (b.transpose(x, [1, 0, 2]) if batch_first else x, *ends, *[None] * (2 - len(ends)))


def gates(b: Builder, weight: Value, kind: str, width: int) -> Value:
    """Rows in the order of ONNX's gates: i, o, f, g of an LSTM, z, r, n of a GRU."""
    order = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2]}.get(kind)
    if order is None:
        return weight
    parts = b.ops("Split", weight, b.constant([width] * len(order)), count=len(order), axis=0)
    return b.op("Concat", *[parts[i] for i in order], axis=0, shape=weight.shape)


def stacked(b: Builder, parts: Sequence[Value]) -> Value:
    """One for each direction."""
    made = [b.op("Unsqueeze", p, b.constant([0]), shape=(1, *p.shape)) for p in parts]
    return made[0] if len(made) == 1 else b.op("Concat", *made, axis=0, shape=(len(made), *parts[0].shape))


# ---- losses over classes


def how_of(reduction: Any) -> str:
    """How a loss is reduced, which operators number."""
    return reduction if isinstance(reduction, str) else ("none", "mean", "sum")[reduction]


@translation("native_cross_entropy", "cross_entropy")
def cross_entropy(
    b: Builder, input: Value, target: Value, weight: Any = None, ignore_index: int = -100, reduction: Any = "mean",
    label_smoothing: float = 0.0, **rest: Any,
) -> Any:  # fmt: skip
    if label_smoothing or target.dtype.is_floating_point or input.rank < 2:
        raise Untranslated("cross_entropy of probabilities or with smoothed labels")
    how = how_of(reduction)
    return (
        b.op(
            "SoftmaxCrossEntropyLoss",
            input,
            target,
            weight,
            ignore_index=ignore_index,
            reduction=how,
            shape=b.results[0].shape,
        ),
    )


@translation("nll_loss")
def nll_loss(
    b: Builder,
    input: Value,
    target: Value,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: Any = "mean",
    **rest: Any,
) -> Value:
    how = how_of(reduction)
    return b.op(
        "NegativeLogLikelihoodLoss",
        input,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=how,
        shape=b.result.shape,
    )


@translation("cosine_similarity")
def cosine_similarity(b: Builder, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    if x1.rank != x2.rank or not x1.rank:
        raise Untranslated("cosine_similarity of tensors of several ranks")
    axis = b.constant([dim_of(dim, x1.rank)])
    norms = [b.op("Max", b.op("ReduceL2", x, axis, keepdims=1), b.number(eps, x)) for x in (x1, x2)]
    parts = [b.op("Div", x, n) for x, n in zip((x1, x2), norms, strict=True)]
    return b.op("ReduceSum", b.op("Mul", *parts), axis, keepdims=0, shape=b.result.shape)
