"""Recurrent layers: Elman, LSTM and GRU cells, and whole stacks of layers over sequences as one compiled scan each.

Gates are stacked in the weights as PyTorch stacks them: input, forget, cell, output (LSTM); reset, update, new (GRU).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...engine import modes
from ...operators.attach import named
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL, rules_of
from ...operators.functions.overloads import unfit_call
from ...operators.schema import Array, Arrays
from ...tensor import Tensor, asks_grad
from ..linalg.matmul import product
from ..shape.joining import cat, stack

__all__ = [
    "gru",
    "gru_cell",
    "lstm",
    "lstm_cell",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
]


# ---- one step -------------------------------------------------------------------------------------------------------


def relu(x: Any) -> Any:
    """Zero below zero, with PyTorch's derivative 0 at zero."""
    return jnp.where(x > 0, x, 0)


def advance(mode: str, of_input: Any, of_hidden: Any, hidden: Any, cell: Any) -> tuple[Any, Any, list[Any]]:
    """The next hidden (and cell) state from both products with their biases added, and what `retreat` needs of the step."""
    if mode == "LSTM":
        i, f, g, o = jnp.split(of_input + of_hidden, 4, -1)
        i, f, g, o = jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)
        cell = f * cell + i * g
        return o * jnp.tanh(cell), cell, [i, f, g, o]
    if mode == "GRU":
        ri, zi, ni = jnp.split(of_input, 3, -1)
        rh, zh, nh = jnp.split(of_hidden, 3, -1)
        r, z = jax.nn.sigmoid(ri + rh), jax.nn.sigmoid(zi + zh)
        n = jnp.tanh(ni + r * nh)
        return (hidden - n) * z + n, cell, [r, z, n, nh]
    activation = jnp.tanh if mode == "RNN_TANH" else relu
    made = activation(of_input + of_hidden)
    return made, cell, [made]


def retreat(
    mode: str,
    to_hidden: Any,
    to_cell: Any,
    to_made: list[Any] | None,
    made: list[Any],
    hidden: Any,
    cell: Any,
    new_cell: Any = None,
) -> tuple[Any, Any, Any, Any]:
    """The gradients of both products, of the hidden state as far as it does not enter the second, and of the cell state.

    to_hidden, to_cell: the gradients of the next states; made: what `advance` gave for this; to_made: the gradients of that,
    in a second derivative.
    """

    def also(gradient: Any, number: int) -> Any:
        return gradient if to_made is None else gradient + to_made[number]

    if mode == "LSTM":
        i, f, g, o = made
        squashed = jnp.tanh(new_cell)
        to_cell = to_cell + to_hidden * o * (1 - squashed * squashed)
        parts = [
            also(to_cell * g, 0) * i * (1 - i),
            also(to_cell * cell, 1) * f * (1 - f),
            also(to_cell * i, 2) * (1 - g * g),
            also(to_hidden * squashed, 3) * o * (1 - o),
        ]
        to_gates = jnp.concatenate(parts, -1)
        return to_gates, to_gates, None, to_cell * f
    if mode == "GRU":
        r, z, n, nh = made
        to_n = also(to_hidden * (1 - z), 2) * (1 - n * n)
        to_z = also(to_hidden * (hidden - n), 1) * z * (1 - z)
        to_r = also(to_n * nh, 0) * r * (1 - r)
        of_hidden = jnp.concatenate([to_r, to_z, also(to_n * r, 3)], -1)
        return jnp.concatenate([to_r, to_z, to_n], -1), of_hidden, to_hidden * z, None
    (new,) = made
    to_both = to_hidden * (1 - new * new) if mode == "RNN_TANH" else jnp.where(new > 0, to_hidden, 0)
    return to_both, to_both, None, None


def flat(x: Any) -> Any:
    """(L, N, I) as (L N, I)."""
    return x.reshape(-1, x.shape[-1])


def affine(x: Any, weight: Any, bias: Any) -> Any:
    """`x @ weight.T + bias`; of (L, N, I) as one product of rows, for XLA's CPU products of three dimensions are slower."""
    made = product(flat(x), weight.T).reshape(*x.shape[:-1], -1) if x.ndim == 3 else product(x, weight.T)
    return made if bias is None else made + bias


