"""Stacks of recurrent layers over sequences: one compiled program, or where gradients are recorded an operator per layer that keeps its gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from ...engine import modes
from ...operators.below.aten import CHOOSING
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import unfit_call
from ...operators.schema import Array, Arrays
from ...tensor import Tensor, asks_grad
from ..shape.joining import cat, stack
from .recurrent_layers import LAYERS, scan_layer

__all__ = ["gru", "lstm", "rnn_relu", "rnn_tanh"]


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


def of_products(
    input: Any,
    hidden: Any,
    cell: Any,
    batch_sizes: Any,
    weights: Any,
    mode: str,
    bidirectional: bool,
    biases: bool,
    projects: bool,
    *rest: Any,
) -> str | None:
    """Autocast's policy on the CPU, which casts products of matrices: where a layer's outputs are such, or a kernel of PyTorch's takes
    all of it. Gates that weigh a state in float32 give one.
    """
    return None if mode == "GRU" or (mode == "LSTM" and batch_sizes is not None and not projects) else "short"


@general(
    autocast=dict(cpu=of_products, accelerator="short"),
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
    input: Tensor,
    hidden: Tensor,
    cell: Tensor | None,
    batch_sizes: Tensor | None,
    weights: Sequence[Tensor],
    mode: str,
    bidirectional: bool,
    biases: bool,
    projects: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Layers as one operator, or, where their derivatives will be asked for, as those that keep what these need."""
    options = (mode, bidirectional, biases, projects, batch_first)
    # The rules of `layer` are for real numbers.
    recorded = not (modes.state.mode & modes.NO_GRAD or modes.state.transforms or input.dtype.is_complex)
    if recorded and any(asks_grad(t) for t in (input, hidden, cell, *weights) if t is not None):
        made = keeping(mode, input, hidden, cell, batch_sizes, weights, *options[1:])
    else:
        made = recurrent(input, hidden, cell, batch_sizes, list(weights), *options)
    if projects and cell is not None and made[2].dtype is not cell.dtype and input.device.type == "cpu":
        return made[0], made[1], made[2].to(cell.dtype)  # autocast's: only what is projected is a product
    return made


CHOOSING["_recurrent"] = run_layers


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

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool and integer tensors.
    """
    return run_function("LSTM", args, kwargs)


def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Layers of gated recurrent units: (output, h_n); arguments as `lstm`'s, with one state.

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool and integer tensors.
    """
    return run_function("GRU", args, kwargs)


def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Elman layers with tanh: (output, h_n); arguments as `lstm`'s, with one state.

    Raises: RuntimeError where sizes do not fit; TypeError for bool and integer tensors.
    """
    return run_function("RNN_TANH", args, kwargs)


def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Elman layers with ReLU: (output, h_n); arguments as `lstm`'s, with one state.

    Raises: RuntimeError where sizes do not fit; TypeError for bool tensors.
    """
    return run_function("RNN_RELU", args, kwargs)
