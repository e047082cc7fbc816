"""Attention in parts that can be seen and quantised."""

from __future__ import annotations

import math
from typing import Any

from ...... import dtypes
from ......nn import functional as F
from ......nn.modules.attention import MultiheadAttention as FloatAttention
from ......nn.modules.linear import Linear
from ......nn.parameter import Parameter
from ......ops.create.creation import zeros
from ......ops.linalg.matmul import matmul
from ......ops.shape.joining import cat
from ......tensor import Tensor
from ...observing import observed
from ...seen import FloatFunctional
from ...stubs import DeQuantStub, QuantStub

__all__ = ["MultiheadAttention"]


class MultiheadAttention(FloatAttention):
    """Attention whose projections are layers of their own: they are quantised, the softmax between them is real."""

    _FLOAT_MODULE: Any = FloatAttention

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            embed_dim,
            num_heads,
            dropout,
            bias,
            add_bias_kv,
            add_zero_attn,
            kdim,
            vdim,
            batch_first,
            device,
            dtype,
        )
        made = {"bias": bias, "device": device, "dtype": dtype}
        self.linear_Q: Any = Linear(embed_dim, embed_dim, **made)
        self.linear_K: Any = Linear(self.kdim, embed_dim, **made)
        self.linear_V: Any = Linear(self.vdim, embed_dim, **made)
        self.out_proj: Any = Linear(embed_dim, embed_dim, **made)
        self.q_scaling_product: Any = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = DeQuantStub(), DeQuantStub(), DeQuantStub()

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """Of a float attention with a qconfig; its parts are seen."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls(
            other.embed_dim, other.num_heads, other.dropout, other.in_proj_bias is not None, other.bias_k is not None,
            other.add_zero_attn, other.kdim, other.vdim, other.batch_first,
        )  # fmt: skip
        made.bias_k, made.bias_v, made.qconfig = other.bias_k, other.bias_v, other.qconfig
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        if other._qkv_same_embed_dim:
            weights = other.in_proj_weight.detach().chunk(3)
        else:
            weights = [w.detach() for w in (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)]
        biases = [None] * 3 if other.in_proj_bias is None else other.in_proj_bias.detach().chunk(3)
        layers = (made.linear_Q, made.linear_K, made.linear_V)
        for layer, weight, bias in zip(layers, weights, biases, strict=True):
            layer.weight = Parameter(weight)
            layer.bias = None if bias is None else Parameter(bias)
        return observed(made.eval())

    def dequantize(self) -> Any:
        """A float attention with the numbers that the quantised weights stand for."""
        made = self._FLOAT_MODULE
        while hasattr(made, "_FLOAT_MODULE"):
            made = made._FLOAT_MODULE
        parts = [layer._weight_bias() for layer in (self.linear_Q, self.linear_K, self.linear_V)]
        found = made(
            self.embed_dim, self.num_heads, self.dropout, parts[0][1] is not None, self.bias_k is not None,
            self.add_zero_attn, self.kdim, self.vdim, self.batch_first,
        )  # fmt: skip
        weights = [weight.dequantize() for weight, _ in parts]
        if found._qkv_same_embed_dim:
            found.in_proj_weight = Parameter(cat(weights))
        else:
            named = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
            for name, weight in zip(named, weights, strict=True):
                setattr(found, name, Parameter(weight))
        if found.in_proj_bias is not None:
            found.in_proj_bias = Parameter(cat([bias for _, bias in parts]))
        weight, bias = self.out_proj._weight_bias()
        found.out_proj.weight = Parameter(weight.dequantize())
        if bias is not None:
            found.out_proj.bias = Parameter(bias)
        return found

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """NotImplementedError: a quantised attention is made of an observed one."""
        raise NotImplementedError(
            "It looks like you are trying to prepare an MHA module. Please, see the examples on quantizable MHAs."
        )

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        """Results (L, N, E), or (N, L, E) where the batch is first, and weights (N, L, S) where they are needed."""
        if attn_mask is not None and is_causal:
            raise AssertionError("Only allow causal mask or attn_mask")
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        length, batch, width = query.shape
        if self.embed_dim != width:
            raise AssertionError(f"embed_dim mismatch: {self.embed_dim} != {width}")
        heads, part = self.num_heads, self.embed_dim // self.num_heads
        q = self.q_scaling_product.mul_scalar(self.linear_Q(query), 1 / math.sqrt(part))
        k, v = self.linear_K(key), self.linear_V(value)
        q, k, v = self.dequant_q(q), self.dequant_k(k), self.dequant_v(v)
        if self.bias_k is not None and self.bias_v is not None:
            k = cat([k, self.bias_k.expand(1, batch, width)])
            v = cat([v, self.bias_v.expand(1, batch, width)])
        if self.add_zero_attn:
            k, v = (cat([x, zeros(1, batch, width, device=x.device)]) for x in (k, v))
        q, k, v = (x.reshape(-1, batch * heads, part).transpose(0, 1) for x in (q, k, v))
        scores = matmul(q, k.transpose(1, 2)).reshape(batch, heads, length, -1)
        more = scores.shape[-1] - key.shape[0]
        if attn_mask is not None:
            mask = attn_mask if attn_mask.dim() == 2 else attn_mask.reshape(batch, heads, length, -1)
            mask = F.pad(mask, (0, more))
            scores = scores.masked_fill(mask, -math.inf) if mask.dtype is dtypes.bool else scores + mask
        if key_padding_mask is not None:
            hidden = F.pad(key_padding_mask.bool(), (0, more))
            scores = scores.masked_fill(hidden[:, None, None, :], -math.inf)
        weights = F.dropout(F.softmax(scores, -1), self.dropout, self.training)
        mixed = matmul(weights.reshape(batch * heads, length, -1), v)
        mixed = mixed.transpose(0, 1).reshape(length, batch, width)
        mixed = mixed.transpose(0, 1) if self.batch_first else mixed
        result = self.out_proj(self.quant_attn_output(mixed))
        if not need_weights:
            return result, None
        weights = self.quant_attn_output_weights(weights)
        return result, weights.mean(1) if average_attn_weights else weights
