"""Attention with several heads (Vaswani et al., 2017)."""

from __future__ import annotations

from typing import Any

from ...ops.create.creation import empty
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of `num_heads` heads, each over its part of the features (Vaswani et al., 2017).

    Keys and values may have sizes `kdim` and `vdim` of their own. `add_bias_kv` appends a learned key and value,
    `add_zero_attn` one of zeros.

    Shape: query `(L, N, E)`, key `(S, N, kdim)`, value `(S, N, vdim)`; output `(L, N, E)` and weights
    `(N, L, S)`, averaged over the heads (None without `need_weights`). N is left out without a batch, and
    comes first with `batch_first`.

    Raises: AssertionError where `num_heads` does not divide `embed_dim`.

    Source: Vaswani et al. 2017, arXiv:1706.03762.

    >>> attention = nn.MultiheadAttention(16, num_heads=4, batch_first=True)
    >>> query, memory = xtensor.zeros(2, 5, 16), xtensor.zeros(2, 7, 16)
    >>> output, weights = attention(query, memory, memory)
    >>> output.shape, weights.shape
    (xtensor.Size([2, 5, 16]), xtensor.Size([2, 5, 7]))
    """

    __constants__ = ["batch_first"]
    bias_k: Tensor | None
    bias_v: Tensor | None

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
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def weight(*shape: int) -> Parameter:
            return Parameter(empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = weight(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = weight(embed_dim, embed_dim)
            self.k_proj_weight = weight(embed_dim, self.kdim)
            self.v_proj_weight = weight(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = weight(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        self.bias_k = weight(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = weight(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            assert self.out_proj.bias is not None
            init.constant_(self.out_proj.bias, 0.0)
        for appended in (self.bias_k, self.bias_v):
            if appended is not None:
                init.xavier_normal_(appended)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

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
    ) -> tuple[Tensor, Tensor | None]:
        """The output, and the attention weights if wanted: averaged over the heads unless told otherwise."""
        if query.is_nested:
            plain = key is query and value is query and key_padding_mask is None and attn_mask is None
            return self._over_rows(query, plain and not need_weights, is_causal), None
        swapped = self.batch_first and query.dim() == 3
        if swapped:
            # What was one tensor stays one: a single projection serves all three.
            moved: dict[int, Tensor] = {}
            for tensor in (query, key, value):
                if id(tensor) not in moved:
                    moved[id(tensor)] = tensor.transpose(1, 0)
            query, key, value = moved[id(query)], moved[id(key)], moved[id(value)]
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return output.transpose(1, 0) if swapped else output, weights

    def _over_rows(self, source: Tensor, plain: bool, is_causal: bool) -> Tensor:
        """Attention of a nested tensor's rows, each to itself."""
        missed = "MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit because "
        if source.dim() != 3:
            raise AssertionError(
                f"{missed}input not batched; expected query.dim() of 3 but got {source.dim()}"
            )
        if not (
            plain
            and self.batch_first
            and self._qkv_same_embed_dim
            and self.bias_k is None
            and not self.add_zero_attn
        ):
            raise AssertionError(
                f"{missed}it is self-attention with batch_first, need_weights=False and neither masks nor bias_k"
            )
        rows, heads = source.size(0), self.num_heads
        projected = F.linear(source, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        query, key, value = [p.reshape(rows, -1, heads, self.head_dim).transpose(1, 2) for p in projected]
        dropout = self.dropout if self.training else 0.0
        made = F.scaled_dot_product_attention(query, key, value, None, dropout, is_causal).transpose(1, 2)
        made = made.reshape(rows, -1, self.embed_dim)
        return F.linear(made, self.out_proj.weight, self.out_proj.bias)
