"""The operators of torchaudio's extension, `torch.ops.torchaudio.*`, as XLA programs: what its filters, losses and alignment call.

Its own compiled file needs PyTorch's libraries; `torch.ops.load_library` of it gives these.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import checks
from ..ops.create.ingest import from_numpy
from ..tensor import Tensor, array_of, host_array, wrap
from ..xla.cache import bounded
from ..xla.x64 import call, jit

__all__ = [
    "ABOUT",
    "OPERATORS",
    "forced_align",
    "lfilter_core_loop",
    "overdrive_core_loop",
    "rnnt_loss_forward",
]


@jit
def _filter(x: Any, coefficients: Any, start: Any) -> Any:
    """`y[t] = x[t] - sum of coefficients[k] y[t - order + k]` over (batch, channel, time); start: the outputs before the first."""

    def step(before: Any, now: Any) -> tuple[Any, Any]:
        y = now - jnp.einsum("bco,co->bc", before, coefficients[:, :-1], precision=lax.Precision.HIGHEST)
        return jnp.concatenate([before, y[..., None]], -1)[..., 1:], y

    return jnp.moveaxis(lax.scan(step, start, jnp.moveaxis(x, -1, 0))[1], 0, -1)


def lfilter_core_loop(waveform: Tensor, a_coeff_flipped: Tensor, padded_output: Tensor) -> None:
    """Write a recursive filter's outputs behind the `order - 1` values with which `padded_output` begins.

    Shape: `waveform` `(batch, channel, time)`, `a_coeff_flipped` `(channel, order)` whose last column is 1, `padded_output`
    `(batch, channel, time + order - 1)`.
    """
    before = a_coeff_flipped.shape[-1] - 1
    given = [array_of(t.detach()) for t in (waveform, a_coeff_flipped, padded_output[..., :before])]
    padded_output[..., before:] = wrap(call(_filter, *given))


@jit
def _overdriven(wave: Any, driven: Any, last_in: Any, last_out: Any) -> tuple[Any, Any, Any]:
    def step(state: Any, now: Any) -> tuple[Any, Any]:
        held, out = state
        out = now - held + 0.995 * out
        return (now, out), out

    (held, out), outs = lax.scan(step, (last_in, last_out), driven.T)
    return wave * 0.5 + outs.T * 0.75, held, out


def overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor
) -> None:
    """Write SoX's overdrive to `output_waveform`, and to `last_in` and `last_out` what a next piece begins with.

    Shape: `(channel, time)`, the last two `(channel,)`.
    """
    given = [array_of(t.detach()) for t in (waveform, temp, last_in, last_out)]
    for target, made in zip((output_waveform, last_in, last_out), call(_overdriven, *given), strict=True):
        target.copy_(wrap(made))


def _transduced(logits: Any, targets: Any, frames: Any, lengths: Any, blank: int, fused: bool) -> Any:
    """The negative log-likelihood of every sequence of a batch."""
    shares = jax.nn.log_softmax(logits, -1) if fused else logits

    def one(shares: Any, target: Any, frame: Any, length: Any) -> Any:
        skip = shares[:, :, blank]
        emit = jnp.take_along_axis(shares[:, :-1], target[None, :, None].astype(jnp.int32), -1)[..., 0]

        def row(above: Any, now: Any) -> tuple[Any, Any]:
            emitted = now

            def column(left: Any, each: Any) -> tuple[Any, Any]:
                over, cost = each
                found = jnp.logaddexp(over, left + cost)
                return found, found

            rest = lax.scan(column, above[0], (above[1:], emitted))[1]
            found = jnp.concatenate([above[:1], rest])
            return found, found

        never = jnp.full(shares.shape[1], -jnp.inf, shares.dtype).at[0].set(0)
        first, _ = row(never, emit[0])

        def following(before: Any, now: Any) -> tuple[Any, Any]:
            skipped, emitted = now
            found, _ = row(before + skipped, emitted)
            return found, found

        rest = lax.scan(following, first, (skip[:-1], emit[1:]))[1]
        alphas = jnp.concatenate([first[None], rest])
        return -(alphas[frame - 1, length] + skip[frame - 1, length])

    return jax.vmap(one)(shares, targets, frames, lengths)


@bounded(64)
def _rnnt(blank: int, clamp: float, fused: bool) -> Any:
    """The program of losses and gradients."""

    def rnnt(logits: Any, targets: Any, frames: Any, lengths: Any) -> tuple[Any, Any]:
        wide = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
        costs, pull = jax.vjp(lambda x: _transduced(x, targets, frames, lengths, blank, fused), wide)
        (grads,) = pull(jnp.ones_like(costs))
        if clamp > 0:
            grads = jnp.clip(grads, -clamp, clamp)
        return costs.astype(logits.dtype), grads.astype(logits.dtype)

    return jit(rnnt)


def rnnt_loss_forward(
    logits: Tensor,
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    clamp: float = -1.0,
    fused_log_softmax: bool = True,
) -> tuple[Tensor, Tensor]:
    """The transducer's loss of every sequence, and its gradients.

    Shape: `logits` `(batch, frames, targets + 1, classes)`, `targets` `(batch, targets)`; costs `(batch,)`, gradients as `logits`.

    Raises: RuntimeError where sizes do not fit or a target is no class.

    Source: Graves 2012, arXiv:1211.3711.
    """
    checks.check(logits.dim() == 4, "logits must be 4-D (batch, time, target, class)")
    checks.check(targets.dim() == 2, "targets must be 2-D (batch, max target length)")
    batch, _, columns, classes = logits.shape
    checks.check(targets.shape[0] == batch, "batch dimension mismatch between logits and targets")
    checks.check(targets.shape[1] == columns - 1, "output length mismatch between logits and targets")
    checks.check(0 <= blank < classes, "blank must be within [0, logits.shape[-1])")
    given = [array_of(t.detach()) for t in (logits, targets, logit_lengths, target_lengths)]
    costs, grads = call(_rnnt(int(blank), float(clamp), bool(fused_log_softmax)), *given)
    return wrap(costs), wrap(grads)


def forced_align(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    """The likeliest path of a connectionist alignment: a label for every frame; and the probabilities, as they were given.

    Computed on the host, frame by frame.

    Shape: `log_probs` `(1, frames, classes)`, `targets` `(1, length)`; path `(1, frames)`.

    Raises: RuntimeError where there are more labels than frames for them, or several sequences.
    """
    checks.check(log_probs.dim() == 3, "log_probs must be a 3-D tensor")
    checks.check(targets.dim() == 2, "targets must be a 2-D tensor")
    checks.check(
        log_probs.shape[0] == 1, "The batch dimension for log_probs must be 1 at the current version."
    )
    shares = host_array(log_probs.detach())[0].astype(np.float64)
    labels = host_array(targets)[0]
    frames, length = len(shares), len(labels)
    repeats = int((labels[1:] == labels[:-1]).sum())
    checks.check(
        frames >= length + repeats,
        f"targets length is too long for CTC. Found targets length: {length}, log_probs length: {frames}, "
        f"and number of repeats: {repeats}",
    )
    states = np.full(2 * length + 1, blank, labels.dtype)
    states[1::2] = labels
    count = len(states)
    # A label may follow another at once, a blank between them left out.
    jumps = np.zeros(count, bool)
    jumps[3::2] = labels[1:] != labels[:-1]
    best = np.full(count, -np.inf)
    best[:2] = shares[0, states[:2]]
    steps = np.zeros((frames, count), np.int8)
    for t in range(1, frames):
        one = np.concatenate([[-np.inf], best[:-1]])
        two = np.where(jumps, np.concatenate([[-np.inf, -np.inf], best[:-2]])[:count], -np.inf)
        over, next_to = (two > one) & (two > best), (one > best) & (one > two)
        steps[t] = np.where(over, 2, np.where(next_to, 1, 0))
        best = np.where(over, two, np.where(next_to, one, best)) + shares[t, states]
    at = count - 1 if count == 1 or best[-1] > best[-2] else count - 2
    path = np.empty(frames, labels.dtype)
    for t in range(frames - 1, -1, -1):
        path[t] = states[at]
        at -= steps[t, at]
    return from_numpy(path[None]).to(targets.device), log_probs


OPERATORS: dict[str, Any] = {
    "_lfilter_core_loop": lfilter_core_loop,
    "_overdrive_core_loop": overdrive_core_loop,
    "forced_align": forced_align,
    "rnnt_loss_forward": rnnt_loss_forward,
}
ABOUT: dict[str, Any] = {"cuda_version": lambda: None, "is_align_available": lambda: True}
"""What the package asks of its library, `torch.ops._torchaudio`."""