def check_cell(input: Any, hidden: Any, w_ih: Any, w_hh: Any, number: int) -> None:
    """PyTorch's errors for the sizes of a cell's arguments."""
    if input.shape[-1] != w_ih.shape[1]:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input.shape[-1]} expected {w_ih.shape[1]}"
        )
    if hidden.shape[-1] != w_hh.shape[1]:
        raise RuntimeError(
            f"hidden{number} has inconsistent hidden_size: got {hidden.shape[-1]}, expected {w_hh.shape[1]}"
        )
    if input.shape[0] != hidden.shape[0]:
        raise RuntimeError(
            f"Input batch size {input.shape[0]} doesn't match hidden{number} batch size {hidden.shape[0]}"
        )


CELL = "input hx w_ih w_hh b_ih b_hh"


def to_weights(to_input: Any, to_hidden: Any, input: Any, hidden: Any) -> tuple[Any, Any, Any, Any]:
    """The gradients of weights and biases, from those of both products."""
    b_ih = jnp.sum(to_input, 0)
    b_hh = b_ih if to_hidden is to_input else jnp.sum(to_hidden, 0)
    return over_rows(to_input, input), over_rows(to_hidden, hidden), b_ih, b_hh


ROWS = 128
"""From so many rows on a product over them is faster with its smaller operand transposed in memory: 0.4 to 0.85 of the time on a CPU."""


def over_rows(a: Any, b: Any) -> Any:
    """`a.T @ b`: XLA's CPU backend has no library product for it, but for one whose first operand lies as it is read."""
    if a.shape[0] < ROWS:
        return product(a.T, b)
    return lax.optimization_barrier(product(lax.optimization_barrier(b.T), a)).T


def one_state_cell(mode: str, autocast: Any, what: str) -> Any:
    """The operator that is one step of a cell with one state."""
    gated = mode == "GRU"

    def gradients(
        grads: Any, undefined: Any, made: Any, input: Any, hx: Any, w_ih: Any, w_hh: Any
    ) -> tuple[Any, ...]:
        to_made = jnp.split(grads[1], 4, -1) if gated and not undefined[1] else None
        parts = jnp.split(made, 4, -1) if gated else [made]
        to_input, to_hidden, direct, _ = retreat(mode, grads[0], None, to_made, parts, hx, None)
        to_hx = product(to_hidden, w_hh)
        to_hx = to_hx if direct is None else to_hx + direct
        return product(to_input, w_ih), to_hx, *to_weights(to_input, to_hidden, input, hx)

    def of_gates(
        grads: Any, undefined: Any, result1: Any, input: Any, hx: Any, w_ih: Any, w_hh: Any
    ) -> tuple[Any, ...]:
        return gradients(grads, undefined, result1, input, hx, w_ih, w_hh)

    def of_result(
        grads: Any, undefined: Any, result: Any, input: Any, hx: Any, w_ih: Any, w_hh: Any
    ) -> tuple[Any, ...]:
        return gradients(grads, undefined, result, input, hx, w_ih, w_hh)

    def cell(
        input: Array,
        hx: Array,
        w_ih: Array,
        w_hh: Array,
        b_ih: Array | None = None,
        b_hh: Array | None = None,
    ) -> Any:
        check_cell(input, hx, w_ih, w_hh, 0)
        hidden, _, made = advance(mode, affine(input, w_ih, b_ih), affine(hx, w_hh, b_hh), hx, None)
        return (hidden, jnp.concatenate(made, -1)) if gated else hidden

    cell.__annotations__["return"] = "tuple[Array, ...]" if gated else "Array"
    doc = f"The next hidden state (N, H) of {what}, from input (N, I) and hidden state (N, H)."
    named(cell, f"{mode.lower()}_cell", doc)
    rules = rules_of(CELL, of_gates if gated else of_result)
    return general(autocast=autocast, hidden=int(gated), derivatives=rules)(cell)


