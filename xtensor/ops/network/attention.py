"""Scaled dot-product attention: one program from queries, keys and values to the weighted sum.

The softmax is computed in float32 for shorter floats. A query whose keys are all masked gives zeros. Where the scores of all
queries would be many, they are made for some queries at a time, in the derivatives too, so that memory grows with the length, not
with its square: as in Rabe and Staats, "Self-attention Does Not Need O(n^2) Memory" (2021), by queries alone.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.schema import Array
from ...tensor import Tensor, sizes_of
from ...xla.cache import bounded
from ...xla.symbolic import is_open
from ..linalg.matmul import product
from ..shape.joining import joined_shape

__all__ = ["scaled_dot_product_attention"]

MANY_SCORES = 2**21
"""Scores up to which all are made at once."""
BLOCK_SCORES = 2**20
"""Scores that are made at a time where they are more."""
WIDER = 128
"""How many times as many there may be on an accelerator, whose memory is read faster: a gigabyte of float32."""
LEAST_ROWS = 16
"""The least number of queries in a block."""
CAUSAL_PARTS = 4
"""In how many parts, each with the keys that it sees, the queries of causal attention are taken."""


def check_attention(query: Any, key: Any, value: Any, mask: Any, causal: bool) -> None:
    """PyTorch's errors for the shapes and dtypes of attention."""
    a, b, c = (dtype_of(x) for x in (query, key, value))
    if not a is b is c:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{dtypes.c_name(a)} key.dtype: {dtypes.c_name(b)} and value.dtype: {dtypes.c_name(c)} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if not (a.is_floating_point or a.is_complex):
        scores = dtypes.get_default_dtype()
        raise RuntimeError(f"expected scalar type {scores.scalar_name} but found {a.scalar_name}")
    if mask is not None:
        own = dtype_of(mask)
        if own not in (dtypes.bool, a) and not (own is dtypes.float32 and a.itemsize == 2):
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{dtypes.c_name(own)} and  query.dtype: {dtypes.c_name(a)} instead."
            )
        if causal:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )


