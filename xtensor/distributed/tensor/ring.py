"""Context parallel attention: the sequence is split over a dimension of a mesh, and keys and values go round in a ring.

Liu et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context", 2023: each device keeps its queries, and joins the blocks
of keys and values that pass by one running softmax, so that no device has the scores of more than a block.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...compat.overrides import TorchFunctionMode
from ...engine.modes import no_grad
from ...jax.functions import from_jax
from ...nn import functional
from ...tensor import Tensor
from ...xla.cache import bounded
from ..device_mesh import DeviceMesh
from .dtensor import distribute_tensor, full_tensor, onto
from .placement_types import Shard

__all__ = ["context_parallel", "ring_attention"]


@bounded(64)
def program(mesh: Any, axis: str, causal: bool, scale: float | None) -> Callable[..., Any]:
    """Attention over sequences that are split along an axis of a mesh."""
    count = mesh.shape[axis]
    spec = jax.sharding.PartitionSpec(None, None, axis, None)

    def part(q: Any, k: Any, v: Any) -> Any:
        here = lax.axis_index(axis)
        kind = jnp.promote_types(q.dtype, jnp.float32)
        factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        length, other = q.shape[-2], k.shape[-2]
        rows = here * length + jnp.arange(length)[:, None]
        most = jnp.full((*q.shape[:-1], 1), -jnp.inf, kind)
        total = jnp.zeros((*q.shape[:-1], 1), kind)
        made = jnp.zeros((*q.shape[:-1], v.shape[-1]), kind)
        ring = [(i, (i + 1) % count) for i in range(count)]
        for step in range(count):
            scores = jnp.einsum("bhsd,bhtd->bhst", q, k, preferred_element_type=kind) * factor
            if causal:
                columns = ((here - step) % count) * other + jnp.arange(other)[None, :]
                scores = jnp.where(rows >= columns, scores, -jnp.inf)
            higher = jnp.maximum(most, scores.max(-1, keepdims=True))
            finite = jnp.where(jnp.isneginf(higher), 0, higher)
            shares = jnp.exp(scores - finite)
            before = jnp.exp(most - finite)
            total = total * before + shares.sum(-1, keepdims=True)
            made = made * before + jnp.einsum("bhst,bhtd->bhsd", shares, v, preferred_element_type=kind)
            most = higher
            if step + 1 < count:
                k, v = (lax.ppermute(x, axis, ring) for x in (k, v))
        return (made / total).astype(q.dtype)

    return from_jax(
        jax.shard_map(part, mesh=mesh, in_specs=(spec, spec, spec), out_specs=spec, check_vma=False)
    )


def ring_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mesh: DeviceMesh,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Attention of `(N, heads, L, E)` whose sequences are split over a mesh of one dimension; the result lies so, too.

    Both lengths must be divisible by the mesh's size.
    """
    if mesh.ndim != 1 or len(mesh._axes[0]) != 1:
        raise ValueError(f"ring_attention takes a mesh of one dimension, not {mesh}: slice it by a name")
    for tensor in (query, key, value):
        if tensor.dim() != 4 or tensor.shape[2] % mesh.size():
            raise ValueError(
                f"ring_attention takes (N, heads, length, features) with a length that {mesh.size()} divides, not {list(tensor.shape)}"
            )
    ready = [onto(t, mesh, [Shard(2)]) for t in (query, key, value)]
    return program(mesh.jax_mesh, mesh._axes[0][0], is_causal, scale)(*ready)


class _Ring(TorchFunctionMode):
    """Attention within the block goes round the ring."""

    def __init__(self, mesh: DeviceMesh) -> None:
        super().__init__()
        self.mesh = mesh

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func is functional.scaled_dot_product_attention:
            return self.attention(*args, **given)
        return func(*args, **given)

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """What `scaled_dot_product_attention` gives."""
        if attn_mask is not None or dropout_p or enable_gqa:
            raise NotImplementedError("context_parallel takes no attn_mask, dropout_p or enable_gqa")
        return ring_attention(query, key, value, self.mesh, is_causal=is_causal, scale=scale)


@contextlib.contextmanager
def context_parallel(
    mesh: DeviceMesh,
    *,
    buffers: Sequence[Tensor] | None = None,
    buffer_seq_dims: Sequence[int] | None = None,
    no_restore_buffers: set[Tensor] | None = None,
) -> Iterator[None]:
    """A block in which attention is `ring_attention`, and `buffers` are split over the mesh along their sequences.

    Differs from PyTorch: the buffers stay whole tensors, which lie on the mesh; sequences are not reordered to balance causal attention.
    """
    given, dims = list(buffers or ()), list(buffer_seq_dims or ())
    if len(given) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    before = [(b, b.data) for b in given]
    with no_grad():
        for buffer, dim in zip(given, dims, strict=True):
            buffer.data = distribute_tensor(buffer.detach(), mesh, [Shard(dim)])
    try:
        with _Ring(mesh):
            yield
    finally:
        kept = no_restore_buffers or set()
        for buffer, own in before:
            if not any(buffer is k for k in kept):
                with no_grad():
                    buffer.data = full_tensor(buffer.detach()).to(own.device)
