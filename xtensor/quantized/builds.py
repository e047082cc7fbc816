"""Functions that PyTorch has for its own builds' quantised layers: weights in forms of their own, recurrent layers over these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import checks, dtypes
from ..nn import functional as F
from ..ops.create.creation import zeros
from ..ops.create.ingest import from_numpy, tensor
from ..sparse.layout import host
from ..tensor import Tensor, array_of, wrap
from ..xla.x64 import call
from .construct import parameters, quantizer_of
from .functions import OPERATORS
from .layout import handles, seen_as
from .packed import ScriptObject
from .products import bias_of, multiplying_dynamically
from .recurrent import layers, stepping

__all__ = [
    "choose_qparams_optimized",
    "empty_quantized",
    "fbgemm_linear_fp16_weight",
    "fbgemm_linear_fp16_weight_fp32_activation",
    "fbgemm_linear_int8_weight",
    "fbgemm_linear_int8_weight_fp32_activation",
    "fbgemm_linear_quantize_weight",
    "fbgemm_pack_gemm_matrix_fp16",
    "fbgemm_pack_quantized_matrix",
    "quantized_batch_norm",
    "quantized_gru",
    "quantized_gru_cell",
    "quantized_lstm",
    "quantized_lstm_cell",
    "quantized_max_pool1d",
    "quantized_max_pool2d",
    "quantized_max_pool3d",
    "quantized_rnn_relu_cell",
    "quantized_rnn_tanh_cell",
]


def choose_qparams_optimized(
    input: Tensor, numel: int, n_bins: int, ratio: float, bit_width: int
) -> tuple[Tensor, Tensor]:
    """The limits, largest and smallest, between which quantising a row loses least, cut step by step to a share of `1 - ratio`.

    >>> high, low = xtensor.choose_qparams_optimized(xtensor.linspace(-1, 1, 16), 16, 200, 0.16, 8)
    >>> high.item(), low.item()
    (1.0, -1.0)
    """
    checks.check(0 < numel <= input.numel(), "numel is out of the bound of input tensor")
    values = host(input.detach()).astype(np.float32).ravel()[:numel]
    levels = np.float32(2**bit_width - 1)

    def lost(low: np.float32, high: np.float32) -> np.float32:
        span = high - low
        scale = span / levels if span != 0 else np.float32(1)
        inverse = np.float32(0) if scale == 0 else np.float32(1) / scale
        whole = np.clip(np.rint((values - low) * inverse), 0, levels)
        return np.float32(np.sqrt(((values - (whole * scale + low)) ** 2).sum()))

    low, high = np.float32(values.min()), np.float32(values.max())
    step = (high - low) / np.float32(n_bins)
    least = int(n_bins * (1.0 - np.float32(ratio)))
    now, then, best = (low, high), lost(low, high), (low, high)
    smallest = then
    while now[0] + least * step < now[1]:
        up, down = lost(now[0] + step, now[1]), lost(now[0], now[1] - step)
        if then < up and then < down and then < smallest:
            smallest, best = then, now
        if up < down:
            now, then = (now[0] + step, now[1]), up
        else:
            now, then = (now[0], now[1] - step), down
    return tensor([best[1]]), tensor([best[0]])


def empty_quantized(size: Sequence[int], qtensor: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor of these sizes, quantised as another one is; the integers are 0."""
    quantizer = quantizer_of(qtensor, "empty_quantized")
    held = dtypes.QUANTISED[dtype or qtensor.dtype]
    return seen_as(zeros(*size, dtype=held, device=qtensor.device), quantizer)


