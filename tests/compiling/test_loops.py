"""Passes of a Python loop in a captured function become one loop of XLA's, with eager's values."""

from __future__ import annotations

import random
from typing import Any

import jax
import numpy as np
import pytest

import xtensor as xt
from xtensor import nn
from xtensor.compiling.sums import Term, sums_of
from xtensor.nn import functional as F

STEPS = 11


class Recurrent(nn.Module):
    """A cell over the rows of an input, in either direction; gives its last state, and all of them if asked."""

    def __init__(self, kind: Any, every: bool = False, backwards: bool = False) -> None:
        super().__init__()
        self.cell, self.head = kind(5, 7), nn.Linear(7, 3)
        self.every, self.backwards = every, backwards

    def forward(self, x: Any) -> Any:
        state: Any = xt.zeros(x.shape[1], 7)
        if type(self.cell) is nn.LSTMCell:
            state = (state, xt.zeros(x.shape[1], 7))
        outs = []
        for i in reversed(range(len(x))) if self.backwards else range(len(x)):
            state = self.cell(x[i], state)
            outs.append(state[0] if isinstance(state, tuple) else state)
        return self.head(xt.stack(outs).sum(0) if self.every else outs[-1])


class Own(nn.Module):
    """A recurrence written out, with values of every pass and a result of the last one but one."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(7, 7), nn.Linear(5, 7, bias=False)
        self.head = nn.Linear(7, 3)

    def forward(self, x: Any) -> Any:
        h = before = xt.zeros(x.shape[1], 7)
        for i, row in enumerate(x.unbind(0)):
            before, h = h, xt.tanh(self.inner(h) + self.outer(row)) * (1 + i / 10)
        return self.head(h + before)


def passes_of(compiled: Any) -> list[int]:
    """The passes of each loop in the programs of a compiled function."""
    return list(compiled._xt_compiled.entries[0].program.parts.loops)


def steps_of(model: Any) -> tuple[Any, Any]:
    """A training step, and the tensors in which it is seen."""
    optimizer = xt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda: [*model.parameters(), *[p.grad for p in model.parameters()]]


@pytest.mark.parametrize(
    ("make", "loops"),
    [
        (lambda: Recurrent(nn.LSTMCell), [11, 9]),
        (lambda: Recurrent(nn.GRUCell, every=True), None),
        (lambda: Recurrent(nn.RNNCell, backwards=True), None),
        (Own, None),
    ],
)
def test_a_training_step_over_a_python_loop(make: Any, loops: Any) -> None:
    xt.manual_seed(0)
    eager, other = make(), make()
    other.load_state_dict(eager.state_dict())
    x, y = xt.randn(STEPS, 4, 5), xt.tensor([0, 1, 2, 1])
    (step, seen), (same, also) = steps_of(eager), steps_of(other)
    compiled = xt.compile(same, fullgraph=True)
    for _ in range(3):
        assert compiled(x, y).allclose(step(x, y), atol=1e-6)
    for a, b in zip(seen(), also(), strict=True):
        assert a.allclose(b, atol=1e-5)
    found = passes_of(compiled)
    assert len(found) >= 2 and min(found) >= 8
    assert loops is None or found == loops


@pytest.mark.parametrize("make", [lambda: Recurrent(nn.LSTMCell), Own])
def test_forward_and_backward_apart(make: Any) -> None:
    xt.manual_seed(0)
    model = make()
    compiled = xt.compile(model)
    x = xt.randn(STEPS, 4, 5, requires_grad=True)
    results = []
    for call in (model, compiled, compiled):
        out = call(x)
        results.append([out, *xt.autograd.grad(out.square().sum(), [x, *model.parameters()])])
    for found in results[1:]:
        assert all(a.allclose(b, atol=1e-5) for a, b in zip(results[0], found, strict=True))


@pytest.fixture
def over(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The terms that are summed over all passes after their loop."""
    found: list[str] = []
    plain = Term.over

    def noted(term: Term, stacks: Any) -> Any:
        found.append(term.equation.primitive.name)
        return plain(term, stacks)

    monkeypatch.setattr(Term, "over", noted)
    return found


@pytest.mark.parametrize("dtype", [xt.float64, xt.float32, xt.bfloat16])
@pytest.mark.parametrize("backwards", [False, True])
def test_gradients_of_shared_weights_are_one_product(dtype: Any, backwards: bool, over: list[str]) -> None:
    xt.manual_seed(0)
    model = Recurrent(nn.LSTMCell, backwards=backwards).to(dtype)
    model.cell = nn.LSTMCell(33, 31, dtype=dtype)
    model.head = nn.Linear(31, 3, dtype=dtype)
    weights = list(model.parameters())

    def gradients(x: Any) -> Any:
        h = c = xt.zeros(x.shape[1], 31, dtype=dtype)
        for i in reversed(range(len(x))) if backwards else range(len(x)):
            h, c = model.cell(x[i], (h, c))
        return xt.autograd.grad(model.head(h).square().mean(), weights)

    x = xt.randn(STEPS, 4, 33, dtype=dtype)
    wanted = gradients(x)
    compiled = xt.compile(gradients, fullgraph=True)
    tolerance = {xt.float64: 1e-13, xt.float32: 1e-6, xt.bfloat16: 2e-2}[dtype]
    for _ in range(2):
        for a, b in zip(compiled(x), wanted, strict=True):
            assert (a - b).abs().max() <= tolerance * (1 + b.abs().max())
    assert over.count("dot_general") == 2


