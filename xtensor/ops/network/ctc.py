"""Connectionist temporal classification (Graves et al., 2006): the likelihood of a labelling, over all alignments.

The forward variables of the labels with blanks between them are carried through time by one scan, in log space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.index_bounds import readable
from ...operators.schema import Array
from ...tensor import Tensor, array_of, sizes_of
from ..create.ingest import tensor
from ..create.ranges import arange
from .losses import check_reduction

__all__ = ["ctc_loss"]

BUCKET = 16  # concatenated targets are padded to multiples of this length, so that few programs are compiled

# The function that PyTorch's errors name.
CHECKING = "ctc_loss_allocate_outputs"


def log_sum(*values: Any) -> Any:
    """log(exp(a) + exp(b) + ...), minus infinity where all are; its gradient holds no NaN."""
    top = values[0]
    for v in values[1:]:
        top = jnp.maximum(top, v)
    impossible = top == -jnp.inf
    top = lax.stop_gradient(jnp.where(impossible, jnp.zeros_like(top), top))
    total: Any = jnp.zeros_like(top)
    for v in values:
        total = total + jnp.exp(v - top)
    return jnp.where(impossible, -jnp.inf, jnp.log(jnp.where(impossible, 1, total)) + top)


def negative_log_likelihood(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int
) -> Any:
    """`(T, N, C)` log probabilities and `(N, S)` targets to the `(N,)` losses; infinite where no alignment exists."""
    length, count, classes = log_probs.shape
    width = 2 * targets.shape[1] + 1
    labels = jnp.full((count, width), blank, jnp.int32)
    labels = labels.at[:, 1::2].set(jnp.clip(targets.astype(jnp.int32), 0, classes - 1))
    every = jnp.take_along_axis(log_probs, jnp.broadcast_to(labels[None], (length, count, width)), axis=2)
    low = jnp.asarray(-jnp.inf, log_probs.dtype)
    place = jnp.arange(width)
    # A label may follow the one before its blank, unless that is the same.
    skips = (place >= 2) & (place % 2 == 1) & (labels != jnp.roll(labels, 2, axis=1))
    begin = (place < 1) | ((place == 1) & (target_lengths[:, None] > 0))
    first = jnp.where(begin, every[0], low)

    def behind(alpha: Any, n: int) -> Any:
        return jnp.pad(alpha, ((0, 0), (n, 0)), constant_values=-jnp.inf)[:, :width]

    def step(alpha: Any, now: Any) -> tuple[Any, None]:
        time, emitted = now
        two = jnp.where(skips, behind(alpha, 2), low)
        fresh = log_sum(alpha, behind(alpha, 1), two) + emitted
        return jnp.where((time < input_lengths)[:, None], fresh, alpha), None

    alpha, _ = lax.scan(step, first, (jnp.arange(1, length), every[1:]))
    last = 2 * target_lengths.astype(jnp.int32)[:, None]
    fits = (target_lengths >= 0) & (last[:, 0] < width) & (input_lengths >= 0) & (input_lengths <= length)
    ends = jnp.take_along_axis(alpha, last, axis=1)[:, 0]
    before = jnp.take_along_axis(alpha, jnp.maximum(last - 1, 0), axis=1)[:, 0]
    found = -log_sum(ends, jnp.where(target_lengths > 0, before, low))
    nothing = jnp.where(target_lengths == 0, jnp.zeros((), found.dtype), jnp.asarray(jnp.inf, found.dtype))
    return jnp.where(fits, jnp.where(input_lengths == 0, nothing, found), jnp.nan)


def _log_probs_grad(
    grad: Array,
    log_probs: Array,
    targets: Array,
    input_lengths: Array,
    target_lengths: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    """Probability minus posterior, as PyTorch has it: the gradient of what `log_softmax` is applied to."""

    def losses(x: Any) -> Any:
        return negative_log_likelihood(x, targets, input_lengths, target_lengths, blank)

    found, pull = jax.vjp(losses, log_probs)
    impossible = lax.stop_gradient(jnp.isinf(found))
    (minus_posterior,) = pull(jnp.where(impossible, jnp.zeros_like(found), jnp.ones_like(found)))
    time = jnp.arange(log_probs.shape[0])[:, None, None]
    inside = time < input_lengths[None, :, None]
    each = jnp.where(inside, jnp.exp(log_probs) + minus_posterior, jnp.zeros((), log_probs.dtype))
    fill = jnp.asarray(0 if zero_infinity else jnp.nan, log_probs.dtype)
    each = jnp.where(impossible[None, :, None] & inside, fill, each)
    return each * grad[None, :, None]


@general(
    autocast=dict(cpu="float32"), name="ctc_loss", node="CtcLoss", derivatives=dict(log_probs=_log_probs_grad)
)
def ctc_losses(
    log_probs: Array,
    targets: Array,
    input_lengths: Array,
    target_lengths: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    """The loss of every sequence of the batch."""
    own = dtype_of(log_probs)
    if own not in (dtypes.float32, dtypes.float64):
        raise checks.not_implemented_for("ctc_loss_cpu", own)
    found = negative_log_likelihood(log_probs, targets, input_lengths, target_lengths, blank)
    return jnp.where(jnp.isinf(found), jnp.zeros_like(found), found) if zero_infinity else found


def host(values: Any) -> np.ndarray[Any, Any] | None:
    """Lengths as an array on the host, one transfer where they are on an accelerator; None of a tensor that is traced."""
    given = array_of(values) if isinstance(values, Tensor) else values
    return None if isinstance(given, Tracer) else np.asarray(given, np.int64).reshape(-1)


def check_lengths(name: str, lengths: Any, found: Any, count: int, low: int, high: int | None) -> None:
    """PyTorch's errors for lengths; of those that are traced (`found` is None) for their number alone."""
    where = f"(while checking arguments for {CHECKING})"
    if (lengths.numel() if found is None else found.size) != count:
        raise RuntimeError(f"{name} must be of size batch_size")
    if found is not None and (found < low).any():
        raise RuntimeError(
            f"Expected {name} to have value at least {low}, but got value {found[found < low][0]} {where}"
        )
    if found is not None and high is not None and (found > high).any():
        raise RuntimeError(
            f"Expected {name} to have value at most {high}, but got value {found[found > high][0]} {where}"
        )


