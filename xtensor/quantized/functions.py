"""Functions of quantised tensors that give results of another scale: what `torch.ops.quantized` holds, and layers call.

Where a result is not one of moved integers, it is computed from numbers, and quantised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import checks, dtypes
from ..nn import functional as F
from ..ops.create.ranges import arange
from ..ops.linalg.matmul import matmul as real_matmul
from ..ops.pointwise.activations import relu as real_relu
from ..ops.pointwise.elementwise import sigmoid as real_sigmoid
from ..ops.pointwise.elementwise import tanh as real_tanh
from ..ops.shape.joining import cat as real_cat
from ..tensor import Tensor
from .layout import QuantizedTensor, copied, dequantized, integers, laid, per_tensor, quantised, seen_as
from .packed import ScriptObject, cell_packed, half_packed, linear_packed
from .products import dynamically_multiplied, multiplied

__all__ = ["OPERATORS"]

OPERATORS: dict[str, Callable[..., Any]] = {}
"""`torch.ops.quantized`, by name."""


def operator(function: Callable[..., Any]) -> Callable[..., Any]:
    OPERATORS[function.__name__] = function
    return function


def given(
    made: Tensor, like: QuantizedTensor, scale: float, zero_point: int, last: bool | None = None
) -> QuantizedTensor:
    """Numbers quantised by a scale, in the dtype of another tensor; `last` as of `quantised`."""
    return quantised(made.float(), per_tensor(float(scale), int(zero_point)), like.dtype, last)


def combining(name: str, function: Callable[[Tensor, Tensor], Tensor], relu: bool) -> None:
    def combine(qa: Any, qb: Any, scale: float | None = None, zero_point: int | None = None) -> Any:
        if scale is None or zero_point is None:
            qa, number = (qb, qa) if isinstance(qb, QuantizedTensor) else (qa, qb)
            return (add_number if name.startswith("add") else mul_number)(qa, number, relu)
        kind = name[:3].capitalize()
        checks.check(qa.dtype is qb.dtype, "{} operands should have same data type.", kind)
        made = function(dequantized(qa), dequantized(qb))
        return given(real_relu(made) if relu else made, qa, scale, zero_point)

    combine.__name__ = name
    combine.__doc__ = f"`{name}` of two quantised tensors, quantised by a scale and a zero point; or of one and a number, in either order."
    operator(combine)


combining("add", lambda a, b: a + b, False)
combining("add_relu", lambda a, b: a + b, True)
combining("mul", lambda a, b: a * b, False)
combining("mul_relu", lambda a, b: a * b, True)


def add_number(qa: QuantizedTensor, number: float, relu: bool) -> Any:
    scale, point = qa._quantizer.scale, qa._quantizer.zero_point
    held, limits = laid(qa), np.iinfo(dtypes.QUANTISED[qa.dtype].numpy)
    low, high = int(limits.min), int(limits.max)
    # The zero point moves as far as it can; then the scale has to widen.
    shift = int(np.rint(float(number) / scale))
    if low > point - shift or high < point - shift:
        reach = high - (point - shift) if low > point - shift else (point - shift) - low
        wide = (reach / (high - low)) * scale
        new_point = low if low > point - shift else high
        widened = (held.double() - (point - shift)) * (scale / wide) + new_point
        made = widened.round().clamp(low, high).to(held.dtype)
        quantizer = per_tensor(wide, new_point)
    else:
        made, quantizer = copied(qa), per_tensor(scale, point - shift)
    return seen_as(made.clamp(min=quantizer.zero_point) if relu else made, quantizer)


def mul_number(qa: QuantizedTensor, number: float, relu: bool) -> Any:
    scale, point = qa._quantizer.scale, qa._quantizer.zero_point
    held, limits = laid(qa), np.iinfo(dtypes.QUANTISED[qa.dtype].numpy)
    if number > 0:
        made, quantizer = copied(qa), per_tensor(scale * number, point)
    elif number == 0:
        return seen_as(held * 0, per_tensor(1.0, 0))
    else:
        both = int(limits.max) + int(limits.min)
        made = (both - held.long()).to(held.dtype)
        quantizer = per_tensor(scale * -number, both - point)
    return seen_as(made.clamp(min=quantizer.zero_point) if relu else made, quantizer)


@operator
def add_scalar(qa: QuantizedTensor, b: float) -> Any:
    """A number added: the zero point moves, and the scale where that has no more room."""
    return add_number(qa, b, False)


@operator
def add_scalar_relu(qa: QuantizedTensor, b: float) -> Any:
    """`add_scalar`, and ReLU."""
    return add_number(qa, b, True)


@operator
def mul_scalar(qa: QuantizedTensor, b: float) -> Any:
    """A product with a number: the scale is multiplied."""
    return mul_number(qa, b, False)


@operator
def mul_scalar_relu(qa: QuantizedTensor, b: float) -> Any:
    """`mul_scalar`, and ReLU."""
    return mul_number(qa, b, True)


@operator
def matmul(qa: QuantizedTensor, qb: QuantizedTensor, scale: float, zero_point: int) -> Any:
    """The product of matrices."""
    return given(real_matmul(dequantized(qa), dequantized(qb)), qa, scale, zero_point)


def joined(qxs: Sequence[QuantizedTensor], dim: int, scale: Any, zero_point: Any, relu: bool) -> Any:
    first = qxs[0]
    checks.check(first._quantizer.axis is None, "Only per-tensor quantization is supported in 'cat'!")
    made = real_cat([dequantized(x) for x in qxs], dim)
    scale = first._quantizer.scale if scale is None else scale
    zero_point = first._quantizer.zero_point if zero_point is None else zero_point
    return given(real_relu(made) if relu else made, first, scale, zero_point)


@operator
def cat(
    qx: Sequence[QuantizedTensor], dim: int, scale: float | None = None, zero_point: int | None = None
) -> Any:
    """Tensors one after the other, all quantised by a scale: the first's where there is none."""
    return joined(qx, dim, scale, zero_point, False)