def grouped(query: Any, key: Any, value: Any) -> tuple[Any, Any]:
    """Keys and values with every head repeated for the group of query heads that it serves."""
    heads = query.shape[-3]
    if heads % key.shape[-3] or heads % value.shape[-3]:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    return tuple(jnp.repeat(x, heads // x.shape[-3], axis=-3) for x in (key, value))  # type: ignore[return-value]


def weights_of(query: Any, key: Any, mask: Any, causal: bool, scale: float | None, first: Any = 0) -> Any:
    """The attention weights `(*, L, S)` in the accumulation type; `first` is the place of the first query."""
    wide = dtypes.compute_type(dtype_of(query)).numpy
    factor = np.asarray(1 / math.sqrt(query.shape[-1]) if scale is None else scale, wide)
    joined_shape(query.shape[:-2], key.shape[:-2])
    check_product(query, key, -1)
    scores = product(query.astype(wide) * factor, jnp.swapaxes(key.astype(wide), -1, -2))
    allowed = None
    if causal:
        rows = lax.broadcasted_iota(jnp.int32, scores.shape[-2:], 0) + first
        columns = lax.broadcasted_iota(jnp.int32, scores.shape[-2:], 1)
        allowed = columns <= rows
    elif mask is not None:
        joined_shape(scores.shape, mask.shape)
        if mask.dtype == jnp.bool_:
            allowed = mask
        else:
            scores = scores + mask.astype(wide)
    if allowed is not None:
        scores = jnp.where(allowed, scores, jnp.asarray(-jnp.inf, wide))
    top = (
        lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
        if scores.shape[-1]
        else jnp.zeros((), wide)
    )
    blocked = top == -jnp.inf
    shares = jnp.exp(scores - jnp.where(blocked, jnp.zeros_like(top), top))
    total = jnp.sum(shares, axis=-1, keepdims=True)
    return shares / jnp.where(blocked, jnp.ones_like(total), total)


@general(
    autocast="short",
    name="scaled_dot_product_attention",
    node="ScaledDotProductAttention",
    derivatives=FROM_KERNEL,
    copies=True,
)
def attend(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    fused: bool = False,
) -> Array:
    """Attention without dropout: `dropout_p`, which is 0, keeps the others in the places that programs written down have them in."""
    check_attention(query, key, value, attn_mask, is_causal)
    if fused and attn_mask is None and takes_cudnn(query, key, value, is_causal, enable_gqa):
        return lax.platform_dependent(
            query,
            key,
            value,
            cuda=lambda q, k, v: by_cudnn(q, k, v, is_causal, scale),
            default=lambda q, k, v: attend_generally(q, k, v, None, is_causal, scale, enable_gqa),
        )
    return attend_generally(query, key, value, attn_mask, is_causal, scale, enable_gqa)


def attend_generally(
    query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Any:
    """Attention by XLA's own operations."""
    if enable_gqa:
        key, value = grouped(query, key, value)
    length = query.shape[-2]
    rows, more = block_rows(query, key, 1), block_rows(query, key, WIDER)
    if attn_mask is not None and attn_mask.ndim < 2:
        rows = more = length

    def some(rows: int, heads: bool = False) -> Any:
        def attention(q: Any, k: Any, v: Any) -> Any:
            if rows >= length:
                return attended(q, k, v, attn_mask, is_causal, scale)
            if heads and (attn_mask is None or math.prod(attn_mask.shape[:-2]) == 1):
                return by_heads(q, k, v, attn_mask, is_causal, scale)
            return by_blocks(q, k, v, attn_mask, is_causal, scale, rows)

        return attention

    if rows == more:
        return some(rows)(query, key, value)
    return lax.platform_dependent(query, key, value, cpu=some(rows, heads=True), default=some(more))


def attended(
    query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float | None, first: Any = 0
) -> Any:
    """The weighted sums of the values, `(*, L, V)`."""
    weights = weights_of(query, key, mask, causal, scale, first)
    check_product(weights, value, -2)
    return product(weights, value.astype(weights.dtype)).astype(query.dtype)


def check_product(left: Any, right: Any, dim: int) -> None:
    """Refuse factors whose shared size, the last of `left`, is not that of dimension `dim` of `right`."""
    if left.shape[-1] != right.shape[dim]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{math.prod(left.shape[:-2])}, {left.shape[-1]}] but got: "
            f"[{math.prod(right.shape[:-2])}, {right.shape[dim]}]."
        )


# ---- cuDNN's kernel ------------------------------------------------------------------------------------------------

fused_allowed: ContextVar[bool] = ContextVar("fused_allowed", default=False)
"""Whether this program asked for kernels of fused attention (`nn.attention.sdpa_kernel`)."""
HEAD = 128
"""The largest head that cuDNN's kernel takes on every GPU that has it; heads are multiples of eight."""


@bounded(1)
def has_cudnn() -> bool:
    """Whether there is a GPU whose cuDNN has fused attention: one of compute capability 8.0, by JAX's own word."""
    try:
        found = jax.local_devices(backend="cuda")
    except RuntimeError:
        return False
    return all(float(getattr(d, "compute_capability", 0)) >= 8 for d in found)


def takes_cudnn(query: Any, key: Any, value: Any, causal: bool, gqa: bool) -> bool:
    """Whether cuDNN's kernel computes this: short floats `(N, heads, L, E)`, as many heads (or groups of them), no open sizes.

    A causal one needs as many keys as queries, where both ways to align them are one.
    """
    if not has_cudnn() or query.dtype.name not in ("float16", "bfloat16"):
        return False
    if {query.ndim, key.ndim, value.ndim} != {4} or any(map(is_open, (*query.shape, *key.shape))):
        return False
    (n, heads, length, width), (m, shared, keys, _) = query.shape, key.shape
    heads_fit = heads == shared or (gqa and shared > 0 and heads % shared == 0)
    sizes_fit = 0 < width <= HEAD and width % 8 == 0 and 0 not in (n, heads, length, keys)
    return (
        n == m
        and heads_fit
        and sizes_fit
        and width == key.shape[-1]
        and value.shape == key.shape
        and not (causal and length != keys)
    )


def by_cudnn(query: Any, key: Any, value: Any, causal: bool, scale: float | None) -> Any:
    """Attention by cuDNN's fused kernel, which keeps no scores."""
    q, k, v = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    found = jax.nn.dot_product_attention(q, k, v, scale=scale, is_causal=causal, implementation="cudnn")
    return jnp.swapaxes(found, 1, 2)


# ---- some queries at a time ----------------------------------------------------------------------------------------


def block_rows(query: Any, key: Any, wider: int) -> int:
    """How many queries are attended to at a time: all, where their scores are few. wider: how many times as many scores are few."""
    length = query.shape[-2]
    if query.shape[-1] != key.shape[-1] or any(map(is_open, (*query.shape, *key.shape))):
        return length
    scores = math.prod(np.broadcast_shapes(query.shape[:-2], key.shape[:-2])) * key.shape[-2]
    if scores * length <= wider * MANY_SCORES:
        return length
    return max(wider * BLOCK_SCORES // scores, LEAST_ROWS)


def by_heads(query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float | None) -> Any:
    """`attended`, some heads at a time or some queries of one: on a CPU their products are larger than those of a few queries of all heads, and
    the gradients of keys and values are summed where they lie in its caches. The mask is one for all heads.
    """
    leading = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    count, length, scores = math.prod(leading), query.shape[-2], query.shape[-2] * key.shape[-2]
    together = max(1, BLOCK_SCORES // scores)
    while count % together:
        together -= 1
    mask = None if mask is None else mask.reshape(mask.shape[-2:])

    @jax.checkpoint
    def whole(q: Any, k: Any, v: Any) -> Any:
        return attended(q, k, v, mask, causal, scale)

    def some(x: tuple[Any, Any, Any]) -> Any:
        q, k, v = x
        if scores > BLOCK_SCORES:
            return by_blocks(q, k, v, mask, causal, scale, max(BLOCK_SCORES // key.shape[-2], LEAST_ROWS))
        if causal and length >= CAUSAL_PARTS * LEAST_ROWS:
            return by_blocks(q, k, v, mask, causal, scale, -(-length // CAUSAL_PARTS))
        return whole(q, k, v)

    def heads(x: Any) -> Any:
        x = jnp.broadcast_to(x, (*leading, *x.shape[-2:]))
        return x.reshape(count // together, together, *x.shape[-2:])

    out = lax.map(some, (heads(query), heads(key), heads(value)))
    return out.reshape(*leading, length, out.shape[-1])


def by_blocks(
    query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float | None, rows: int
) -> Any:
    """`attended`, `rows` queries at a time; of causal attention, with those keys alone that any of a part's queries sees."""
    length = query.shape[-2]
    parts = CAUSAL_PARTS if causal and key.shape[-2] == length == value.shape[-2] else 1
    step = -(-length // (parts * rows)) * rows
    found = []
    for start in range(0, length, step):
        stop = min(start + step, length)
        q, m = query[..., start:stop, :], part_of(mask, start, stop)
        k, v = (key, value) if parts == 1 else (key[..., :stop, :], value[..., :stop, :])
        found.append(in_turns(q, k, v, m, causal, scale, rows, start))
    return jnp.concatenate(found, -2)


def in_turns(
    query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float | None, rows: int, first: int
) -> Any:
    """`attended`, one block of queries after the other; derivatives compute a block's weights again."""

    @jax.checkpoint
    def block(q: Any, m: Any, at: Any) -> Any:
        return attended(q, key, value, mask if m is None else m, causal, scale, at)

    count, rest = divmod(query.shape[-2], rows)
    whole = count * rows
    found = []
    if count:
        xs = (
            blocks_of(query, count, rows),
            blocks_of(mask, count, rows),
            first + rows * np.arange(count, dtype=np.int32),
        )
        out = jnp.moveaxis(lax.map(lambda x: block(*x), xs), 0, -3)
        found.append(out.reshape(*out.shape[:-3], whole, out.shape[-1]))
    if rest:
        found.append(block(query[..., whole:, :], part_of(mask, whole, whole + rest), first + whole))
    return jnp.concatenate(found, -2)


def part_of(mask: Any, start: int, stop: int) -> Any:
    """The rows of a mask for some queries."""
    return mask if mask is None or mask.shape[-2] == 1 else mask[..., start:stop, :]


def blocks_of(x: Any, count: int, rows: int) -> Any:
    """`count` blocks of rows, first; None of what has no row for each query."""
    if x is None or x.shape[-2] == 1:
        return None
    x = x[..., : count * rows, :]
    return jnp.moveaxis(x.reshape(*x.shape[:-2], count, rows, x.shape[-1]), -3, 0)


@general(autocast="short", name="attention_weights", derivatives=FROM_KERNEL)
def attention_weights(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    """The weights with which every query attends to every key."""
    check_attention(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        key, _ = grouped(query, key, value)
    return weights_of(query, key, attn_mask, is_causal, scale).astype(query.dtype)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ key.T * scale + mask) @ value`, with dropout on the weights.

    `query` is `(*, L, E)`, `key` `(*, S, E)` and `value` `(*, S, V)`; `scale` is `1 / sqrt(E)` by default. With
    `enable_gqa` every head of keys and values serves a group of query heads. Within `nn.attention.sdpa_kernel` of a fused
    kernel an NVIDIA GPU computes short floats by cuDNN's, which has first derivatives only.

    Shape: result `(*, L, V)`; `attn_mask` broadcasts to `(*, L, S)`.

    Raises: RuntimeError for integer tensors; TypeError for arguments of other kinds; RuntimeError where sizes do not
    fit; RuntimeError for bool tensors.

    Source: Vaswani et al. 2017, arXiv:1706.03762.

    >>> query, key, value = xtensor.zeros(2, 4, 5, 8), xtensor.zeros(2, 4, 7, 8), xtensor.zeros(2, 4, 7, 16)
    >>> F.scaled_dot_product_attention(query, key, value).shape
    xtensor.Size([2, 4, 5, 16])
    """
    if dropout_p == 0.0:
        return attend(query, key, value, attn_mask, 0.0, is_causal, scale, enable_gqa, fused_allowed.get())
    weights = attention_weights(query, key, value, attn_mask, is_causal, scale, enable_gqa)
    if enable_gqa:
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    kept = weights.detach().new_empty(tuple(sizes_of(weights))).bernoulli_(1 - dropout_p)
    return (weights * kept / (1 - dropout_p)).matmul(value)