@handles("quantized_batch_norm")
def quantized_batch_norm(
    input: Any,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Tensor:
    """Batch normalisation of a quantised tensor by known statistics, quantised by a scale."""
    quantizer_of(input, "quantized_batch_norm")
    name = f"batch_norm{'2d' if input.dim() == 4 else '3d' if input.dim() == 5 else ''}"
    return OPERATORS[name](input, weight, bias, mean, var, eps, output_scale, output_zero_point)


def pooled(name: str, input: Any, *how: Any) -> Tensor:
    quantizer_of(input, f"quantized_{name}")
    size, stride, *rest = how
    return getattr(F, name)(input, size, stride or None, *rest)


def quantized_max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest of windows of a quantised tensor (N, C, L)."""
    return pooled("max_pool1d", input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest of windows of a quantised tensor (N, C, H, W)."""
    return pooled("max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_max_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest of windows of a quantised tensor (N, C, D, H, W)."""
    return pooled("max_pool3d", input, kernel_size, stride, padding, dilation, ceil_mode)


# ---- linear layers -------------------------------------------------------------------------------------------------


def fbgemm_linear_quantize_weight(input: Tensor) -> tuple[Tensor, Tensor, float, int]:
    """A weight (out, in) as int8: the integers, the sums of their rows less the zero point, a scale and a zero point."""
    values = host(input.detach()).astype(np.float32)
    scale, point = parameters(float(values.min()), float(values.max()), -128, 127)
    scale = float(np.float32(scale))
    whole = np.clip(np.rint(values / np.float32(scale) + point), -128, 127).astype(np.int8)
    sums = whole.astype(np.int32).sum(1, dtype=np.int32) - np.int32(point * values.shape[1])
    return from_numpy(whole), from_numpy(sums), scale, point


def fbgemm_pack_quantized_matrix(input: Tensor, K: int | None = None, N: int | None = None) -> Tensor:
    """A weight of int8 as layers take it.

    Differs from PyTorch: it is a copy, for XLA orders elements itself.
    """
    return input.detach().clone()


def fbgemm_pack_gemm_matrix_fp16(input: Tensor) -> Tensor:
    """A weight (out, in) rounded to half precision.

    Differs from PyTorch: it is a tensor of these numbers, not of bytes.
    """
    return input.detach().to(dtypes.float16)


def fbgemm_linear_fp16_weight_fp32_activation(
    input: Tensor, packed_weight: Tensor, bias: Tensor | None = None, output: Tensor | None = None
) -> Tensor:
    """A linear layer with a weight of half precision."""
    made = F.linear(input.detach(), packed_weight.to(dtypes.float32), bias)
    return made if output is None else output.resize_(tuple(made.shape)).copy_(made)


def fbgemm_linear_fp16_weight(
    input: Tensor, packed_weight: Tensor, bias: Tensor, output: Tensor | None = None
) -> Tensor:
    """A linear layer with a weight of half precision and a bias."""
    return fbgemm_linear_fp16_weight_fp32_activation(input, packed_weight, bias, output)


def fbgemm_linear_int8_weight_fp32_activation(
    input: Tensor,
    weight: Tensor,
    packed: Tensor,
    col_offsets: Tensor,
    weight_scale: float,
    weight_zero_point: int,
    bias: Tensor,
) -> Tensor:
    """A linear layer with a weight of int8; its input is quantised as it comes.

    >>> held = xtensor.fbgemm_linear_quantize_weight(xtensor.ones(1, 2))
    >>> packed = xtensor.fbgemm_pack_quantized_matrix(held[0])
    >>> x, b = xtensor.tensor([[1.0, 2.0]]), xtensor.zeros(1)
    >>> xtensor.fbgemm_linear_int8_weight_fp32_activation(x, held[0], packed, *held[1:], b)
    tensor([[2.9961]])
    """
    program = multiplying_dynamically(False, True, False)
    held = (array_of(weight), np.float32(weight_scale), np.float32(weight_zero_point))
    return wrap(call(program, array_of(input.detach()), *held, bias_of(bias)))


def fbgemm_linear_int8_weight(
    input: Tensor,
    weight: Tensor,
    packed: Tensor,
    col_offsets: Tensor,
    weight_scale: float,
    weight_zero_point: int,
    bias: Tensor,
) -> Tensor:
    """`fbgemm_linear_int8_weight_fp32_activation` by its older name."""
    how = (weight_scale, weight_zero_point, bias)
    return fbgemm_linear_int8_weight_fp32_activation(input, weight, packed, col_offsets, *how)


# ---- recurrent layers ----------------------------------------------------------------------------------------------


def stepped(
    kind: str,
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    scale_ih: float,
    scale_hh: float,
    zero_point_ih: int,
    zero_point_hh: int,
) -> tuple[Tensor, ...]:
    ih = (array_of(w_ih), np.float32(scale_ih), np.float32(zero_point_ih))
    hh = (array_of(w_hh), np.float32(scale_hh), np.float32(zero_point_hh))
    states = tuple([array_of(h.detach()) for h in hx])
    given = (array_of(input.detach()), states, ih, bias_of(b_ih), hh, bias_of(b_hh))
    return tuple(map(wrap, call(stepping(kind, False), *given)))


def quantized_lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    packed_ih: Tensor,
    packed_hh: Tensor,
    col_offsets_ih: Tensor,
    col_offsets_hh: Tensor,
    scale_ih: float,
    scale_hh: float,
    zero_point_ih: int,
    zero_point_hh: int,
) -> tuple[Tensor, Tensor]:
    """A step of an LSTM with weights of int8: the hidden state (B, hidden) and the cell's."""
    scales = (scale_ih, scale_hh, zero_point_ih, zero_point_hh)
    hidden, cell = stepped("lstm", input, hx, w_ih, w_hh, b_ih, b_hh, *scales)
    return hidden, cell


def quantized_gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    packed_ih: Tensor,
    packed_hh: Tensor,
    col_offsets_ih: Tensor,
    col_offsets_hh: Tensor,
    scale_ih: float,
    scale_hh: float,
    zero_point_ih: int,
    zero_point_hh: int,
) -> Tensor:
    """A step of a GRU with weights of int8: the hidden state (B, hidden)."""
    scales = (scale_ih, scale_hh, zero_point_ih, zero_point_hh)
    return stepped("gru", input, (hx,), w_ih, w_hh, b_ih, b_hh, *scales)[0]


