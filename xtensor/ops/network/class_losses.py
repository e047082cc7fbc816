"""Losses over classes: cross entropy and negative log-likelihood, and margins between classes.

Classes are compared with an iota rather than gathered, so that the gradient is a select and not a scatter. Targets are
checked on a CPU, where reading them costs nothing; on an accelerator a class out of range gives NaN.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import of_tensors
from ...operators.index_bounds import bounds_of, known_bounds, later, readable
from ...operators.schema import Array
from ...tensor import Tensor, array_of, sizes_of
from ...xla.levels import ground
from ..shape.joining import joined_shape
from .losses import check_reduction, legacy, reduced, refuse_gradient, together

__all__ = [
    "cross_entropy",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
]


# ---- targets -------------------------------------------------------------------------------------------------------


def check_classes(target: Tensor, classes: int, ignored: int, error: Any) -> None:
    """Raise `error(value)` for a target outside `[0, classes)` that is not ignored, where values are at hand."""
    array = ground(array_of(target))
    known = known_bounds(array)
    if known is not None and known[1] >= 0 and known[2] < classes:
        return
    if array.dtype.kind not in "iu" or array.size == 0 or not readable(array):
        return
    if isinstance(array, Tracer):
        later(array, lambda values: not wrong_classes(values, classes, ignored).size)
        return
    outside = wrong_classes(array, classes, ignored)
    if outside.size:
        raise error(int(outside[0]))


def wrong_classes(array: Any, classes: int, ignored: int) -> np.ndarray[Any, Any]:
    """The targets that are no class, and not ignored."""
    least, most = bounds_of(array)
    if least >= 0 and most < classes:
        return np.zeros(0)
    values = np.asarray(array).reshape(-1)
    return values[((values < 0) | (values >= classes)) & (values != ignored)]


def out_of_bounds(value: int) -> IndexError:
    return IndexError(f"Target {value} is out of bounds.")


def channel(vector: Any, ndim: int, dtype: Any) -> Any:
    """A vector of one value per class, shaped to broadcast over `(N, C, *)`."""
    return vector.astype(dtype).reshape((1, -1) + (1,) * (ndim - 2))


def chosen(target: Any, shape: Any) -> Any:
    """Whether an element of `(N, C, *)` belongs to the target's class, `(N, *)`."""
    classes = lax.broadcasted_iota(jnp.int32, tuple(shape), 1)
    return classes == jnp.expand_dims(target.astype(jnp.int32), 1)


def poisoned(values: Any, target: Any, classes: int, counted: Any) -> Any:
    """NaN where a target that counts is no class."""
    wrong = counted & ((target < 0) | (target >= classes))
    return jnp.where(wrong, jnp.full_like(values, jnp.nan), values)


def check_target_dtype(target: Any) -> None:
    own = dtype_of(target)
    if own not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {own.scalar_name}")


def check_weight(weight: Any, classes: int, dtype: Any, prefix: str = "") -> None:
    if weight is None:
        return
    if weight.shape != (classes,):
        raise RuntimeError(
            f"{prefix}weight tensor should be defined either for all {classes} classes or no classes but got weight tensor "
            f"of shape: {list(weight.shape)}"
        )
    if not prefix and weight.dtype != dtype:
        names = [dtypes.FROM_NUMPY[np.dtype(d)].scalar_name for d in (dtype, weight.dtype)]
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")


def check_target_shape(input: Any, target: Any) -> None:
    """PyTorch's errors for the shape of class numbers against `(C)`, `(N, C)` or `(N, C, *)`."""
    if input.ndim == 1:
        if target.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.ndim == 1 and target.shape[0] != 1:
            raise ValueError(
                f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}"
            )
        return
    if target.ndim == 0 or input.shape[0] != target.shape[0]:
        got = target.shape[0] if target.ndim else 0
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({got}).")
    if input.ndim == 2 and target.ndim != 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.ndim == 4 and target.ndim == 3 and target.shape[1:] != input.shape[2:]:
        raise RuntimeError(f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)}")
    expected = (input.shape[0], *input.shape[2:])
    if target.shape != expected:
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(target.shape)}")


