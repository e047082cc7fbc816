"""One direction of one recurrent layer over a sequence: its scan, and the operators that keep its gates for their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from ...lowering.row_products import over_rows
from ...operators.attach import named
from ...operators.declare import general
from ...operators.derivatives import rules_of
from ...operators.schema import Array
from ..linalg.matmul import product
from .cells import advance, affine, flat, retreat, to_weights

__all__: list[str] = []


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
    """One direction of one layer over (L, N, I): outputs, last hidden and cell state; to `keep` gates, and states: of an LSTM the cell's
    after each step, of a GRU those that each began with.

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
        kept = (jnp.concatenate(made, -1), h if mode == "GRU" else new_c) if keep else (None, None)
        return (new_h, new_c), (new_h, *kept)

    (hidden, cell), (outputs, gates, states) = lax.scan(
        step, (hidden, cell), (of_inputs, inside), reverse=reverse
    )
    return outputs, hidden, cell, gates, states


def before(first: Any, states: Any, inside: Any, reverse: bool) -> Any:
    """The states (L, N, H) that the steps began with, from the first one and those after each step; `inside` masks padding."""
    if not reverse:
        return jnp.concatenate([first[None], states[:-1]], 0)
    after = states[1:]
    if inside is not None:  # a sequence that ends early begins at its end
        after = jnp.where(inside[1:, :, None], after, first)
    return jnp.concatenate([after, first[None]], 0)


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

    results, grads: by name: outputs, hidden, cell, gates and states; a gradient that is None is zero.
    """
    gates = 4 if mode in ("LSTM", "GRU") else 1
    made = jnp.split(results["gates"], gates, -1)
    to_made = None if grads["gates"] is None else jnp.split(grads["gates"], gates, -1)
    cells = to_cells = to_hiddens = None
    if mode == "LSTM":
        hiddens = before(hx, results["outputs"], inside, reverse)
        cells, to_cells = before(cx, results["states"], inside, reverse), grads["states"]
    elif mode == "GRU":
        hiddens, to_hiddens = results["states"], grads["states"]
    else:
        hiddens = before(hx, made[0], inside, reverse)
    steps = {
        "out": grads["outputs"],
        "made": made,
        "hidden": hiddens if mode == "GRU" else None,
        "cell": cells,
        "new": results["states"] if mode == "LSTM" else None,
        "inside": inside,
        "to_made": to_made,
        "to_new": to_cells,
        "to_before": to_hiddens,
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
        if gates == 1 and now["to_made"] is not None:
            to_new = to_new + now["to_made"][0]
        of_input, of_hidden, direct, to_before = retreat(
            mode, to_new, to_cell, now["to_made"], now["made"], now["hidden"], now["cell"], now["new"]
        )
        back = product(of_hidden, w_hh)
        for more in (direct, past_hidden, now["to_before"]):
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
        to_hr = over_rows(flat(to_projected), flat(made[3] * jnp.tanh(results["states"])), product)
    return product(flat(to_input), w_ih).reshape(input.shape), to_hx, to_cx, *weights, to_hr


RESULTS = ("outputs", "hidden", "cell", "gates", "states")
LAYER = "input hx cx w_ih w_hh b_ih b_hh w_hr"


def layer(mode: str, names: Sequence[str], shown: int, autocast: Any, what: str) -> Any:
    """The operator that is one direction of one layer over (L, N, I), whose derivative is written out from what it keeps."""

    def gradients(saved: dict[str, Any], grads: Any, undefined: Any, *operands: Any) -> tuple[Any, ...]:
        given = {name: None if none else g for name, none, g in zip(names, undefined, grads, strict=True)}
        nothing: dict[str, Any] = dict.fromkeys(RESULTS)
        return layer_gradients(mode, nothing | saved, nothing | given, *operands)

    def of_lstm(
        grads: Any, undefined: Any, result0: Any, result3: Any, result4: Any, input: Any, hx: Any, cx: Any, inside: Any,
        w_ih: Any, w_hh: Any, w_hr: Any, reverse: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        saved = {"outputs": result0, "gates": result3, "states": result4}
        return gradients(saved, grads, undefined, input, hx, cx, inside, w_ih, w_hh, w_hr, reverse)

    def of_gru(
        grads: Any, undefined: Any, result2: Any, result3: Any, input: Any, hx: Any, inside: Any, w_ih: Any, w_hh: Any,
        reverse: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        saved = {"gates": result2, "states": result3}
        return gradients(saved, grads, undefined, input, hx, None, inside, w_ih, w_hh, None, reverse)

    def of_rnn(
        grads: Any, undefined: Any, result2: Any, input: Any, hx: Any, inside: Any, w_ih: Any, w_hh: Any, reverse: bool
    ) -> tuple[Any, ...]:  # fmt: skip
        return gradients(
            {"gates": result2}, grads, undefined, input, hx, None, inside, w_ih, w_hh, None, reverse
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
        made = scan_layer(mode, input, hx, cx, weights, inside, reverse, True)
        known: dict[str, Any] = dict(zip(RESULTS, made, strict=True))
        return tuple([known[name] for name in names])

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


def of_padded(*operands: Any) -> str | None:
    """Autocast's policy for LSTMs on the CPU, as `recurrent`'s: packed data give a mask of what is no padding."""
    inside, w_hr = operands[3], operands[8]
    return None if inside is not None and w_hr is None else "short"


LAYERS = {
    "LSTM": layer(
        "LSTM",
        RESULTS,
        3,
        dict(cpu=of_padded, accelerator="short"),
        "A layer of long short-term memory",
    ),
    "GRU": layer(
        "GRU",
        ("outputs", "hidden", "gates", "states"),
        2,
        dict(accelerator="short"),
        "A layer of gated recurrent units",
    ),
    **{
        mode: layer(
            mode, ("outputs", "hidden", "gates"), 2, dict(cpu="short", accelerator="short"), "An Elman layer"
        )
        for mode in ("RNN_TANH", "RNN_RELU")
    },
}
