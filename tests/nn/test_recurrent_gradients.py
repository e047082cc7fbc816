"""Recurrent layers over sequences keep their gates: gradients of first and second order against PyTorch, and what is kept when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor.ops.network import recurrent_layers

torch: Any = pytest.importorskip("torch")

KINDS = ("LSTM", "GRU", "RNN")
WAYS: dict[str, dict[str, Any]] = {
    "two layers": {"num_layers": 2},
    "both ways, batch first": {"bidirectional": True, "batch_first": True},
    "packed, both ways": {"bidirectional": True, "packed": True},
    "packed, batch first, no biases": {"batch_first": True, "bias": False, "packed": True},
    "many rows": {"steps": 48},
    "projected, packed": {"proj_size": 3, "packed": True},
}
SHORT = ("projected, packed",)
"""Those of LSTMs in the sampled run: each way takes a quarter of a minute to compile."""


def derivatives(
    lib: Any, kind: str, packed: bool, weights: Any, steps: int, options: dict[str, Any]
) -> tuple[list[Any], Any]:
    """Outputs, states, gradients and gradients of these, of everything that enters."""
    module = getattr(lib.nn, kind)(4, 5, **options).double()
    if weights is not None:
        module.load_state_dict({k: lib.from_numpy(v.copy()) for k, v in weights.items()})
    random = np.random.default_rng(0)
    batch = 3
    first = options.get("batch_first", False)
    x = lib.from_numpy(
        random.standard_normal((batch, steps, 4) if first else (steps, batch, 4))
    ).requires_grad_()
    given = x
    if packed:
        given = lib.nn.utils.rnn.pack_padded_sequence(x, lib.tensor([3, 6, 2]), first, enforce_sorted=False)
    rows = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    states = [
        lib.from_numpy(random.standard_normal((rows, batch, size))).requires_grad_()
        for size in ([options.get("proj_size", 5), 5] if kind == "LSTM" else [5])
    ]
    out, last = module(given, tuple(states) if kind == "LSTM" else states[0])
    made = [out.data if packed else out, *(last if kind == "LSTM" else [last])]
    loss = sum((m**3).sum() for m in made)
    entering = [x, *states, *module.parameters()]
    grads = lib.autograd.grad(loss, entering, create_graph=True)
    second = lib.autograd.grad(sum((g**2).sum() for g in grads), entering)
    values = [v.detach().numpy() for v in (*made, *grads, *second)]
    return values, {k: v.numpy() for k, v in module.state_dict().items()}


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        *(pytest.param("LSTM", way, marks=() if way in SHORT else pytest.mark.full) for way in WAYS),
        pytest.param("GRU", "both ways, batch first", marks=pytest.mark.full),
        ("GRU", "packed, batch first, no biases"),
        ("RNN", "packed, both ways"),
    ],
)
def test_gradients_are_pytorchs(kind: str, way: str) -> None:
    options = dict(WAYS[way])
    packed, steps = options.pop("packed", False), options.pop("steps", 6)
    theirs, weights = derivatives(torch, kind, packed, None, steps, options)
    ours, _ = derivatives(xtensor, kind, packed, weights, steps, options)
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_many_features(kind: str) -> None:
    """Sizes above a vector loop, in float32."""
    made = []
    weights = None
    for lib in (torch, xtensor):
        module = getattr(lib.nn, kind)(1031, 17)
        if weights is None:
            weights = {k: v.numpy() for k, v in module.state_dict().items()}
        module.load_state_dict({k: lib.from_numpy(v.copy()) for k, v in weights.items()})
        x = lib.from_numpy(np.random.default_rng(1).standard_normal((5, 3, 1031)).astype(np.float32))
        module(x)[0].sum().backward()
        made.append([p.grad.numpy() for p in module.parameters()])
    for theirs, ours in zip(*made, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


def loops(function: Any, *args: Any) -> int:
    """How many loops a kernel's program has."""
    import jax

    return str(jax.make_jaxpr(function)(*args)).count("scan[")


def test_nothing_is_computed_again_for_gradients() -> None:
    """One loop forward and one back, for each layer; without gradients one operator keeps nothing."""
    x = np.ones((4, 2, 3), np.float32)
    h = np.ones((2, 5), np.float32)
    w = [np.ones((20, 3), np.float32), np.ones((20, 5), np.float32)]
    op = recurrent_layers.LAYERS["LSTM"].operator
    made = op.kernel(x, h, h, None, *w, None, None, None, False)
    assert [m.shape for m in made] == [(4, 2, 5), (2, 5), (2, 5), (4, 2, 20), (4, 2, 5)]
    results = dict(zip(recurrent_layers.RESULTS, made, strict=True))
    grads = {**dict.fromkeys(results), "outputs": made[0]}
    back = lambda *a: recurrent_layers.layer_gradients("LSTM", results, grads, *a, False)
    assert loops(back, x, h, h, None, *w, None) == 1
    module = xtensor.nn.LSTM(3, 5)
    given = xtensor.ones(4, 2, 3)
    assert module(given)[0].grad_fn is not None
    with xtensor.no_grad():
        assert module(given)[0].grad_fn is None


def test_batch_first_has_pytorchs_strides() -> None:
    for lib in (torch, xtensor):
        out, _ = lib.nn.LSTM(3, 5, batch_first=True)(lib.ones(2, 4, 3))
        assert out.stride() == (5, 10, 1) and out.shape == (2, 4, 5)


@pytest.mark.parametrize("kind", ["GRU", "RNN"])
def test_outputs_may_be_written(kind: str) -> None:
    """What the derivatives need is not what the caller is given. (PyTorch's LSTM refuses, as ours does.)"""
    made = []
    for lib in (torch, xtensor):
        module = getattr(lib.nn, kind)(3, 5, batch_first=True)
        for p in module.parameters():
            p.data.fill_(0.1)
        out, last = module(lib.ones(2, 4, 3))
        out.mul_(2)
        last.add_(1)
        (out.sum() + last.sum()).backward()
        made.append([p.grad.numpy() for p in module.parameters()])
    for theirs, ours in zip(*made, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_no_samples(kind: str) -> None:
    module = getattr(xtensor.nn, kind)(3, 5)
    out, _ = module(xtensor.ones(4, 0, 3))
    assert out.shape == (4, 0, 5)
    out.sum().backward()
    assert all(float(p.grad.abs().sum()) == 0 for p in module.parameters())