@pytest.mark.parametrize(
    ("step", "terms"),
    [
        (lambda t, a, b: t + a @ b, ["dot_general"]),
        (lambda t, a, b: (a @ b + t) + b @ a.T, ["dot_general"] * 2),
        (lambda t, a, b: t * 2 + a @ b, []),
        (lambda t, a, b: t + a @ b + t, []),
        (lambda t, a, b: t + a @ t, []),
        (lambda t, a, b: t + a * b, []),
    ],
)
def test_what_a_pass_adds(step: Any, terms: list[str]) -> None:
    traced = jax.make_jaxpr(step)(*[np.ones((20, 20), np.float32)] * 3).jaxpr
    begin, *each = traced.invars
    (end,) = traced.outvars
    found = sums_of(traced.eqns, [(None, begin, end)], each, [])
    assert [t.equation.primitive.name for s in found for t in s.terms] == terms
    assert sums_of(traced.eqns, [(None, begin, end)], each, [end]) == []


def test_layers_with_weights_of_their_own_stay_apart() -> None:
    layers = nn.Sequential(*[nn.Linear(40, 40) for _ in range(10)])
    compiled = xt.compile(lambda x: layers(x))
    x = xt.randn(2, 40)
    for _ in range(2):
        assert compiled(x).allclose(layers(x), atol=1e-6)
    assert passes_of(compiled) == []


def test_short_passes_without_products_stay_apart() -> None:
    def grown(x: Any) -> Any:
        for i in range(12):
            x = x * 1.5 + i
        return x

    compiled = xt.compile(grown)
    for _ in range(2):
        assert compiled(xt.ones(3)).equal(grown(xt.ones(3)))
    assert passes_of(compiled) == []


def test_random_numbers_of_every_pass() -> None:
    weight = xt.randn(6, 6)

    def noisy(x: Any) -> Any:
        for _ in range(9):
            x = xt.tanh(F.dropout(x @ weight, 0.5))
        return x

    compiled = xt.compile(noisy)
    x = xt.ones(4, 6)
    for seed in range(3):
        xt.manual_seed(seed)
        wanted = noisy(x)
        xt.manual_seed(seed)
        assert compiled(x).allclose(wanted, atol=1e-6)


def test_what_the_first_pass_makes_for_all() -> None:
    def run(a: Any) -> Any:
        out, kept = xt.eye(4), None
        for _ in range(12):
            out = (out @ a).tanh()
            kept = out if kept is None else kept
            out = out + kept @ a
        return out

    compiled = xt.compile(run)
    a = xt.randn(4, 4) / 2
    for _ in range(2):
        assert compiled(a).allclose(run(a), atol=1e-5)
    assert passes_of(compiled) == [11]


@pytest.mark.parametrize("seed", range(6))
def test_random_loops(seed: int) -> None:
    """Loops over what loops before made, in any order, with states from one or two passes ago."""
    draw = random.Random(seed)
    products = [draw.randrange(3) for _ in range(4)]
    order = draw.choice(["forwards", "backwards", "mixed"])
    lag, keep, passes = draw.choice([1, 2]), draw.random() < 0.5, draw.randrange(9, 13)

    def run(weights: Any, x: Any) -> Any:
        states, outs, kept = [x[0] @ weights[0]] * 2, [], None
        for i in range(passes):
            new = (states[-lag] @ weights[products[0]] + x[i] @ weights[products[1]]).tanh()
            kept = new if keep and kept is None else kept
            states = [states[-1], new * 0.5 if kept is None else new * kept]
            outs.append(new)
        if order != "forwards":
            outs.reverse()
        if order == "mixed":
            outs[1], outs[4] = outs[4], outs[1]
        total = states[0]
        for out in outs:
            total = (total @ weights[products[2]]).sin() + out @ weights[products[3]]
        return (total * states[1]).sum() + outs[2].sum()

    xt.manual_seed(seed)
    weights = [(xt.randn(3, 3, dtype=xt.float64) / 2).requires_grad_() for _ in range(3)]
    x = xt.randn(passes, 3, 3, dtype=xt.float64, requires_grad=True)
    compiled = xt.compile(lambda: xt.autograd.grad(run(weights, x), [*weights, x], allow_unused=True))
    expected = xt.autograd.grad(run(weights, x), [*weights, x], allow_unused=True)
    for _ in range(2):
        for got, wanted in zip(compiled(), expected, strict=True):
            assert (got is None) == (wanted is None) and (got is None or got.allclose(wanted, 1e-9, 1e-9))
    assert passes_of(compiled)


def test_the_power_of_a_matrix() -> None:
    def power(a: Any) -> Any:
        out, seen = xt.eye(4), []
        for _ in range(9):
            out = out @ a
            seen.append(out.diagonal().sum())
        return out, xt.stack(seen)

    compiled = xt.compile(power)
    a = xt.randn(4, 4) / 2
    for _ in range(2):
        for got, wanted in zip(compiled(a), power(a), strict=True):
            assert got.allclose(wanted, atol=1e-5)
    assert passes_of(compiled) == [9]
    assert ", 1 loop of 9 passes," in str(xt.compiler.explain(compiled)(a))
