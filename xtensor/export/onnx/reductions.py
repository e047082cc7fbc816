"""Translations of what folds, scans, orders or normalizes dimensions."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from .building import Builder, Refused, Untranslated, Value, dim_of, dims_of, product, translation

__all__ = ["mean", "reduce"]


def reduce(b: Builder, kind: str, x: Value, dim: Any, keepdim: bool, **attributes: Any) -> Value:
    """A fold of dimensions."""
    if not x.rank:
        return x
    dims = dims_of(dim, x.rank)
    kept = [1 if d in dims else s for d, s in enumerate(x.shape)]
    shape = kept if keepdim else [s for d, s in enumerate(x.shape) if d not in dims]
    return b.op(kind, x, b.constant(dims), keepdims=int(keepdim), shape=shape, **attributes)


def in_type(b: Builder, x: Value, dtype: Any) -> Value:
    """The operand of a sum: integers are added in int64."""
    if dtype is not None:
        return b.cast(x, dtype)
    return x if x.dtype.is_floating_point else b.cast(x, dtypes.int64)


@translation("sum")
def total(
    b: Builder, input: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **rest: Any
) -> Value:
    return reduce(b, "ReduceSum", in_type(b, input, dtype), dim, keepdim)


@translation("mean")
def mean(
    b: Builder, input: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **rest: Any
) -> Value:
    if 0 in input.shape:
        raise Untranslated("the mean of nothing")
    return reduce(b, "ReduceMean", in_type(b, input, dtype), dim, keepdim)


@translation("prod")
def prod(
    b: Builder, input: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **rest: Any
) -> Value:
    return reduce(b, "ReduceProd", in_type(b, input, dtype), dim, keepdim)


@translation("all", "any")
def any_(b: Builder, input: Value, dim: Any = None, keepdim: bool = False, **rest: Any) -> Value:
    truth = b.cast(b.cast(input, dtypes.bool), dtypes.int32)
    return b.cast(
        reduce(b, "ReduceMax" if b.operator == "any" else "ReduceMin", truth, dim, keepdim), dtypes.bool
    )


@translation("count_nonzero")
def count_nonzero(b: Builder, input: Value, dim: Any = None, keepdim: bool = False, **rest: Any) -> Value:
    return reduce(b, "ReduceSum", b.cast(b.cast(input, dtypes.bool), dtypes.int64), dim, keepdim)


def variance(b: Builder, x: Value, dim: Any, keepdim: bool, correction: Any) -> tuple[Value, Value]:
    """The variance and the mean."""
    dims = dims_of(dim, x.rank)
    count = product([x.shape[d] for d in dims])
    average = reduce(b, "ReduceMean", x, dims, True)
    apart = b.op("Sub", x, average)
    squares = reduce(b, "ReduceSum", b.op("Mul", apart, apart), dims, keepdim)
    free = b.number(count, x)
    if correction:
        free = b.op("Max", b.op("Sub", free, b.number(float(correction), x)), b.zero_like(x))
    return b.op("Div", squares, free), reduce(b, "ReduceMean", x, dims, keepdim)


@translation("var_dims", "std_dims", "var_mean_dims", "std_mean_dims")
def var(
    b: Builder, input: Value, dim: Any = None, keepdim: bool = False, *, correction: Any = 1, **rest: Any
) -> Any:
    found, average = variance(b, input, dim, keepdim, 1 if correction is None else correction)
    if b.operator.startswith("std"):
        found = b.op("Sqrt", found)
    return (found, average) if "mean" in b.operator else found


@translation("linalg_vector_norm")
def vector_norm(
    b: Builder,
    input: Value,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    **rest: Any,
) -> Value:
    x = input if dtype is None else b.cast(input, dtype)
    if ord == 2:
        return reduce(b, "ReduceL2", x, dim, keepdim)
    if ord == 1:
        return reduce(b, "ReduceL1", x, dim, keepdim)
    if ord in (float("inf"), float("-inf")):
        return reduce(b, "ReduceMax" if ord > 0 else "ReduceMin", b.op("Abs", x), dim, keepdim)
    if ord == 0:
        return b.cast(count_nonzero(b, x, dim, keepdim=keepdim), x.dtype)
    powers = reduce(b, "ReduceSum", b.op("Pow", b.op("Abs", x), b.number(float(ord), x)), dim, keepdim)
    return b.op("Pow", powers, b.number(1 / float(ord), x))


@translation("logsumexp")
def logsumexp(b: Builder, input: Value, dim: Any, keepdim: bool = False, **rest: Any) -> Value:
    return reduce(b, "ReduceLogSumExp", input, dim, keepdim)


@translation("softmax", "log_softmax")
def softmax(b: Builder, input: Value, dim: int, dtype: Any = None, **rest: Any) -> Value:
    x = input if dtype is None else b.cast(input, dtype)
    if not x.rank:
        return b.op("Sub", x, x) if b.operator == "log_softmax" else b.number(1.0, x)
    return b.op("Softmax" if b.operator == "softmax" else "LogSoftmax", x, axis=dim_of(dim, x.rank))


@translation("cumsum")
def cumsum(b: Builder, input: Value, dim: int, *, dtype: Any = None, **rest: Any) -> Value:
    x = in_type(b, input, dtype)
    return b.op("CumSum", x, b.constant(dim_of(dim, x.rank))) if x.rank else x


@translation("topk")
def topk(
    b: Builder, input: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True, **rest: Any
) -> Any:
    if not input.rank:
        return input, b.constant(0)
    at = dim_of(dim, input.rank)
    shape = [k if d == at else s for d, s in enumerate(input.shape)]
    values, found = b.ops(
        "TopK", input, b.sized([k]), count=2, axis=at, largest=int(largest), sorted=1, shape=shape
    )
    return values, found._replace(dtype=dtypes.int64)


# ---- normalization


def shaped(b: Builder, x: Any, rank: int) -> Any:
    """A value for each channel, for tensors of this rank."""
    return None if x is None else b.reshape(x, (x.shape[0], *([1] * (rank - 2))))


def normalized(b: Builder, x: Value, dims: Any, eps: float) -> Value:
    """Without the mean, and of variance one, over dimensions."""
    spread, _ = variance(b, x, dims, True, 0)
    apart = b.op("Sub", x, reduce(b, "ReduceMean", x, dims, True))
    return b.op("Div", apart, b.op("Sqrt", b.op("Add", spread, b.number(eps, x))))


def affine(b: Builder, x: Value, weight: Any, bias: Any) -> Value:
    """Scaled and shifted."""
    if weight is not None:
        x = b.op("Mul", x, weight)
    return x if bias is None else b.op("Add", x, bias)


@translation("native_layer_norm", "layer_norm")
def layer_norm(
    b: Builder,
    input: Value,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    **rest: Any,
) -> Any:
    axis = -len(normalized_shape)
    if weight is None:
        dims = list(range(input.rank + axis, input.rank))
        return (affine(b, normalized(b, input, dims, eps), None, bias),)
    return (b.op("LayerNormalization", input, weight, bias, axis=axis, epsilon=float(eps)),)


@translation("rms_norm")
def rms_norm(b: Builder, input: Value, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Value:
    dims = list(range(input.rank - len(normalized_shape), input.rank))
    square = reduce(b, "ReduceMean", b.op("Mul", input, input), dims, True)
    eps = dtypes.finfo(input.dtype).eps if eps is None else eps
    found = b.op("Div", input, b.op("Sqrt", b.op("Add", square, b.number(eps, input))))
    return found if weight is None else b.op("Mul", found, weight)


@translation("native_group_norm", "group_norm")
def group_norm(
    b: Builder,
    input: Value,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    **rest: Any,
) -> Any:
    batch, channels, *spatial = input.shape
    grouped = b.reshape(input, [batch, num_groups, product([channels, *spatial, 1]) // num_groups]) if not any(
        not isinstance(s, int) for s in (channels, *spatial)
    ) else b.op("Reshape", input, b.constant([0, num_groups, -1]), shape=(batch, num_groups, product(spatial)))  # fmt: skip
    if not isinstance(grouped.shape[2], int):
        raise Untranslated("group_norm over open sizes other than the first")
    found = b.reshape(normalized(b, grouped, [2], eps), input.shape)
    return (affine(b, found, shaped(b, weight, input.rank), shaped(b, bias, input.rank)),)


@translation("batch_norm_inference")
def batch_norm(
    b: Builder,
    input: Value,
    running_mean: Value,
    running_var: Value,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float,
) -> Value:
    channels = running_mean.shape
    one = b.expand(b.number(1.0, input), channels) if weight is None else weight
    zero = b.expand(b.zero_like(input), channels) if bias is None else bias
    return b.op("BatchNormalization", input, one, zero, running_mean, running_var, epsilon=float(eps))


@translation("batch_norm_training")
def batch_norm_training(
    b: Builder,
    input: Value,
    weight: Any = None,
    bias: Any = None,
    *rest: Any,
    eps: float,
    momentum: Any = 0.1,
) -> Any:
    dims = [d for d in range(input.rank) if d != 1]
    found = normalized(b, input, dims, eps)
    # Its statistics are left to the kernel, where something takes them.
    return (affine(b, found, shaped(b, weight, input.rank), shaped(b, bias, input.rank)), *[None] * 4)


def batch_norm_refused(b: Builder) -> Untranslated:
    """Why there is no translation in training; a module's own statistics cannot be written by other means either."""
    kind = Refused if b.writes_weights else Untranslated
    return kind("batch_norm in training writes its running statistics: export module.eval()")


@translation("native_batch_norm")
def native_batch_norm(b: Builder, *args: Any, **rest: Any) -> Value:
    raise batch_norm_refused(b)


@translation("batch_norm")
def batch_norm_function(
    b: Builder, input: Value, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: Any = 0.1, eps: float = 1e-5,
) -> Value:  # fmt: skip
    if not training:
        return batch_norm(b, input, running_mean, running_var, weight, bias, eps=eps)
    raise batch_norm_refused(b)
