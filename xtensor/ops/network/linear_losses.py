"""A linear layer and the cross entropy of what it gives, in one: large vocabularies need not have all logits at once."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.schema import Array
from ...tensor import Tensor, sizes_of
from ..linalg.matmul import linear
from .class_losses import cross_entropy
from .losses import check_reduction

__all__ = ["LinearCrossEntropyOptions", "linear_cross_entropy"]

POLICIES = ("auto", "accurate", "balanced", "compact")


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` divides a batch, so that only one part's logits exist at a time.

    batch_chunk_size: rows in a part. chunking_method: "auto", "aspect_ratio" or "aspect_ratio:N" chooses it from the
    shapes; None takes `batch_chunk_size`. allow_retain_graph, acc_policy, acc_dtype: PyTorch's; sums are float32 or
    wider here, and a graph can always be retained.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: dtypes.dtype | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, found, factor = self.chunking_method.partition(":")
            factor = factor if found else "1"
            if not (name == "aspect_ratio" and factor.isdigit() and int(factor) > 0):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if not (size is None or (isinstance(size, int) and size > 0)):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")


def chunk_size(options: Any, rows: int, features: int, classes: int) -> int:
    """How many rows have their logits at a time."""
    wanted = options.batch_chunk_size
    method = options.chunking_method
    if method == "auto":
        method = "aspect_ratio:2" if wanted is None else None
    if method is None:
        return max(1, min(wanted or rows, rows))
    factor = int(method.partition(":")[2] or "1")
    target = -(-rows // max(1, -(-classes // features)))
    found = max(1, min((1 << max(target - 1, 0).bit_length()) // factor, rows))
    if wanted is not None and wanted != found:
        raise ValueError(
            f"batch_chunk_size (={wanted}) and chunking_method ('{method}') give different chunk sizes ({wanted} vs "
            f"{found}); pass only one."
        )
    return found


@general(name="linear_cross_entropy", derivatives=FROM_KERNEL)
def chunked_losses(
    input: Array,
    linear_weight: Array,
    target: Array,
    linear_bias: Array | None,
    weight: Array | None,
    ignore_index: int,
    rows_at_a_time: int,
) -> tuple[Array, ...]:
    """Every row's loss, and the weight of its class, computed for some rows at a time, in the backward pass again."""
    wide = dtypes.compute_type(dtype_of(input)).numpy
    count, classes = input.shape[0], linear_weight.shape[0]
    parts = -(-count // rows_at_a_time)
    extra = parts * rows_at_a_time - count
    x = jnp.pad(input, ((0, extra), (0, 0))).reshape((parts, rows_at_a_time, input.shape[1]))
    labels = jnp.pad(target, (0, extra), constant_values=ignore_index).reshape((parts, rows_at_a_time))
    scale = None if weight is None else weight.astype(wide)

    @jax.checkpoint
    def part(rows: Any, wanted: Any) -> tuple[Any, Any]:
        logits = jnp.matmul(rows.astype(wide), linear_weight.astype(wide).T, precision=lax.Precision.HIGHEST)
        if linear_bias is not None:
            logits = logits + linear_bias.astype(wide)
        used = wanted != ignore_index
        at = jnp.where(used, jnp.clip(wanted, 0, classes - 1), 0)
        top = lax.stop_gradient(jnp.max(logits, axis=1, keepdims=True))
        total = jnp.log(jnp.sum(jnp.exp(logits - top), axis=1)) + top[:, 0]
        lost = total - jnp.take_along_axis(logits, at[:, None], axis=1)[:, 0]
        share = jnp.ones((), wide) if scale is None else scale[at]
        zero = jnp.zeros_like(lost)
        return jnp.where(used, lost * share, zero), jnp.where(used, jnp.broadcast_to(share, lost.shape), zero)

    losses, shares = lax.map(lambda both: part(*both), (x, labels))
    return losses.reshape(-1)[:count], shares.reshape(-1)[:count]


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target, ...)`.

    Shape: `input` `(N, D)`, `linear_weight` `(C, D)`, `target` `(N)`; result `()`, or `(N)` if not reduced.
    `input` is `(in,)` or `(N, in)`, `linear_weight` `(C, *, in)`. `options` (`LinearCrossEntropyOptions`) computes the
    logits of some rows at a time, in the backward pass again.
    Differs from PyTorch: with `options` there are second derivatives too (PyTorch takes the first ones as constants).

    Raises: RuntimeError where sizes do not fit; ValueError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.
    """
    check_shapes(input, linear_weight, linear_bias)
    classes, *features, width = sizes_of(linear_weight)
    lead = tuple(sizes_of(input))[:-1]
    logits_shape = (*lead, classes, *features)
    if tuple(sizes_of(target)) == logits_shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    if options is not None:
        plain = not features and label_smoothing == 0.0 and target.dtype is dtypes.int64
        if plain and reduction in ("mean", "sum", "none"):
            return in_chunks(
                input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options
            )
        checks.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
            "label_smoothing == 0, target.dtype == int64, out_features == (). Got "
            f"reduction={reduction!r}, label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
            f"out_features={tuple(features)}.",
        )
    if features:
        linear_weight = linear_weight.reshape((math.prod(features) * classes, width))
        if linear_bias is not None:
            linear_bias = linear_bias.reshape(math.prod(features) * classes)
    logits = linear(input, linear_weight, linear_bias).reshape(logits_shape)
    return cross_entropy(
        logits,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )


def check_shapes(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> None:
    """PyTorch's errors for the shapes of `linear_cross_entropy`."""
    shape, table = tuple(sizes_of(input)), tuple(sizes_of(linear_weight))
    if len(shape) not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {len(shape)}")
    if len(table) < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {len(table)}")
    if shape[-1] != table[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{shape[-1]} and {table[-1]}, respectively"
        )
    if linear_bias is not None and tuple(sizes_of(linear_bias)) != table[:-1]:
        raise RuntimeError(f"expected linear_bias shape {table[:-1]}, got {tuple(sizes_of(linear_bias))}")
    if len(table) > 2 and len(shape) == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {table} requires batched input, (N, {shape[-1]}), got "
            f"unbatched input with shape {shape}"
        )


def in_chunks(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    options: Any,
) -> Tensor:
    check_reduction(reduction)
    single = input.dim() == 1
    if single:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    rows, features = sizes_of(input)
    size = chunk_size(options, rows, features, sizes_of(linear_weight)[0])
    losses, shares = chunked_losses(input, linear_weight, target, linear_bias, weight, ignore_index, size)
    if reduction == "none":
        found = losses.squeeze(0) if single else losses
    elif reduction == "sum":
        found = losses.sum()
    else:
        found = losses.sum() / shares.sum()
    return found.to(input.dtype)