# ---- negative log-likelihood ---------------------------------------------------------------------------------------


def shares(target: Any, weight: Any, ignored: int, dtype: Any) -> tuple[Any, Any]:
    """By target: the weight of its class, 0 where it is ignored; and whether it counts."""
    counted = target != ignored
    if weight is None or not weight.size:
        return counted.astype(dtype), counted
    of_class = jnp.take(weight.astype(dtype), target.astype(jnp.int32), mode="clip")
    return jnp.where(counted, of_class, jnp.zeros((), dtype)), counted


def reduced_by_share(values: Any, share: Any, reduction: str) -> Any:
    """As `reduced`, the mean by the weight of what counts."""
    return jnp.sum(values) / jnp.sum(share) if reduction == "mean" else reduced(values, reduction)


def likelihood(logs: Any, target: Any, weight: Any, ignored: int, reduction: str) -> Any:
    """The loss of log-probabilities `(N, C, *)` at classes `(N, *)`, reduced."""
    share, counted = shares(target, weight, ignored, logs.dtype)
    picked = -jnp.sum(jnp.where(chosen(target, logs.shape), logs, jnp.zeros_like(logs)), axis=1)
    values = jnp.where(counted, picked * share, jnp.zeros_like(picked))
    return reduced_by_share(poisoned(values, target, logs.shape[1], counted), share, reduction)