rnn_tanh_cell = one_state_cell("RNN_TANH", "short", "an Elman cell with tanh")
rnn_relu_cell = one_state_cell("RNN_RELU", "short", "an Elman cell with ReLU")
gru_cell = one_state_cell("GRU", dict(accelerator="short"), "a gated recurrent unit")


def _lstm_gradients(
    grads: Any, undefined: Any, result1: Any, result2: Any, input: Any, hx: Any, w_ih: Any, w_hh: Any
) -> tuple[Any, ...]:
    hidden, cell = hx
    to_made = None if undefined[2] else jnp.split(grads[2], 4, -1)
    made = jnp.split(result2, 4, -1)
    to_gates, _, _, to_cell = retreat("LSTM", grads[0], grads[1], to_made, made, hidden, cell, result1)
    states = [product(to_gates, w_hh), to_cell]
    return product(to_gates, w_ih), states, *to_weights(to_gates, to_gates, input, hidden)


@general(autocast=dict(accelerator="short"), hidden=1, derivatives=rules_of(CELL, _lstm_gradients))
def lstm_cell(
    input: Array,
    hx: Arrays,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None = None,
    b_hh: Array | None = None,
) -> tuple[Array, Array, Array]:
    """The next hidden and cell state (N, H) of a long short-term memory, from input (N, I) and both states.

    Hidden: the gates (N, 4 H), which the derivatives need.
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    hidden, cell = hx
    check_cell(input, hidden, w_ih, w_hh, 0)
    check_cell(input, cell, w_ih, w_hh, 1)
    new, cell, made = advance("LSTM", affine(input, w_ih, b_ih), affine(hidden, w_hh, b_hh), hidden, cell)
    return new, cell, jnp.concatenate(made, -1)


# ---- whole sequences ------------------------------------------------------------------------------------------------


def padded_places(batch_sizes: Any, batch: int) -> tuple[Any, Any]:
    """Where each (time, sample) lies in packed data, and whether it does."""
    starts = jnp.cumsum(batch_sizes) - batch_sizes
    sample = jnp.arange(batch)[None, :]
    inside = sample < batch_sizes[:, None]
    return jnp.where(inside, starts[:, None] + sample, 0), inside


def packed_places(batch_sizes: Any, total: int) -> tuple[Any, Any]:
    """The time and the sample of each row of packed data."""
    row = jnp.arange(total)
    ends = jnp.cumsum(batch_sizes)
    time = jnp.sum(row[:, None] >= ends[None, :], 1)
    return time, row - (ends - batch_sizes)[time]


def scan_layer(
    mode: str,
    x: Any,
    hidden: Any,
    cell: Any,
    weights: dict[str, Any],
    inside: Any,
    reverse: bool,
    keep: bool = False,
) -> Any:
    """One direction of one layer over (L, N, I): outputs, last hidden and cell state, and to `keep` the gates and cell states.

    `inside` masks padding.
    """
    of_inputs = affine(x, weights["ih"], weights["b_ih"])

    def step(state: Any, now: Any) -> Any:
        h, c = state
        of_input, valid = now
        new_h, new_c, made = advance(mode, of_input, affine(h, weights["hh"], weights["b_hh"]), h, c)
        if weights["hr"] is not None:
            new_h = product(new_h, weights["hr"].T)
        if valid is not None:
            new_h = jnp.where(valid[:, None], new_h, h)
            new_c = None if new_c is None else jnp.where(valid[:, None], new_c, c)
        gates = jnp.concatenate(made, -1) if keep and len(made) > 1 else None
        return (new_h, new_c), (new_h, gates, new_c if keep else None)

    (hidden, cell), (outputs, gates, cells) = lax.scan(
        step, (hidden, cell), (of_inputs, inside), reverse=reverse
    )
    return outputs, hidden, cell, gates, cells


def split_weights(weights: Sequence[Any], biases: bool, projects: bool) -> list[dict[str, Any]]:
    """The weights of every layer and direction by name."""
    size = 2 + 2 * biases + projects
    made = []
    for i in range(0, len(weights), size):
        own = list(weights[i : i + size])
        pair = own[2:4] if biases else [None, None]
        last = own[-1] if projects else None
        made.append({"ih": own[0], "hh": own[1], "b_ih": pair[0], "b_hh": pair[1], "hr": last})
    return made


def unless_gated(
    input: Any, hidden: Any, cell: Any, batch_sizes: Any, weights: Any, mode: str, *rest: Any
) -> Any:
    """Autocast's policy on the CPU, which leaves layers of type GRU alone."""
    return None if mode == "GRU" else "short"