@operator
def cat_relu(
    qx: Sequence[QuantizedTensor], dim: int, scale: float | None = None, zero_point: int | None = None
) -> Any:
    """`cat`, and ReLU."""
    return joined(qx, dim, scale, zero_point, True)


# ---- activations ---------------------------------------------------------------------------------------------------


@operator
def hardswish(input: QuantizedTensor, output_scale: float, output_zero_point: int) -> Any:
    """`hardswish`, quantised by a scale."""
    return given(F.hardswish(dequantized(input)), input, output_scale, output_zero_point)


@operator
def elu(self: QuantizedTensor, output_scale: float, output_zero_point: int, alpha: float = 1.0) -> Any:
    """`elu`, quantised by a scale."""
    return given(F.elu(dequantized(self), alpha), self, output_scale, output_zero_point, False)


@operator
def celu(self: QuantizedTensor, output_scale: float, output_zero_point: int, alpha: float = 1.0) -> Any:
    """`celu`, quantised by a scale."""
    return given(F.celu(dequantized(self), alpha), self, output_scale, output_zero_point, False)


@operator
def leaky_relu(
    qx: QuantizedTensor, negative_slope: float, inplace: bool, output_scale: float, output_zero_point: int
) -> Any:
    """`leaky_relu`, quantised by a scale."""
    return given(F.leaky_relu(dequantized(qx), negative_slope), qx, output_scale, output_zero_point, False)


@operator
def sigmoid(qx: QuantizedTensor, output_scale: float, output_zero_point: int) -> Any:
    """`sigmoid`, quantised by a scale."""
    return given(real_sigmoid(dequantized(qx)), qx, output_scale, output_zero_point)


@operator
def softmax(qx: QuantizedTensor, dim: int, output_scale: float, output_zero_point: int) -> Any:
    """`softmax`, quantised by a scale."""
    return given(F.softmax(dequantized(qx), dim), qx, output_scale, output_zero_point)


