"""Attention of several heads as a function of all its weights: `nn.functional.multi_head_attention_forward`."""

from __future__ import annotations

import math
from typing import Any

from ... import checks
from ...tensor import Tensor, sizes_of
from ..index.masks import masked_fill
from ..linalg.added_products import baddbmm
from ..linalg.matmul import bmm, linear
from ..pointwise.activation_functions import softmax
from ..shape.joining import cat
from ..signal.padding import pad
from .attention import scaled_dot_product_attention

__all__ = ["multi_head_attention_forward"]


def require(condition: Any, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def check_ranks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether there is a batch; AssertionError where the ranks of the arguments do not fit together."""
    rank = query.dim()
    require(
        rank in (2, 3),
        f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor",
    )
    start = f"For {'batched (3-D)' if rank == 3 else 'unbatched (2-D)'} `query`, expected"
    require(
        key.dim() == rank and value.dim() == rank,
        f"{start} `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively",
    )
    if key_padding_mask is not None:
        require(
            key_padding_mask.dim() == rank - 1,
            f"{start} `key_padding_mask` to be `None` or {rank - 1}-D but found {key_padding_mask.dim()}-D tensor "
            "instead",
        )
    if attn_mask is not None:
        require(
            attn_mask.dim() in (2, 3),
            f"{start} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead",
        )
        if rank == 2 and attn_mask.dim() == 3:
            shape = (num_heads, sizes_of(query)[0], sizes_of(key)[0])
            require(
                tuple(sizes_of(attn_mask)) == shape,
                f"Expected `attn_mask` shape to be {shape} but got {attn_mask.shape}",
            )
    return rank == 3


def added(mask: Tensor | None, name: str, dtype: Any, other: Tensor | None = None) -> Tensor | None:
    """A mask as what is added to the scores: minus infinity where a boolean one is true."""
    if mask is None:
        return None
    require(
        mask.is_floating_point() or mask.dtype.name == "bool",
        f"only bool and floating types of {name} are supported",
    )
    if other is not None and mask.dtype is not other.dtype:
        checks.warn(
            f"Support for mismatched {name} and attn_mask is deprecated. Use same type for both instead.",
        )
    if mask.is_floating_point():
        return mask
    return masked_fill(mask.new_zeros(tuple(sizes_of(mask)), dtype=dtype), mask, -math.inf)


def projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by weights packed into one matrix; what is the same tensor is multiplied once."""
    width = sizes_of(query)[-1]
    if key is value and query is key:
        q, k, v = linear(query, weight, bias).split(width, -1)
        return q, k, v
    if key is value:
        w_q, w_kv = weight.split([width, 2 * width])
        b_q, b_kv = (None, None) if bias is None else bias.split([width, 2 * width])
        k, v = linear(key, w_kv, b_kv).split(width, -1)
        return linear(query, w_q, b_q), k, v
    w_q, w_k, w_v = weight.chunk(3)
    b_q, b_k, b_v = (None, None, None) if bias is None else bias.chunk(3)
    return linear(query, w_q, b_q), linear(key, w_k, b_k), linear(value, w_v, b_v)


def check_projections(query: Tensor, key: Tensor, value: Tensor, weights: Any, biases: Any) -> None:
    width = sizes_of(query)[-1]
    for what, x, w in zip(("query", "key", "value"), (query, key, value), weights, strict=True):
        shape = (width, sizes_of(x)[-1])
        require(tuple(sizes_of(w)) == shape, f"expecting {what} weights shape of {shape}, but got {w.shape}")
    for what, b in zip(("query", "key", "value"), biases, strict=True):
        require(
            b is None or tuple(sizes_of(b)) == (width,),
            f"expecting {what} bias shape of {(width,)}, but got {None if b is None else b.shape}",
        )


def heads_first(x: Tensor, batch: int, heads: int, width: int) -> Tensor:
    """`(L, N, E)` as `(N * heads, L, E / heads)`."""
    return x.reshape((sizes_of(x)[0], batch * heads, width)).transpose(0, 1)


def fixed_or(fixed: Tensor | None, name: str, made: Tensor, batch: int, heads: int, size: int) -> Tensor:
    """Keys or values by heads: those that the caller gave, or those made here."""
    if fixed is None:
        return heads_first(made, batch, heads, size)
    sizes, rows = sizes_of(fixed), batch * heads
    require(sizes[0] == rows, f"expecting {name}.size(0) of {rows}, but got {sizes[0]}")
    require(sizes[2] == size, f"expecting {name}.size(2) of {size}, but got {sizes[2]}")
    return fixed


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What `nn.MultiheadAttention` computes, `(L, N, E)` or `(L, E)`; the attention weights come second, or None.

    Shape: `query` `(L, N, E)`, `key` and `value` `(S, N, E)`, or all without N; result `(L, N, E)` and
    weights `(N, L, S)`.
    `need_weights=False` takes `scaled_dot_product_attention`. Masks are true, or minus infinity, where not to attend.

    Raises: AssertionError where sizes do not fit; RuntimeError where sizes do not fit; NotImplementedError
    for complex and bool tensors; RuntimeError for integer tensors.

    Source: Vaswani et al. 2017, arXiv:1706.03762.
    """
    batched = check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        batches: dict[int, Tensor] = {id(x): x.unsqueeze(1) for x in (query, key, value)}
        query, key, value = (batches[id(x)] for x in (query, key, value))  # what is one tensor stays one
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = sizes_of(query)
    source = sizes_of(key)[0]
    key_padding_mask = added(key_padding_mask, "key_padding_mask", query.dtype, attn_mask)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = added(attn_mask, "attn_mask", query.dtype)
        is_causal = is_causal and key_padding_mask is None
    require(
        width == embed_dim_to_check,
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}",
    )
    size = width // num_heads
    require(size * num_heads == width, f"embed_dim {width} not divisible by num_heads {num_heads}")

    if use_separate_proj_weight:
        require(
            tuple(key.shape[:2]) == tuple(value.shape[:2]),
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        for name, w in zip("qkv", weights, strict=True):
            require(w is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        check_projections(query, key, value, weights, biases)
        pairs = zip((query, key, value), weights, biases, strict=True)
        q, k, v = [linear(x, w, b) for x, w, b in pairs]
    else:
        require(
            tuple(key.shape) == tuple(value.shape),
            f"key shape {key.shape} does not match value shape {value.shape}",
        )
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = projected(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        shapes = {2: (length, source), 3: (batch * num_heads, length, source)}
        rank = attn_mask.dim()
        if tuple(sizes_of(attn_mask)) != shapes[rank]:
            raise RuntimeError(
                f"The shape of the {rank}D attn_mask is {attn_mask.shape}, but should be {shapes[rank]}."
            )
        attn_mask = attn_mask.unsqueeze(0) if rank == 2 else attn_mask

    more = 0
    if bias_k is not None and bias_v is not None:
        require(static_k is None, "bias cannot be added to static key.")
        require(static_v is None, "bias cannot be added to static value.")
        k = cat([k, bias_k.repeat(1, batch, 1)])
        v = cat([v, bias_v.repeat(1, batch, 1)])
        more += 1
    else:
        require(bias_k is None, "bias_k is set but bias_v is None")
        require(bias_v is None, "bias_v is set but bias_k is None")

    rows = batch * num_heads
    q = heads_first(q, batch, num_heads, size)
    k = fixed_or(static_k, "static_k", k, batch, num_heads, size)
    v = fixed_or(static_v, "static_v", v, batch, num_heads, size)
    if add_zero_attn:
        k = cat([k, k.new_zeros((rows, 1, size))], 1)
        v = cat([v, v.new_zeros((rows, 1, size))], 1)
        more += 1
    if more:
        attn_mask = None if attn_mask is None else pad(attn_mask, (0, more))
        key_padding_mask = None if key_padding_mask is None else pad(key_padding_mask, (0, more))
    source = sizes_of(k)[1]

    if key_padding_mask is not None:
        for d, wanted in enumerate((batch, source)):
            found = sizes_of(key_padding_mask)[d]
            require(found == wanted, f"Expected key_padded_mask.shape[{d}] to be {wanted}, but got {found}")
        spread = key_padding_mask.reshape((batch, 1, 1, source)).expand(-1, num_heads, -1, -1)
        spread = spread.reshape((rows, 1, source))
        attn_mask = spread if attn_mask is None else attn_mask + spread
    dropout_p = dropout_p if training else 0.0

    if need_weights:
        scaled = q * math.sqrt(1.0 / size)
        across = k.transpose(-2, -1)
        require(not is_causal or attn_mask is not None, "is_causal needs a mask where weights are wanted")
        scores = bmm(scaled, across) if attn_mask is None else baddbmm(attn_mask, scaled, across)
        shares = softmax(scores, -1)
        if dropout_p > 0.0:
            kept = shares.detach().new_empty(tuple(sizes_of(shares))).bernoulli_(1 - dropout_p)
            shares = shares * kept / (1 - dropout_p)
        joined = bmm(shares, v).transpose(0, 1).reshape((length * batch, width))
    else:
        if attn_mask is not None:
            few = sizes_of(attn_mask)[0] == 1
            attn_mask = attn_mask.unsqueeze(0) if few else attn_mask.reshape((batch, num_heads, -1, source))
        q, k, v = [x.reshape((batch, num_heads, n, size)) for x, n in ((q, length), (k, source), (v, source))]
        seen = scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
        joined = seen.permute((2, 0, 1, 3)).reshape((batch * length, width))
        shares = None
    output = linear(joined, out_proj_weight, out_proj_bias)
    output = output.reshape((length, batch, sizes_of(output)[1]))
    if shares is not None:
        shares = shares.reshape((batch, num_heads, length, source))
        if average_attn_weights:
            shares = shares.mean(1)
        if not batched:
            shares = shares.squeeze(0)
    return (output if batched else output.squeeze(1)), shares