@general(
    autocast=dict(cpu=unless_gated, accelerator="short"),
    name="_recurrent",
    node="Recurrent",
    derivatives=dict(input=FROM_KERNEL, hidden=FROM_KERNEL, cell=FROM_KERNEL, weights=FROM_KERNEL),
)
def recurrent(
    input: Array,
    hidden: Array,
    cell: Array | None,
    batch_sizes: Array | None,
    weights: Arrays,
    mode: str,
    bidirectional: bool,
    biases: bool,
    projects: bool,
    batch_first: bool,
) -> tuple[Array, ...]:
    """A stack of recurrent layers over (L, N, I), or over packed data with its batch sizes: outputs and last states."""
    inside = None
    if batch_sizes is not None:
        places, inside = padded_places(batch_sizes, hidden.shape[1])
        x = input[places]
    else:
        x = jnp.swapaxes(input, 0, 1) if batch_first else input
    if x.shape[0] == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    parts = split_weights(weights, biases, projects)
    directions = 2 if bidirectional else 1
    last: list[Any] = []
    for first in range(0, len(parts), directions):
        outputs = []
        for i in range(first, first + directions):
            start = None if cell is None else cell[i]
            out, *state, _, _ = scan_layer(mode, x, hidden[i], start, parts[i], inside, i > first)
            outputs.append(out)
            last.append(state)
        x = jnp.concatenate(outputs, -1) if len(outputs) > 1 else outputs[0]
    if batch_sizes is not None:
        x = x[packed_places(batch_sizes, input.shape[0])]
    elif batch_first:
        x = jnp.swapaxes(x, 0, 1)
    states = [jnp.stack([state[0] for state in last])]
    if cell is not None:
        states.append(jnp.stack([state[1] for state in last]))
    return (x, *states)


# ---- one layer, whose gates are kept for its derivative --------------------------------------------------------------


def before(first: Any, states: Any, reverse: bool) -> Any:
    """The states (L, N, H) that the steps began with, from the first one and those after each step."""
    parts = [states[1:], first[None]] if reverse else [first[None], states[:-1]]
    return jnp.concatenate(parts, 0)