@general(autocast="float32", name="nll_loss", derivatives=dict(input=FROM_KERNEL))
def class_likelihood(
    input: Array,
    target: Array,
    weight: Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Array:
    """The negative log-likelihood of classes, reduced."""
    check_reduction(reduction)
    if input.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    check_target_shape(input, target)
    check_target_dtype(target)
    classes = input.shape[0 if input.ndim == 1 else 1]
    check_weight(weight, classes, input.dtype)
    if not jnp.issubdtype(input.dtype, jnp.floating):
        raise checks.not_implemented_for("nll_loss_out_frame", dtype_of(input))
    logs, t = batched(input, target)
    logs = logs.astype(dtypes.compute_type(dtype_of(input)).numpy)
    values = likelihood(logs, t, weight, ignore_index, reduction)
    return shaped(values, input, target, reduction).astype(input.dtype)


def batched(input: Any, target: Any) -> tuple[Any, Any]:
    """Scores and classes with a batch dimension."""
    if input.ndim > 1:
        return input, target
    return input[None], target.reshape((1,))


def shaped(values: Any, input: Any, target: Any, reduction: str) -> Any:
    return values.reshape(target.shape) if reduction == "none" and input.ndim == 1 else values


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of classes `(N, *)` under log-probabilities `(N, C, *)`.

    Differs from PyTorch: on an accelerator a class out of range gives NaN.

    Shape: `input` `(N, C)`, `(C)` or `(N, C, *)`; `target` `(N)`, `()` or `(N, *)`; result `()`, or the
    target's with reduction "none".

    Raises: RuntimeError where sizes do not fit; ValueError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.

    >>> F.nll_loss(xtensor.tensor([[-0.5, -1.0]]), xtensor.tensor([1]))
    tensor(1.)
    """
    reduction = legacy(size_average, reduce, reduction)
    refuse_gradient("nll_loss_forward", "weight", weight)
    result = class_likelihood(input, target, weight, ignore_index, reduction)
    check_classes(target, sizes_of(input)[0 if input.dim() == 1 else 1], ignore_index, out_of_bounds)
    return result


# ---- cross entropy -------------------------------------------------------------------------------------------------


def _entropy_input(
    grads: Any,
    undefined: Any,
    result1: Any,
    result2: Any,
    input_shape: Any,
    target: Array,
    weight: Any,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Array:
    dtype = result2.dtype
    powers, t = result1.astype(dtype), target.reshape(result2.shape)
    classes = powers.shape[1]
    share, counted = shares(t, weight, ignore_index, dtype)
    scale = grads[0].astype(dtype)
    if reduction == "mean":
        scale = scale / jnp.sum(share)
    elif reduction == "none":
        scale = scale.reshape(share.shape)
    hard = scale * share * np.asarray(1 - label_smoothing, dtype)
    probable = hard
    wanted = jnp.where(chosen(t, powers.shape), hard[:, None], jnp.zeros((), dtype))
    if label_smoothing > 0:
        soft = jnp.where(counted, scale * np.asarray(label_smoothing / classes, dtype), jnp.zeros((), dtype))
        of_class = np.ones((), dtype) if weight is None else channel(weight, powers.ndim, dtype)
        probable = hard + soft * (np.asarray(classes, dtype) if weight is None else jnp.sum(of_class))
        wanted = wanted + soft[:, None] * of_class
    # Powers are only ever divided by their sum, so what the choice of the largest score would add cancels.
    each = probable / result2
    if not undefined[2]:
        each = each + grads[2]
    each = each[:, None]
    if not undefined[1]:
        each = each + grads[1].astype(dtype)
    return (powers * each - wanted).reshape(input_shape)


@general(
    autocast="float32", name="cross_entropy", hidden=2, derivatives=dict(input=_entropy_input), copies=True
)
def class_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> tuple[Array, ...]:
    """The cross entropy of logits against classes, reduced.

    Hidden: the exponentials of the differences from the largest logits, as precise as the logits, and their sums.
    """
    check_reduction(reduction)
    check_smoothing(label_smoothing)
    check_logits(input)
    check_target_shape(input, target)
    check_target_dtype(target)
    classes = input.shape[0 if input.ndim == 1 else 1]
    check_weight(weight, classes, input.dtype, "cross_entropy: " if label_smoothing > 0 else "")
    x, t = batched(input, target)
    x = x.astype(dtypes.compute_type(dtype_of(input)).numpy)
    top = jnp.max(x, axis=1, initial=-jnp.inf)
    powers = jnp.exp(x - top[:, None])
    total = jnp.sum(powers, axis=1)
    rest = jnp.log(total)
    share, counted = shares(t, weight, ignore_index, x.dtype)
    zero = jnp.zeros((), x.dtype)
    if classes:
        index = jnp.expand_dims(t.astype(jnp.int32), 1)
        picked = jnp.take_along_axis(x, index, axis=1, mode="clip")[:, 0] - top - rest
    else:
        picked = jnp.zeros_like(rest)
    values = poisoned(jnp.where(counted, -picked * share, zero), t, classes, counted)
    if label_smoothing > 0:
        logs = x - top[:, None] - rest[:, None]
        weighted = logs if weight is None else logs * channel(weight, x.ndim, x.dtype)
        spread = jnp.where(counted, -jnp.sum(weighted, axis=1), zero)
        values = values * (1 - label_smoothing) + spread * (label_smoothing / max(classes, 1))
    values = reduced_by_share(values, share, reduction)
    values = values.reshape(()) if input.ndim == 1 else values
    return values.astype(input.dtype), powers.astype(input.dtype), total


def check_logits(input: Any) -> None:
    if input.ndim == 0:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if not jnp.issubdtype(input.dtype, jnp.floating):
        raise checks.not_implemented_for("log_softmax_lastdim_kernel_impl", dtype_of(input))


def check_smoothing(smoothing: float) -> None:
    if not 0 <= smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {smoothing:g}")


@general(autocast="float32", name="soft_cross_entropy", derivatives=FROM_KERNEL, copies=True)
def soft_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """The cross entropy of logits against class probabilities, reduced."""
    check_reduction(reduction)
    check_logits(input)
    if not jnp.issubdtype(target.dtype, jnp.floating):
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {dtype_of(target).scalar_name}"
        )
    axis = 0 if input.ndim == 1 else 1
    classes = input.shape[axis]
    check_weight(weight, classes, input.dtype, "cross_entropy: ")
    check_smoothing(label_smoothing)
    result = dtypes.promote_types(dtype_of(input), dtype_of(target))
    if weight is not None:
        result = dtypes.promote_types(result, dtype_of(weight))
    wide = dtypes.compute_type(result).numpy
    logs = jax.nn.log_softmax(input.astype(wide), axis=axis)
    wanted = target.astype(wide)
    if label_smoothing > 0:
        wanted = wanted * np.asarray(1 - label_smoothing, wide) + np.asarray(label_smoothing / classes, wide)
    values = logs * wanted
    if weight is not None:
        values = values * weight.astype(wide).reshape([-1 if d == axis else 1 for d in range(input.ndim)])
    values = -jnp.sum(values, axis=axis)
    if reduction != "none":
        count = np.asarray(math.prod(values.shape), wide)
        values = jnp.sum(values) / count if reduction == "mean" else jnp.sum(values)
    return values.astype(result.numpy)


@of_tensors("cross_entropy_loss")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits `(N, C, *)` against classes `(N, *)` or class probabilities `(N, C, *)`.

    Differs from PyTorch: on an accelerator a class out of range gives NaN.

    Shape: `input` `(N, C)`, `(C)` or `(N, C, *)`; `target` `(N)`, `()` or `(N, *)`, or probabilities as the
    input; result `()`, or that of classes with reduction "none".

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; ValueError where sizes do not
    fit; NotImplementedError for complex, bool and integer tensors; IndexError where a target is no class.

    Source: label smoothing: Szegedy et al. 2016, arXiv:1512.00567.

    >>> logits = xtensor.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> F.cross_entropy(logits, xtensor.tensor([0, 2]))
    tensor(0.6691)
    >>> F.cross_entropy(logits, xtensor.tensor([0, 2]), reduction="none")
    tensor([0.2395, 1.0986])
    """
    reduction = legacy(size_average, reduce, reduction)
    if tuple(sizes_of(input)) == tuple(sizes_of(target)) and input.dim():
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return soft_entropy(input, target, weight, reduction, float(label_smoothing))
    refuse_gradient("nll_loss_forward", "weight", weight)
    result = class_entropy(input, target, weight, ignore_index, reduction, float(label_smoothing))
    check_classes(target, sizes_of(input)[0 if input.dim() == 1 else 1], ignore_index, out_of_bounds)
    return result


# ---- margins between classes ---------------------------------------------------------------------------------------


def check_scores(input: Array) -> None:
    if input.ndim > 2 or (input.size == 0 and input.shape[-1:] == (0,)):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )


