"""The Transformer (Vaswani et al., 2017): encoder, decoder, their layers and both together."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ... import checks
from ...engine import is_grad_enabled
from ...ops.create.creation import full
from ...ops.network.multihead import added
from ...ops.shape.rearranging import triu
from ...tensor import Tensor
from .. import functional as F
from .. import init
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


def activation_named(activation: Any) -> Callable[[Tensor], Tensor]:
    """The function for "relu" or "gelu"; a function is itself."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def copies(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class Transformer(Module):
    """An encoder over the source and a decoder over the target that attends to it (Vaswani et al., 2017).

    Shape: source `(S, N, E)`, target `(T, N, E)`, output `(T, N, E)`; E is `d_model`. N is left out without a
    batch, and comes first with `batch_first`.

    Raises: AssertionError where `nhead` does not divide `d_model`.

    Source: Vaswani et al. 2017, arXiv:1706.03762.

    >>> model = nn.Transformer(16, 4, 1, 1, dim_feedforward=32, batch_first=True)
    >>> model(xtensor.zeros(2, 5, 16), xtensor.zeros(2, 7, 16)).shape
    xtensor.Size([2, 7, 16])
    >>> nn.Transformer.generate_square_subsequent_mask(2)
    tensor([[0., -inf],
            [0., 0.]])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        own: tuple[Any, ...] = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        own += (batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*own), num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*own), num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for param in self.parameters():
            if param.dim() > 1:
                init.xavier_uniform_(param)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The decoded target (T, N, E), or (N, T, E) with `batch_first`."""
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The mask (sz, sz) under which no position sees a later one: minus infinity above the diagonal."""
        return causal_mask(sz, device, dtype)


def causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    return triu(full((size, size), float("-inf"), dtype=dtype, device=device), diagonal=1)


class TransformerEncoder(Module):
    """A stack of `num_layers` copies of a layer, and a normalisation after it if there is one.

    Shape: source `(S, N, E)`, output `(S, N, E)`. N is left out without a batch, and comes first with
    `batch_first`.

    Raises: TypeError for a layer that is no module; AssertionError for an input of another size.

    Source: Vaswani et al. 2017, arXiv:1706.03762.

    >>> layer = nn.TransformerEncoderLayer(16, nhead=4, dim_feedforward=32, batch_first=True)
    >>> nn.TransformerEncoder(layer, num_layers=2)(xtensor.zeros(2, 5, 16)).shape
    xtensor.Size([2, 5, 16])
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = why_not_nested(encoder_layer)
        if enable_nested_tensor and reason:
            checks.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}",
            )
            self.use_nested_tensor = False

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """The source after all layers. As PyTorch does, evaluation without gradients leaves zeros where it is padding."""
        src_key_padding_mask = added(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask)
        mask = added(mask, "mask", src.dtype)
        output = src
        for layer in self.layers:
            output = layer(
                output,
                src_mask=mask,
                is_causal=bool(is_causal),
                src_key_padding_mask=src_key_padding_mask,
            )
        if src_key_padding_mask is not None and mask is None and self._drops_padding(src):
            padding = src_key_padding_mask != 0
            aligned = (padding[:, 1:] >= padding[:, :-1]).all() if self.mask_check else True
            output = output.masked_fill((padding & aligned).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _drops_padding(self, src: Tensor) -> bool:
        first = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3:
            return False
        return not (
            is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in first.parameters()))
        )


def why_not_nested(layer: Any) -> str:
    """Why PyTorch would not leave out padding when it evaluates a stack of this layer; empty where it would."""
    name = "encoder_layer"
    if not isinstance(layer, TransformerEncoderLayer):
        return f"{name} was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return f"{name}.norm_first was True"
    if not attention.batch_first:
        return f"{name}.self_attn.batch_first was not True(use batch_first for better inference performance)"
    if not attention._qkv_same_embed_dim:
        return f"{name}.self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return f"{name}.self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return f"{name}.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return f"{name}.norm1.eps was not equal to {name}.norm2.eps"
    if attention.num_heads % 2 == 1:
        return f"{name}.self_attn.num_heads is odd"
    return ""


class TransformerDecoder(Module):
    """A stack of `num_layers` copies of a layer, and a normalisation after it if there is one.

    Shape: target `(T, N, E)`, memory `(S, N, E)`, output `(T, N, E)`. N is left out without a batch, and
    comes first with `batch_first`.

    Raises: TypeError for a layer that is no module; AssertionError for an input of another size.

    Source: Vaswani et al. 2017, arXiv:1706.03762.

    >>> layer = nn.TransformerDecoderLayer(16, nhead=4, dim_feedforward=32, batch_first=True)
    >>> decoder = nn.TransformerDecoder(layer, num_layers=2)
    >>> decoder(xtensor.zeros(2, 7, 16), xtensor.zeros(2, 5, 16)).shape
    xtensor.Size([2, 7, 16])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The target after all layers, each of which attends to `memory`."""
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class _Layer(Module):
    """Attentions and a feed-forward network, each with a dropout and a normalisation."""

    __constants__ = ["norm_first"]
    attentions: tuple[str, ...]
    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        for name in type(self).attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **factory
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        steps = range(1, len(type(self).attentions) + 2)
        for i in steps:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory))
        for i in steps:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self._set_activation(activation_named(activation))

    def _set_activation(self, activation: Any) -> None:
        self.activation = activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("activation", F.relu)
        super().__setstate__(state)

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )[0]
        return self.dropout1(x)


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each with a residual and a normalisation (before it: `norm_first`).

    Shape: source `(S, N, E)`, output `(S, N, E)`; E is `d_model`. N is left out without a batch, and comes
    first with `batch_first`.

    Raises: AssertionError where `nhead` does not divide `d_model`.

    Source: Vaswani et al. 2017, arXiv:1706.03762.

    >>> layer = nn.TransformerEncoderLayer(16, nhead=4, dim_feedforward=32)
    >>> layer(xtensor.zeros(5, 2, 16)).shape
    xtensor.Size([5, 2, 16])
    """

    attentions = ("self_attn",)

    def _set_activation(self, activation: Any) -> None:
        if activation is F.relu or isinstance(activation, ReLU):
            self.activation_relu_or_gelu = 1
        elif activation is F.gelu or isinstance(activation, GELU):
            self.activation_relu_or_gelu = 2
        else:
            self.activation_relu_or_gelu = 0
        self.activation = activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The source (L, N, E) after attention to itself, or (N, L, E) with `batch_first`."""
        src_key_padding_mask = added(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask)
        src_mask = added(src_mask, "src_mask", src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the memory and a feed-forward network, each with a residual and a normalisation.

    Shape: target `(T, N, E)`, memory `(S, N, E)`, output `(T, N, E)`; E is `d_model`. N is left out without a
    batch, and comes first with `batch_first`.

    Raises: AssertionError where `nhead` does not divide `d_model`.

    Source: Vaswani et al. 2017, arXiv:1706.03762.

    >>> layer = nn.TransformerDecoderLayer(16, nhead=4, dim_feedforward=32)
    >>> layer(xtensor.zeros(7, 2, 16), xtensor.zeros(5, 2, 16)).shape
    xtensor.Size([7, 2, 16])
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The target (T, N, E) after attention to itself and to `memory`, or (N, T, E) with `batch_first`."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        others = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *others)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *others))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        x = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout2(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