def layer_gradients(
    mode: str,
    results: dict[str, Any],
    grads: dict[str, Any],
    input: Any,
    hx: Any,
    cx: Any,
    inside: Any,
    w_ih: Any,
    w_hh: Any,
    w_hr: Any,
    reverse: bool,
) -> tuple[Any, ...]:
    """The gradients of a layer's operands, from those of its results: one scan back, and one product for each weight after it.

    results, grads: by name: outputs, hidden, cell, gates and cells; a gradient that is None is zero.
    """
    outputs = results["outputs"]
    made = [outputs] if results["gates"] is None else jnp.split(results["gates"], 4, -1)
    hiddens = before(hx, outputs, reverse)
    cells = None if cx is None else before(cx, results["cells"], reverse)
    to_made = None if grads["gates"] is None else jnp.split(grads["gates"], 4, -1)
    steps = {
        "out": grads["outputs"],
        "made": made,
        "hidden": hiddens if mode == "GRU" else None,
        "cell": cells,
        "new": results["cells"],
        "inside": inside,
        "to_made": to_made,
        "to_new": grads["cells"],
    }

    def step(state: Any, now: dict[str, Any]) -> Any:
        to_hidden, to_cell = state
        to_hidden = to_hidden if now["out"] is None else to_hidden + now["out"]
        to_cell = to_cell if now["to_new"] is None else to_cell + now["to_new"]
        past_hidden = past_cell = None
        if now["inside"] is not None:
            valid = now["inside"][:, None]
            past_hidden, to_hidden = jnp.where(valid, 0, to_hidden), jnp.where(valid, to_hidden, 0)
            if to_cell is not None:
                past_cell, to_cell = jnp.where(valid, 0, to_cell), jnp.where(valid, to_cell, 0)
        to_new = to_hidden if w_hr is None else product(to_hidden, w_hr)
        of_input, of_hidden, direct, to_before = retreat(
            mode, to_new, to_cell, now["to_made"], now["made"], now["hidden"], now["cell"], now["new"]
        )
        back = product(of_hidden, w_hh)
        for more in (direct, past_hidden):
            back = back if more is None else back + more
        to_before = to_before if past_cell is None else to_before + past_cell
        kept = (of_input, None if of_hidden is of_input else of_hidden, None if w_hr is None else to_hidden)
        return (back, to_before), kept

    start = (grads["hidden"], None if cx is None else grads["cell"])
    zeros = (jnp.zeros_like(hx), None if cx is None else jnp.zeros_like(cx))
    start = tuple([z if g is None else g for g, z in zip(start, zeros, strict=True)])
    (to_hx, to_cx), (to_input, to_hidden, to_projected) = lax.scan(step, start, steps, reverse=not reverse)
    to_hidden = to_input if to_hidden is None else to_hidden

    weights = to_weights(flat(to_input), flat(to_hidden), flat(input), flat(hiddens))
    to_hr = None
    if w_hr is not None:
        to_hr = over_rows(flat(to_projected), flat(made[3] * jnp.tanh(results["cells"])))
    return product(flat(to_input), w_ih).reshape(input.shape), to_hx, to_cx, *weights, to_hr


LAYER = "input hx cx w_ih w_hh b_ih b_hh w_hr"