def on_device(lengths: Any, found: np.ndarray[Any, Any] | None, device: Any) -> Tensor:
    """Lengths as a tensor, those that were found on the host as constants of a trace."""
    if found is None:
        return lengths.reshape(-1).to(device, dtypes.int64)
    return tensor(found.tolist(), dtype=dtypes.int64, device=device)


def traced_targets(targets: Tensor, lengths: Tensor) -> Tensor:
    """`padded_targets` within a trace: rows as long as all targets together."""
    width = targets.numel()
    if not width:
        return targets.new_zeros((lengths.numel(), 1))
    begin = lengths.cumsum(0) - lengths
    places = begin.unsqueeze(1) + arange(width, device=lengths.device)
    return targets[places.clamp_max(width - 1)]


def padded_targets(targets: Tensor, lengths: np.ndarray[Any, Any]) -> Tensor:
    """Concatenated targets as a table with one row for every sequence."""
    where = f"for argument #2 'targets' (while checking arguments for {CHECKING})"
    if targets.numel() != lengths.sum():
        raise RuntimeError(
            f"Expected tensor to have size {lengths.sum()} at dimension 0, but got size {targets.numel()} {where}"
        )
    width = -(-int(lengths.max(initial=0)) // BUCKET) * BUCKET
    begin = np.cumsum(lengths) - lengths
    place = np.minimum(begin[:, None] + np.arange(width), max(targets.numel() - 1, 0))
    if not targets.numel():
        return targets.new_zeros((len(lengths), width))
    return targets[tensor(place, device=targets.device)]


def check_labels(targets: Tensor, lengths: np.ndarray[Any, Any], classes: int) -> None:
    """An error for targets that name no class, where looking at them costs no transfer."""
    array = array_of(targets)
    if not isinstance(array, Tracer) and readable(array):
        values = np.asarray(array)
        used = values[np.arange(values.shape[1]) < lengths[:, None]]
        if ((used < 0) | (used >= classes)).any():
            raise RuntimeError("targets must be in label range")


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The CTC loss of log probabilities `(T, N, C)` for `targets` `(N, S)`, or concatenated into one dimension.

    Shape: `log_probs` `(T, N, C)`, `targets` `(N, S)` or one after another, lengths `(N)`; result `()`, or
    `(N)` if not reduced.
    `mean` divides each loss by its target's length first. `zero_infinity` makes the loss of what has no alignment, and
    its gradient, zero. The lengths are read on the host; within a program (`compile`, `export`, `jax.jit`) they are not, and the
    loss of a sequence with lengths that do not fit is NaN.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for complex, bool and integer tensors.

    Source: Graves et al. 2006, International Conference on Machine Learning.
    """
    reduction = {0: "none", 1: "mean", 2: "sum"}.get(reduction, reduction)  # pyright: ignore[reportArgumentType, reportCallIssue]
    check_reduction(reduction)
    where = f"(while checking arguments for {CHECKING})"
    shape = tuple(sizes_of(log_probs))
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if isinstance(lengths, Tensor) and (lengths.is_floating_point() or lengths.is_complex()):
            raise RuntimeError(f"{name} must be integral")
    single = len(shape) == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
        shape = tuple(sizes_of(log_probs))
    if 0 in shape:
        raise RuntimeError("log_probs tensor must not be empty")
    checks.check_dim(CHECKING, checks.Argument(log_probs, "log_probs", 1), 3)
    checks.check_dim_range(CHECKING, checks.Argument(targets, "targets", 2), 1, 2)
    steps, count, classes = shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    inputs, labels = host(input_lengths), host(target_lengths)
    check_lengths("input_lengths", input_lengths, inputs, count, 0, steps)
    check_lengths("target_lengths", target_lengths, labels, count, 0, None)
    lengths = [
        on_device(x, found, log_probs.device)
        for x, found in ((input_lengths, inputs), (target_lengths, labels))
    ]
    if targets.dim() == 1:
        if labels is None or isinstance(array_of(targets), Tracer):
            targets = traced_targets(targets, lengths[1])
        else:
            targets = padded_targets(targets, labels)
    else:
        longest = 0 if labels is None else int(labels.max(initial=0))
        for d, least in ((0, count), (1, longest)):
            size = sizes_of(targets)[d]
            if size < least or (d == 0 and size != least):
                exactly = f"{least}" if d == 0 else f"at least {least}"
                raise RuntimeError(
                    f"Expected tensor to have size {exactly} at dimension {d}, but got size {size} for argument #2 "
                    f"'targets' {where}"
                )
    if labels is not None:
        check_labels(targets, labels, classes)
    losses = ctc_losses(log_probs, targets, *lengths, blank, zero_infinity)
    if reduction == "mean":
        return (losses / lengths[1].clamp_min(1).to(losses.dtype)).mean()
    if reduction == "sum":
        return losses.sum()
    return losses.squeeze(0) if single else losses
