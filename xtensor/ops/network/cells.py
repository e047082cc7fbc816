"""One step of recurrent layers: Elman, LSTM and GRU cells, and their derivatives from what a step keeps.

Gates are stacked in the weights as PyTorch stacks them: input, forget, cell, output (LSTM); reset, update, new (GRU).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...lowering.row_products import over_rows
from ...operators.attach import named
from ...operators.declare import general
from ...operators.derivatives import rules_of
from ...operators.schema import Array, Arrays
from ..linalg.matmul import product

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]


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
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2])


def affine(x: Any, weight: Any, bias: Any) -> Any:
    """`x @ weight.T + bias`; of (L, N, I) as one product of rows, for XLA's CPU products of three dimensions are slower."""
    rows = flat(x) if x.ndim == 3 else x
    made = product(rows, weight.T).reshape(*x.shape[:-1], weight.shape[0])
    return made if bias is None else made + bias


def check_cell(input: Any, hidden: Any, w_ih: Any, w_hh: Any, number: int) -> None:
    """PyTorch's errors for the sizes of a cell's arguments."""
    if input.shape[-1] != w_ih.shape[1]:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input.shape[-1]} expected {w_ih.shape[1]}"
        )
    if hidden.shape[1] != w_hh.shape[1]:
        raise RuntimeError(
            f"hidden{number} has inconsistent hidden_size: got {hidden.shape[1]}, expected {w_hh.shape[1]}"
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
    to_ih, to_hh = over_rows(to_input, input, product), over_rows(to_hidden, hidden, product)
    return to_ih, to_hh, b_ih, b_hh


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
    doc += "\n\nRaises: RuntimeError where sizes do not fit"
    doc += "; RuntimeError for bool and integer tensors." if gated else "."
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

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool and integer tensors.
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    hidden, cell = hx
    check_cell(input, hidden, w_ih, w_hh, 0)
    check_cell(input, cell, w_ih, w_hh, 1)
    new, cell, made = advance("LSTM", affine(input, w_ih, b_ih), affine(hidden, w_hh, b_hh), hidden, cell)
    return new, cell, jnp.concatenate(made, -1)