def layer(mode: str, names: Sequence[str], shown: int, autocast: Any, what: str) -> Any:
    """The operator that is one direction of one layer over (L, N, I), whose derivative is written out from what it keeps."""

    def gradients(results: Sequence[Any], grads: Any, undefined: Any, *operands: Any) -> tuple[Any, ...]:
        known: dict[str, Any] = dict.fromkeys(("outputs", "hidden", "cell", "gates", "cells"))
        given: dict[str, Any] = dict(known)
        for number, name in enumerate(names):
            known[name] = results[number]
            given[name] = None if undefined[number] else grads[number]
        return layer_gradients(mode, known, given, *operands)

    def of_lstm(
        grads: Any, undefined: Any, result0: Any, result3: Any, result4: Any, input: Any, hx: Any, cx: Any, inside: Any,
        w_ih: Any, w_hh: Any, w_hr: Any, reverse: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        results = (result0, None, None, result3, result4)
        return gradients(results, grads, undefined, input, hx, cx, inside, w_ih, w_hh, w_hr, reverse)

    def of_gru(
        grads: Any, undefined: Any, result0: Any, result2: Any, input: Any, hx: Any, inside: Any, w_ih: Any, w_hh: Any,
        reverse: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        return gradients(
            (result0, None, result2), grads, undefined, input, hx, None, inside, w_ih, w_hh, None, reverse
        )

    def of_rnn(
        grads: Any,
        undefined: Any,
        result0: Any,
        input: Any,
        hx: Any,
        inside: Any,
        w_ih: Any,
        w_hh: Any,
        reverse: bool,
    ) -> tuple[Any, ...]:
        return gradients(
            (result0, None), grads, undefined, input, hx, None, inside, w_ih, w_hh, None, reverse
        )

    def run(
        input: Array,
        hx: Array,
        cx: Array | None,
        inside: Array | None,
        w_ih: Array,
        w_hh: Array,
        b_ih: Array | None,
        b_hh: Array | None,
        w_hr: Array | None,
        reverse: bool,
    ) -> Any:
        weights = {"ih": w_ih, "hh": w_hh, "b_ih": b_ih, "b_hh": b_hh, "hr": w_hr}
        outputs, hidden, cell, gates, cells = scan_layer(mode, input, hx, cx, weights, inside, reverse, True)
        made = {"outputs": outputs, "hidden": hidden, "cell": cell, "gates": gates, "cells": cells}
        return tuple([made[name] for name in names])

    run.__annotations__["return"] = f"tuple[{', '.join(['Array'] * len(names))}]"
    hidden = ", ".join(names[shown:])
    named(
        run,
        f"_{mode.lower()}_layer",
        f"{what} over (L, N, I): {', '.join(names[:shown])}{hidden and '; kept: '}{hidden}.",
    )
    rules = rules_of(LAYER, {"LSTM": of_lstm, "GRU": of_gru}.get(mode, of_rnn))
    declared: Any = general(
        autocast=autocast,
        hidden=len(names) - shown,
        method=False,
        out=False,
        derivatives={**rules, "inside": None},
    )
    return declared(run)


LAYERS = {
    "LSTM": layer(
        "LSTM",
        ("outputs", "hidden", "cell", "gates", "cells"),
        3,
        dict(cpu="short", accelerator="short"),
        "A layer of long short-term memory",
    ),
    "GRU": layer(
        "GRU",
        ("outputs", "hidden", "gates"),
        2,
        dict(accelerator="short"),
        "A layer of gated recurrent units",
    ),
    **{
        mode: layer(mode, ("outputs", "hidden"), 2, dict(cpu="short", accelerator="short"), "An Elman layer")
        for mode in ("RNN_TANH", "RNN_RELU")
    },
}


@general(name="_unpacked", derivatives=dict(input=FROM_KERNEL, batch_sizes=None), method=False, out=False)
def unpacked(input: Array, batch_sizes: Array, batch: int) -> tuple[Array, Array]:
    """Packed data as (L, N, I), and which of it is no padding (L, N)."""
    places, inside = padded_places(batch_sizes, batch)
    return input[places], inside


@general(
    name="_packed",
    derivatives=dict(input=FROM_KERNEL, batch_sizes=None, rows=None),
    method=False,
    out=False,
)
def packed(input: Array, batch_sizes: Array, rows: Array) -> Array:
    """What is no padding of (L, N, H), as packed data of as many rows as `rows` has: an operand, so that no size is a constant."""
    return input[packed_places(batch_sizes, rows.shape[0])]


def keeping(
    mode: str,
    input: Tensor,
    hidden: Tensor,
    cell: Tensor | None,
    batch_sizes: Tensor | None,
    weights: Sequence[Tensor],
    bidirectional: bool,
    biases: bool,
    projects: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """`recurrent` of tensors whose derivatives will be asked for: a call per layer and direction, which keeps its gates."""
    x, inside = input, None
    if batch_sizes is not None:
        x, inside = unpacked(input, batch_sizes, hidden.shape[1])
    elif batch_first:
        x = input.transpose(0, 1)
    if x.shape[0] == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    parts = split_weights(weights, biases, projects)
    directions = 2 if bidirectional else 1
    last: list[Sequence[Tensor]] = []
    for first in range(0, len(parts), directions):
        outputs = []
        for i in range(first, first + directions):
            own = parts[i]
            start = None if cell is None else cell[i]
            made = LAYERS[mode](
                x,
                hidden[i],
                start,
                inside,
                own["ih"],
                own["hh"],
                own["b_ih"],
                own["b_hh"],
                own["hr"],
                i > first,
            )
            outputs.append(made[0])
            last.append(made[1:])
        x = cat(outputs, -1) if len(outputs) > 1 else outputs[0]
    if batch_sizes is not None:
        x = packed(x, batch_sizes, input.detach())
    elif batch_first:
        x = x.transpose(0, 1)
    return (x, *[stack(list(states)) for states in zip(*last, strict=True)])


def run_layers(
    input: Tensor, hidden: Tensor, cell: Tensor | None, batch_sizes: Any, weights: list[Tensor], *options: Any
) -> Any:
    """Layers as one operator, or, where their derivatives will be asked for, as those that keep what these need."""
    # The rules of `layer` are for real numbers.
    recorded = not (modes.state.mode & modes.NO_GRAD or modes.state.transforms or input.dtype.is_complex)
    if recorded and any(asks_grad(t) for t in (input, hidden, cell, *weights) if t is not None):
        return keeping(options[0], input, hidden, cell, batch_sizes, weights, *options[1:])
    return recurrent(input, hidden, cell, batch_sizes, weights, *options)


def run_stack(
    mode: str,
    input: Tensor,
    batch_sizes: Tensor | None,
    states: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """All layers in one call; with dropout between them a call per layer."""
    directions = 2 if bidirectional else 1
    size = len(params) // max(num_layers * directions, 1)
    projects = size == 3 + 2 * has_biases
    if size != 2 + 2 * has_biases + projects or size * num_layers * directions != len(params):
        raise RuntimeError("got an incorrect number of RNN parameters")
    if batch_sizes is not None:
        batch_sizes = batch_sizes.to(device=input.device)
    options = (mode, bidirectional, has_biases, projects, batch_first)
    hidden = states[0]
    cell = states[1] if len(states) > 1 else None
    if not (train and dropout > 0 and num_layers > 1):
        return run_layers(input, hidden, cell, batch_sizes, list(params), *options)
    x = input
    lasts: list[tuple[Tensor, ...]] = []
    for layer in range(num_layers):
        if layer:
            keeps = x.detach().new_empty(x.shape).bernoulli_(1 - dropout)
            x = x * (keeps / (1 - dropout) if dropout < 1 else keeps)
        rows = slice(layer * directions, (layer + 1) * directions)
        own = params[rows.start * size : rows.stop * size]
        x, *last = run_layers(
            x, hidden[rows], None if cell is None else cell[rows], batch_sizes, list(own), *options
        )
        lasts.append(tuple(last))
    return (x, *[cat(list(parts), 0) for parts in zip(*lasts, strict=True)])


def signatures(mode: str) -> tuple[str, str]:
    """Those of a recurrent function: of padded and of packed sequences."""
    hx = "tuple of Tensors hx" if mode == "LSTM" else "Tensor hx"
    rest = "tuple of Tensors params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
    return f"Tensor data, Tensor batch_sizes, {hx}, {rest}", f"Tensor input, {hx}, {rest}, bool batch_first"


def arguments_of(mode: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Both signatures in one order: (input, hx, params, ..., batch_first) and (data, batch_sizes, hx, params, ...)."""
    second, third = (*arguments, None, None, None)[1:3]
    # States are two tensors for an LSTM, else one: what follows them is a list of weights.
    packed = isinstance(second, Tensor) and (mode == "LSTM" or isinstance(third, Tensor))
    packed = packed or "batch_sizes" in named
    common = ("params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
    names = ("data", "batch_sizes", "hx", *common) if packed else ("input", "hx", *common, "batch_first")
    found = dict(zip(names, arguments, strict=False), **named)
    if len(arguments) > len(names) or found.keys() != set(names):
        raise unfit_call(mode.lower(), arguments, named, signatures(mode))
    rest = [found[name] for name in common]
    if packed:
        return (found["data"], found["batch_sizes"], found["hx"], *rest, False)
    return (found["input"], None, found["hx"], *rest, found["batch_first"])


def run_function(mode: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Tensor, ...]:
    input, sizes, hx, params, biases, layers, dropout, train, bidirectional, batch_first = arguments_of(
        mode, arguments, named
    )
    states = list(hx) if mode == "LSTM" else [hx]
    if mode == "LSTM" and len(states) != 2:
        raise RuntimeError("lstm expects two hidden states")
    return run_stack(
        mode, input, sizes, states, params, biases, layers, dropout, train, bidirectional, batch_first
    )


def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Layers of long short-term memory: (output, h_n, c_n).

    Either `(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)` or, over packed
    data, `(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`.
    """
    return run_function("LSTM", args, kwargs)


def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Layers of gated recurrent units: (output, h_n); arguments as `lstm`'s, with one state."""
    return run_function("GRU", args, kwargs)


def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Elman layers with tanh: (output, h_n); arguments as `lstm`'s, with one state."""
    return run_function("RNN_TANH", args, kwargs)


def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Elman layers with ReLU: (output, h_n); arguments as `lstm`'s, with one state."""
    return run_function("RNN_RELU", args, kwargs)