def quantized_rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    packed_ih: Tensor,
    packed_hh: Tensor,
    col_offsets_ih: Tensor,
    col_offsets_hh: Tensor,
    scale_ih: float,
    scale_hh: float,
    zero_point_ih: int,
    zero_point_hh: int,
) -> Tensor:
    """A step of an Elman layer with weights of int8 and tanh: the hidden state (B, hidden)."""
    scales = (scale_ih, scale_hh, zero_point_ih, zero_point_hh)
    return stepped("rnn_tanh", input, (hx,), w_ih, w_hh, b_ih, b_hh, *scales)[0]


def quantized_rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    packed_ih: Tensor,
    packed_hh: Tensor,
    col_offsets_ih: Tensor,
    col_offsets_hh: Tensor,
    scale_ih: float,
    scale_hh: float,
    zero_point_ih: int,
    zero_point_hh: int,
) -> Tensor:
    """A step of an Elman layer with weights of int8 and ReLU: the hidden state (B, hidden)."""
    scales = (scale_ih, scale_hh, zero_point_ih, zero_point_hh)
    return stepped("rnn_relu", input, (hx,), w_ih, w_hh, b_ih, b_hh, *scales)[0]


def run_layers(
    kind: str,
    input: Tensor,
    states: Sequence[Tensor],
    params: Sequence[ScriptObject],
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    batch_sizes: Tensor | None,
) -> tuple[Tensor, ...]:
    drop = (lambda x: F.dropout(x, dropout, True)) if dropout and train else None
    x = input.transpose(0, 1) if batch_first else input
    made, last = layers(kind, x, states, params, num_layers, drop, bidirectional, batch_sizes)
    return (made.transpose(0, 1) if batch_first else made, *last)


def quantized_lstm(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: Any,
    num_layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: Any,
    batch_first: Any = False,
    *,
    dtype: Any = None,
    use_dynamic: bool = False,
) -> tuple[Tensor, ...]:
    """An LSTM of packed weights: outputs (T, B, directions * hidden), and the last hidden states and those of the cells.

    Over packed sequences, their data and batch sizes come first: `(data, batch_sizes, hx, params, has_biases, num_layers,
    dropout, train, bidirectional)`.
    """
    if isinstance(hx, Tensor):
        states, packed, count, drop, training, both = (
            params,
            has_biases,
            dropout,
            train,
            bidirectional,
            batch_first,
        )
        return run_layers("lstm", input, states, packed, count, drop, training, both, False, hx)
    return run_layers("lstm", input, hx, params, num_layers, dropout, train, bidirectional, batch_first, None)


def quantized_gru(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: Any,
    num_layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: Any,
    batch_first: Any = False,
) -> tuple[Tensor, ...]:
    """A GRU of packed weights: outputs (T, B, directions * hidden), and the last hidden states.

    Over packed sequences, their data and batch sizes come first, as in `quantized_lstm`.
    """
    if isinstance(params, Tensor):
        states, packed, count, drop, training, both = (
            params,
            has_biases,
            dropout,
            train,
            bidirectional,
            batch_first,
        )
        return run_layers("gru", input, (states,), packed, count, drop, training, both, False, hx)
    return run_layers(
        "gru", input, (hx,), params, num_layers, dropout, train, bidirectional, batch_first, None
    )