@general(autocast="float32", name="multi_margin_loss", derivatives=dict(input=FROM_KERNEL))
def class_margin(
    input: Array,
    target: Array,
    weight: Array | None = None,
    p: int = 1,
    margin: float = 1.0,
    reduction: str = "mean",
) -> Array:
    """How far other classes come within the margin of the right one, reduced."""
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    check_scores(input)
    x = input.reshape((1, -1)) if input.ndim < 2 else input
    if target.ndim > 1 or target.size != x.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{x.shape[0]}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    classes = x.shape[1]
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if target.dtype != jnp.int64:
        raise RuntimeError(f"expected scalar type Long but found {dtype_of(target).scalar_name}")
    t = target.reshape(-1)
    own = chosen(t, x.shape)
    zero = jnp.zeros((), x.dtype)
    score = jnp.sum(jnp.where(own, x, zero), axis=1, keepdims=True)
    gap = (margin - score + x).astype(x.dtype)
    values = jnp.where(gap > 0, gap, zero)
    values = jnp.where(own, zero, values * values if p == 2 else values)
    if weight is not None:
        share = jnp.sum(jnp.where(own, weight[None].astype(x.dtype), zero), axis=1, keepdims=True)
        values = values * share
    loss = jnp.sum(values, axis=1) / np.asarray(classes, x.dtype)
    loss = poisoned(loss, t, classes, jnp.ones(t.shape, bool))
    return reduced(loss.reshape(target.shape) if reduction == "none" else loss, reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The hinge loss between the score of the right class and those of the others.

    Shape: `input` `(N, C)` or `(C)`, `target` `(N)` or `()`; result `()`, or `(N)` if not reduced.

    Raises: RuntimeError where sizes do not fit.

    Source: Crammer and Singer 2001, Journal of Machine Learning Research 2.
    """
    reduction = legacy(size_average, reduce, reduction)
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    result = class_margin(input, target, weight, p, float(margin), reduction)
    check_classes(
        target,
        sizes_of(input)[-1] if input.dim() else 1,
        -(2**62),
        lambda _: RuntimeError("target out of range"),
    )
    return result


@general(autocast="float32", name="multilabel_margin_loss", derivatives=dict(input=FROM_KERNEL))
def label_margin(input: Array, target: Array, reduction: str = "mean") -> Array:
    """How far classes that are no labels come within 1 of those that are, reduced."""
    check_reduction(reduction)
    check_scores(input)
    if input.shape != target.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    if target.dtype != jnp.int64:
        raise RuntimeError(f"expected scalar type Long but found {dtype_of(target).scalar_name}")
    x = input.reshape((1, -1)) if input.ndim < 2 else input
    t = target.reshape(x.shape)
    classes = x.shape[1]
    # Labels count up to the first -1.
    valid = jnp.cumsum((t < 0).astype(jnp.int32), axis=1) == 0
    picks = (t[:, :, None] == jnp.arange(classes)[None, None, :]) & valid[:, :, None]
    is_label = jnp.any(picks, axis=1)
    zero = jnp.zeros((), x.dtype)
    scores = jnp.sum(jnp.where(picks, x[:, None, :], zero), axis=2)
    gap = 1 - scores[:, :, None] + x[:, None, :]
    counts = valid[:, :, None] & ~is_label[:, None, :] & (gap > 0)
    loss = jnp.sum(jnp.where(counts, gap, zero), axis=(1, 2)) / np.asarray(classes, x.dtype)
    return reduced(loss.reshape(input.shape[:-1]) if reduction == "none" else loss, reduction)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The hinge loss between the scores of several labels, listed up to the first -1, and those of other classes.

    Shape: `input` and `target` `(N, C)` or `(C)`; result `()`, or `(N)` if not reduced.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.
    """
    reduction = legacy(size_average, reduce, reduction)
    result = label_margin(input, target, reduction)
    check_classes(
        target,
        sizes_of(input)[-1] if input.dim() else 1,
        -1,
        lambda _: RuntimeError("argument #2 'target' is out of range"),
    )
    return result


@general(name="multilabel_soft_margin_loss", derivatives=FROM_KERNEL)
def label_entropy(input: Array, target: Array, weight: Array | None = None, reduction: str = "mean") -> Array:
    """The mean over classes of the logistic loss of every label, reduced."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    if not jnp.issubdtype(input.dtype, jnp.floating):
        raise checks.not_implemented_for("log_sigmoid_cpu", dtype_of(input))
    joined_shape(target.shape, input.shape)
    t, x = together(target, input)
    values = t * jax.nn.softplus(-x) + (1 - t) * jax.nn.softplus(x)
    if weight is not None:
        values = values * weight
    loss = jnp.sum(values, axis=-1) / np.asarray(values.shape[-1], values.dtype)
    return reduced(loss, reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The logistic loss of every label, averaged over the classes.

    Shape: `input` and `target` `(*, C)`; result `()`, or `(*)` if not reduced.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError
    for complex, bool and integer tensors.
    """
    return label_entropy(input, target, weight, legacy(size_average, reduce, reduction))
