"""Recurrent layers with integer weights, whose inputs and states are quantised as they come: one program for all steps.

Each step multiplies a state by its own limits, over all sequences that have that step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import checks
from ..ops.create.ingest import from_numpy
from ..ops.index.indexing import index_put
from ..ops.shape.joining import cat, stack
from ..tensor import Tensor, array_of, wrap
from ..xla.cache import bounded
from ..xla.x64 import call, jit
from .layout import QuantizedTensor
from .packed import ScriptObject
from .products import bias_of, dynamic_linear, held_by

__all__ = ["cell", "layers"]

Array = Any


def lstm_step(ih: Array, hh: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
    enter, forget, new, leave = jnp.split(ih + hh, 4, -1)
    held = jax.nn.sigmoid(forget) * state[1] + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jax.nn.sigmoid(leave) * jnp.tanh(held), held


def gru_step(ih: Array, hh: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
    (reset_i, keep_i, new_i), (reset_h, keep_h, new_h) = jnp.split(ih, 3, -1), jnp.split(hh, 3, -1)
    keep = jax.nn.sigmoid(keep_i + keep_h)
    new = jnp.tanh(new_i + jax.nn.sigmoid(reset_i + reset_h) * new_h)
    return ((state[0] - new) * keep + new,)


STEPS: dict[str, Callable[..., tuple[Array, ...]]] = {
    "lstm": lstm_step,
    "gru": gru_step,
    "rnn_tanh": lambda ih, hh, state: (jnp.tanh(ih + hh),),
    "rnn_relu": lambda ih, hh, state: (jnp.maximum(ih + hh, 0),),
}


def product(x: Array, weight: tuple[Any, ...], bias: Array, reduce_range: bool | None) -> Array:
    """A linear layer of a weight of 8 bits, or of a real one where `reduce_range` is None."""
    if reduce_range is None:
        return x @ weight[0].T + bias
    held, scale, point = weight
    return dynamic_linear(x, held, scale, point, bias, reduce_range)


@bounded(64)
def running(kind: str, reduce_range: bool | None, reverse: bool, ragged: bool) -> Any:
    """A program from inputs (T, B, in), states and weights to outputs (T, B, hidden) and last states.

    ragged: sequences end before T; `alive` (T, B, 1) says which have a step.
    """
    step = STEPS[kind]

    def run(x: Any, alive: Any, state: Any, ih: Any, ih_bias: Any, hh: Any, hh_bias: Any) -> Any:
        given = product(x, ih, ih_bias, reduce_range)

        def advance(state: Any, at: Any) -> Any:
            given, alive = at
            # The limits of a step are those of the sequences that have it; zeros widen none.
            seen = state[0] * alive if ragged else state[0]
            new = step(given, product(seen, hh, hh_bias, reduce_range), state)
            if ragged:
                new = tuple([jnp.where(alive > 0, n, s) for n, s in zip(new, state, strict=True)])
            return new, new[0] * alive if ragged else new[0]

        state, outputs = lax.scan(advance, state, (given, alive), reverse=reverse)
        return outputs, state

    return jit(run)


@bounded(16)
def stepping(kind: str, reduce_range: bool | None) -> Any:
    """A program of one step: inputs (B, in), states and weights to new states."""

    def advance(x: Any, state: Any, ih: Any, ih_bias: Any, hh: Any, hh_bias: Any) -> Any:
        given = product(x, ih, ih_bias, reduce_range)
        return STEPS[kind](given, product(state[0], hh, hh_bias, reduce_range), state)

    return jit(advance)


def halves(ih: ScriptObject, hh: ScriptObject) -> tuple[Any, ...]:
    """Weights and biases of both parts of a cell, as a program takes them."""
    found: list[Any] = []
    for part in (ih, hh):
        weight, bias = part.unpack()
        held = held_by(weight) if isinstance(weight, QuantizedTensor) else (array_of(weight),)
        found += [held, bias_of(bias)]
    return tuple(found)


def cell(
    kind: str, x: Tensor, state: Sequence[Tensor], ih: ScriptObject, hh: ScriptObject
) -> tuple[Tensor, ...]:
    """The states after one step of inputs (B, in)."""
    reduce_range = True if isinstance(ih.unpack()[0], QuantizedTensor) else None
    states = tuple([array_of(s.detach()) for s in state])
    made = call(stepping(kind, reduce_range), array_of(x.detach()), states, *halves(ih, hh))
    return tuple(map(wrap, made))


def layers(
    kind: str,
    x: Tensor,
    state: Sequence[Tensor],
    params: Sequence[ScriptObject],
    num_layers: int,
    dropout: Callable[[Tensor], Tensor] | None = None,
    bidirectional: bool = False,
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Outputs and last states of stacked layers of inputs (T, B, in), or (sum, in) where there are batch sizes.

    state: one or two tensors (layers * directions, B, hidden).
    """
    directions = 2 if bidirectional else 1
    checks.check(len(params) == num_layers * directions, "one packed parameter for each layer and direction")
    alive, index = None, None
    if batch_sizes is not None:
        sizes = np.asarray(batch_sizes.tolist())
        mask = np.arange(sizes[0])[None, :] < sizes[:, None]
        index = tuple([from_numpy(i) for i in mask.nonzero()])
        alive = mask.astype(np.float32)[:, :, None]
        x = padded(x, index, mask.shape)
    last: list[list[Tensor]] = [[] for _ in state]
    for layer in range(num_layers):
        outputs: list[Tensor] = []
        for direction in range(directions):
            place = layer * directions + direction
            kind_of, *_, ranges, parts = params[place].__getstate__()[0]
            reduce_range = None if kind_of == "quantized_fp16" else bool(ranges[0])
            program = running(kind, reduce_range, direction == 1, alive is not None)
            states = tuple([array_of(s[place].detach()) for s in state])
            given = np.ones((x.shape[0], 1, 1), np.float32) if alive is None else alive
            made, ended = call(program, array_of(x.detach()), given, states, *halves(*parts))
            outputs.append(wrap(made))
            for held, new in zip(last, ended, strict=True):
                held.append(wrap(new))
        x = cat(outputs, -1) if bidirectional else outputs[0]
        if dropout is not None and layer < num_layers - 1:
            x = dropout(x)
    return (x if index is None else x[index]), [stack(held) for held in last]


def padded(data: Tensor, index: tuple[Tensor, ...], shape: tuple[int, ...]) -> Tensor:
    """The elements (sum, in) of sequences as (T, B, in), zero where a sequence has none."""
    blank = data.new_zeros((*shape, data.shape[1]))
    return index_put(blank, index, data.detach())