@operator
def prelu(qx: QuantizedTensor, weight: Any, output_scale: float, output_zero_point: int) -> Any:
    """`prelu` with quantised slopes, quantised by a scale."""
    return given(F.prelu(dequantized(qx), dequantized(weight)), qx, output_scale, output_zero_point)


@operator
def threshold(qx: QuantizedTensor, threshold: float, value: float) -> Any:
    """`threshold`, quantised as its argument."""
    made = F.threshold(dequantized(qx), threshold, value)
    return given(made, qx, qx._quantizer.scale, qx._quantizer.zero_point)


@operator
def relu6(qx: QuantizedTensor, inplace: bool = False) -> Any:
    """`relu6`, quantised as its argument."""
    made = F.relu6(dequantized(qx))
    return given(made, qx, qx._quantizer.scale, qx._quantizer.zero_point)


@operator
def dropout(
    self: QuantizedTensor, output_scale: float, output_zero_point: int, p: float = 0.5, training: bool = False
) -> Any:
    """The tensor itself: nothing is dropped any more."""
    return self


# ---- norms ---------------------------------------------------------------------------------------------------------


def normalising(name: str, ndim: int | None, relu: bool) -> None:
    def normalise(
        qx: QuantizedTensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        var: Tensor,
        eps: float,
        output_scale: float,
        output_zero_point: int,
    ) -> Any:
        wrong = f"Expecting the input tensor of rank {ndim}."
        checks.check(ndim is None or qx.dim() == ndim, wrong)
        checks.check(weight is not None, "Weight must be provided")
        checks.check(bias is not None, "Bias must be provided")
        made = F.batch_norm(dequantized(qx), mean, var, weight, bias, False, 0.0, eps)
        made = real_relu(made) if relu else made
        # As in PyTorch, channels of images and volumes lie last.
        return given(made, qx, output_scale, output_zero_point, qx.dim() in (4, 5))

    normalise.__name__ = name
    normalise.__doc__ = "Batch normalisation by known statistics, quantised by a scale."
    operator(normalise)


for _rank, _of in ((None, ""), (4, "2d"), (5, "3d")):
    for _relu in (False, True):
        normalising(f"batch_norm{_of}{'_relu' if _relu else ''}", _rank, _relu)


