"""`flex_attention`: attention with functions for its scores and its mask, computed for the blocks that the mask has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import numpy as np

from ... import dtypes
from ...ops.create.ingest import as_tensor
from ...ops.create.ranges import arange
from ...ops.shape.joining import cat
from ...tensor import Tensor
from .block_mask import (
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
    over_indices,
)

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

ScoreFunction = Callable[..., Tensor]


class AuxRequest(NamedTuple):
    """What else `flex_attention` is to give: the logarithms of the sums of exponentials, the largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What else `flex_attention` gave, `(b, h, queries)`; None for what was not asked."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(TypedDict, total=False):
    """Settings of PyTorch's kernels, which change nothing here."""

    BLOCK_M: int
    BLOCK_N: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    BACKEND: str


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreFunction | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention whose scores a function changes and whose pairs a block mask chooses.

    query: `(b, hq, n, e)`; key, value: `(b, hkv, m, e)`, fewer heads with `enable_gqa`. score_mod: of a score and the indices
    of its batch, head, query and key, the new score. Blocks that the mask leaves out are not computed; a query that sees
    nothing gives zeros. With `return_lse` the logarithms of the sums of exponentials come second.
    Differs from PyTorch: `kernel_options` change nothing, and the largest scores are there on every device.

    Example: `flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s - (i - j).abs())`.
    """
    _check(query, key, value, block_mask, enable_gqa)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    if key.shape[0] != query.shape[0]:
        key, value = (x.expand(query.shape[0], *x.shape[1:]) for x in (key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    wide = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
    parts = [
        _attended(query, key, value, score_mod, block_mask, factor, wide, rows, columns, flags)
        for rows, columns, flags in _tiles(query.shape[2], key.shape[2], block_mask)
    ]
    out, lse, top = (cat([part[i] for part in parts], 2) if len(parts) > 1 else parts[0][i] for i in range(3))
    out = out.to(query.dtype)
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None, top if return_aux.max_scores else None)
    return (out, lse) if return_lse else out


def _check(query: Tensor, key: Tensor, value: Tensor, mask: BlockMask | None, grouped: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.shape[-1]} and E={key.shape[-1]}."
        )
    if query.shape[0] != key.shape[0] and (mask is None or key.shape[0] != 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but got "
            f"block_mask={mask if mask is None else 'BlockMask'}, Bq={query.shape[0]}, and Bkv={key.shape[0]}."
        )
    heads, own = query.shape[1], key.shape[1]
    if not grouped and heads != own:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={own}. "
            "Try setting enable_gqa=True for GQA."
        )
    if heads % own:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={own}."
        )
    if mask is not None and mask.seq_lengths != (query.shape[2], key.shape[2]):
        raise ValueError(
            f"block_mask was created for block_mask.shape={mask.shape} but got q_len={query.shape[2]} and "
            f"kv_len={key.shape[2]}. Make one of these lengths, or crop it: block_mask._adjust(q_len, kv_len)."
        )


def _tiles(queries: int, keys: int, mask: BlockMask | None) -> Any:
    """The blocks of queries: their rows, the keys that any of them sees, and which blocks these are, `(partial, full)`."""
    if mask is None:
        yield slice(0, queries), None, None
        return
    height, width = mask.BLOCK_SIZE
    seen, full = mask.flags(), mask.full_flags()
    full = np.zeros_like(seen) if full is None else full
    for i in range(seen.shape[-2]):
        some = np.flatnonzero(seen[:, :, i].any((0, 1)))
        # Numbers of blocks are rounded up to powers of two, so that few programs serve all rows.
        count = min(2 ** max(len(some) - 1, 0).bit_length(), seen.shape[-1])
        blocks = np.concatenate([some, np.setdiff1d(np.arange(seen.shape[-1]), some)])[:count]
        columns = (blocks[:, None] * width + np.arange(width)).reshape(-1)
        inside = columns < keys
        flags = [
            np.repeat(f[:, :, i][..., blocks], width, -1)[..., None, inside] for f in (seen & ~full, full)
        ]
        yield slice(i * height, min((i + 1) * height, queries)), columns[inside], flags


def _attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreFunction | None,
    mask: BlockMask | None,
    factor: float,
    wide: dtypes.dtype,
    rows: slice,
    columns: np.ndarray[Any, Any] | None,
    flags: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """The weighted sums of some queries over some keys, the logarithms of their sums and their largest scores."""
    q, place = query[:, :, rows], query.device
    at = arange(key.shape[2], device=place) if columns is None else as_tensor(columns, device=place)
    k, v = (x if columns is None else x.index_select(2, at) for x in (key, value))
    scores = (q.to(wide) @ k.to(wide).mT) * factor
    indices = (
        *(arange(n, device=place) for n in q.shape[:2]),
        arange(rows.start, rows.stop, device=place),
        at,
    )
    if score_mod is not None:
        scores = over_indices(score_mod, indices, scores).to(wide)
    if mask is not None:
        partial, full = flags
        allowed: Any = as_tensor(full, device=place)
        if partial.any():
            heads = tuple(i[:n] for i, n in zip(indices, mask.kv_indices.shape[:2]))
            inner = over_indices(mask.mask_mod, (*heads, *indices[2:]))
            allowed = allowed | (as_tensor(partial, device=place) & inner)
        scores = scores.where(allowed, -math.inf)
    if not scores.shape[-1]:
        return q[..., :1] * 0 @ v[..., :1, :], scores.sum(-1) - math.inf, scores.sum(-1) - math.inf
    top = scores.detach().amax(-1, keepdim=True)
    shares = (scores - top.where(top > -math.inf, 0.0)).exp()
    total = shares.sum(-1, keepdim=True)
    out = (shares / total.where(total > 0, 1.0)) @ v.to(wide)
    lse = (total.log() + top.where(top > -math.inf, 0.0)).squeeze(-1)
    return out, lse, top.squeeze(-1)