@operator
def layer_norm(
    input: QuantizedTensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Any:
    """`layer_norm`, quantised by a scale."""
    made = F.layer_norm(dequantized(input), tuple(normalized_shape), weight, bias, eps)
    return given(made.detach(), input, output_scale, output_zero_point)


@operator
def group_norm(
    qx: QuantizedTensor,
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Any:
    """`group_norm`, quantised by a scale."""
    made = F.group_norm(dequantized(qx), num_groups, weight, bias, eps)
    return given(made.detach(), qx, output_scale, output_zero_point, None if qx.dim() == 4 else False)


@operator
def instance_norm(
    qx: QuantizedTensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Any:
    """`instance_norm`, quantised by a scale."""
    return group_norm(qx, qx.shape[1], weight, bias, eps, output_scale, output_zero_point)


# ---- linear layers -------------------------------------------------------------------------------------------------


@operator
def linear_prepack(W: Tensor, B: Tensor | None = None) -> ScriptObject:
    """A quantised weight and a bias, packed."""
    return linear_packed(W, B)


@operator
def linear_prepack_fp16(W: Tensor, B: Tensor | None = None) -> ScriptObject:
    """A weight of half precision and a bias, packed."""
    return half_packed(W, B)


@operator
def linear_unpack(W_prepack: ScriptObject) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias."""
    return W_prepack.unpack()


OPERATORS["linear_unpack_fp16"] = linear_unpack


@operator
def linear(X: QuantizedTensor, W_prepack: ScriptObject, Y_scale_i: float, Y_zero_point_i: int) -> Any:
    """A linear layer, quantised by a scale."""
    return multiplied(X, *W_prepack.unpack(), float(Y_scale_i), int(Y_zero_point_i))


@operator
def linear_relu(X: QuantizedTensor, W_prepack: ScriptObject, Y_scale_i: float, Y_zero_point_i: int) -> Any:
    """A linear layer and ReLU, quantised by a scale."""
    return multiplied(X, *W_prepack.unpack(), float(Y_scale_i), int(Y_zero_point_i), True)


@operator
def linear_leaky_relu(
    X: QuantizedTensor, W_prepack: ScriptObject, Y_scale_i: float, Y_zero_point_i: int, negative_slope: float
) -> Any:
    """A linear layer and leaky ReLU, quantised by a scale."""
    made = F.leaky_relu(multiplied(X, *W_prepack.unpack()), negative_slope)
    return given(made, X, Y_scale_i, Y_zero_point_i)


@operator
def linear_tanh(X: QuantizedTensor, W_prepack: ScriptObject, Y_scale_i: float, Y_zero_point_i: int) -> Any:
    """A linear layer and tanh, quantised by a scale."""
    return given(real_tanh(multiplied(X, *W_prepack.unpack())), X, Y_scale_i, Y_zero_point_i)


@operator
def linear_dynamic(X: Tensor, W_prepack: ScriptObject, reduce_range: bool = False) -> Tensor:
    """A linear layer of real numbers, quantised as they come."""
    return dynamically_multiplied(X, *W_prepack.unpack(), False, reduce_range)


@operator
def linear_relu_dynamic(X: Tensor, W_prepack: ScriptObject, reduce_range: bool = False) -> Tensor:
    """`linear_dynamic`, and ReLU."""
    return dynamically_multiplied(X, *W_prepack.unpack(), True, reduce_range)


@operator
def linear_dynamic_fp16(X: Tensor, W_prepack: ScriptObject) -> Tensor:
    """A linear layer with a weight of half precision."""
    return F.linear(X.detach(), *W_prepack.unpack())


@operator
def linear_relu_dynamic_fp16(X: Tensor, W_prepack: ScriptObject) -> Tensor:
    """`linear_dynamic_fp16`, and ReLU."""
    return real_relu(linear_dynamic_fp16(X, W_prepack))


@operator
def make_quantized_cell_params_dynamic(
    w_ih: ScriptObject, w_hh: ScriptObject, b_ih: Tensor, b_hh: Tensor, reduce_range: bool = False
) -> ScriptObject:
    """The weights of a recurrent cell, packed; their biases are with them."""
    return cell_packed(w_ih, w_hh, reduce_range)


@operator
def make_quantized_cell_params_fp16(w_ih: ScriptObject, w_hh: ScriptObject) -> ScriptObject:
    """The weights of half precision of a recurrent cell, packed."""
    return cell_packed(w_ih, w_hh, None)


# ---- tables --------------------------------------------------------------------------------------------------------


def real_rows(table: QuantizedTensor, indices: Tensor) -> Tensor:
    """The numbers of rows (count, columns): those alone are made real."""
    quantizer, flat = table._quantizer, indices.reshape(-1)
    rows = integers(table)[flat].float()
    return (rows - quantizer.zero_point.float()[flat][:, None]) * quantizer.scale.float()[flat][:, None]


@operator
def embedding_byte(weight: QuantizedTensor, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    """Rows of a table of 8 bits, real: (..., columns)."""
    return real_rows(weight, indices).reshape(*indices.shape, weight.shape[1])


@operator
def embedding_bag_byte(
    weight: QuantizedTensor,
    indices: Tensor,
    offsets: Tensor | None = None,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    pruned_weights: bool = False,
    per_sample_weights: Tensor | None = None,
    compressed_indices_mapping: Tensor | None = None,
    include_last_offset: bool = False,
) -> Tensor:
    """Sums of rows of a table of 8 bits, real: (bags, columns)."""
    places = arange(indices.numel(), device=indices.device).reshape(tuple(indices.shape))
    return F.embedding_bag(
        places,
        real_rows(weight, indices),
        offsets,
        mode="sum",
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
    )
