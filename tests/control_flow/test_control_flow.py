"""Control flow in compiled functions: values, gradients of every order, random numbers and errors are those of Python's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import xtensor as xt
import xtensor.nn.functional as F
from xtensor import nn
from xtensor.compiling.explain import explain


def data(*shape: int, seed: int = 0, grad: bool = True) -> xt.Tensor:
    return xt.tensor(np.random.RandomState(seed).randn(*shape).astype(np.float32), requires_grad=grad)


W, V = data(3, 3, seed=11), data(3, seed=12)
EMBEDDING = data(7, 3, seed=13)
LAYER = nn.Linear(3, 3)


def cond(x: xt.Tensor) -> Any:
    return xt.cond(x.sum() > 0, lambda a: (a @ W).relu(), lambda a: a * 2 - V, (x,))


def cond_of_modules(x: xt.Tensor) -> Any:
    return xt.cond(x[0, 0] > 0, LAYER, nn.functional.softplus, [x])


def cond_within_cond(x: xt.Tensor) -> Any:
    def inner(a: xt.Tensor) -> Any:
        return {"a": xt.cond(a[0, 1] > 0, lambda: a.sin() * V, lambda: a.cos() @ W), "b": a.t()}

    return xt.cond(x.sum() > 0, inner, lambda a: {"a": a / 3, "b": W * 1}, (x,))


def cond_with_integers(x: xt.Tensor) -> Any:
    return xt.cond(x.sum() > 0, lambda a: (a.argmax(), a * V), lambda a: (a.argmin(), a - V), (x,))


def cond_with_dropout(x: xt.Tensor) -> Any:
    y = xt.cond(x.sum() > 0, lambda a: F.dropout(a @ W), lambda a: F.dropout(a - V), (x,))
    return y, F.dropout(x)


def scan(x: xt.Tensor) -> Any:
    def step(state: xt.Tensor, row: xt.Tensor) -> Any:
        new = (state @ W + row).tanh()
        return new, new * V

    return xt.scan(step, V.expand(3), x)


def scan_back(x: xt.Tensor) -> Any:
    def step(state: Any, row: Any) -> Any:
        a, count = state
        a = xt.sin(a * row["x"] + row["y"])
        return (a, count + 1), {"s": a + count, "n": (count * 2).expand(3)}

    start = (x[:, 0].detach(), xt.tensor(0))
    return xt.scan(step, start, {"x": x, "y": x.square()}, dim=1, reverse=True)


def scan_of_a_cell(x: xt.Tensor) -> Any:
    return xt.scan(lambda h, row: (LAYER(h).sigmoid() * row, h), x[0] * 0, x)


def scan_with_dropout(x: xt.Tensor) -> Any:
    def step(state: xt.Tensor, row: xt.Tensor) -> Any:
        new = F.dropout(state + row * V, 0.5)
        return new, F.dropout(new, 0.3)

    last, all_of_them = xt.scan(step, x[0], x, reverse=True)
    return last, all_of_them, F.dropout(x)


def scan_with_cond(x: xt.Tensor) -> Any:
    def step(state: xt.Tensor, row: xt.Tensor) -> Any:
        new = xt.cond(row[0] > 0, lambda: state * row, lambda: state + (row @ W))
        return new, new.exp()

    return xt.scan(step, V, x)


def scan_in_scan(x: xt.Tensor) -> Any:
    def outer(state: xt.Tensor, row: xt.Tensor) -> Any:
        last, parts = xt.scan(lambda s, e: ((s * e).tanh() + V, s.sum()), state, row)
        return last, parts

    return xt.scan(outer, V, x)


def scan_of_lookups(x: xt.Tensor) -> Any:
    def step(token: xt.Tensor, row: xt.Tensor) -> Any:
        found = F.embedding(token, EMBEDDING) + row
        return found.argmax(), found

    return xt.scan(step, xt.tensor(5), x)[1]


def mapped(x: xt.Tensor) -> Any:
    return xt.map(lambda row, v: (row * v).cumsum(0) @ W, x, V)


def associative(x: xt.Tensor) -> Any:
    return xt.associative_scan(lambda a, b: a * b + a, x, 0)


CASES: list[Callable[[xt.Tensor], Any]] = [
    cond,
    cond_of_modules,
    cond_within_cond,
    cond_with_integers,
    cond_with_dropout,
    scan,
    scan_back,
    scan_of_a_cell,
    scan_with_dropout,
    scan_with_cond,
    scan_in_scan,
    scan_of_lookups,
    mapped,
    associative,
]
LEAVES = [W, V, EMBEDDING, *LAYER.parameters()]


def tensors(value: Any) -> list[xt.Tensor]:
    return xt.utils._pytree.tree_leaves(value)


def close(found: Any, wanted: Any) -> None:
    found, wanted = tensors(found), tensors(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=3e-5, atol=3e-6)


def weighed(value: Any) -> xt.Tensor:
    """One number of all smooth results, each with its own weights."""
    parts = [t for t in tensors(value) if t.requires_grad]
    return sum((p * xt.linspace(0.5, 2, p.numel()).view(p.shape)).square().sum() for p in parts)  # type: ignore[return-value]


def gradients(value: Any, x: xt.Tensor) -> Any:
    found = xt.autograd.grad(weighed(value), [x, *LEAVES], allow_unused=True)
    return [xt.zeros_like(p) if g is None else g for p, g in zip([x, *LEAVES], found)]


def run(function: Any, x: xt.Tensor) -> Any:
    xt.manual_seed(3)
    return function(x)


def warm(function: Callable[..., Any]) -> Any:
    """The function compiled, after its capture."""
    step = xt.compile(function, fullgraph=True)
    for _ in range(2):
        run(step, data(3, 3))
    return step


@pytest.mark.parametrize("function", CASES)
def test_a_program_gives_what_python_gives(function: Callable[[xt.Tensor], Any]) -> None:
    step = warm(function)
    for seed in range(3):
        x = data(3, 3, seed=seed)
        wanted, found = run(function, x), run(step, x)
        close(found, wanted)
        close(gradients(found, x), gradients(wanted, x))
        assert [t.requires_grad for t in tensors(found)] == [t.requires_grad for t in tensors(wanted)]


def slopes(function: Callable[..., Any]) -> Callable[..., Any]:
    def inside(x: xt.Tensor) -> Any:
        value = weighed(function(x))
        first: Any = xt.autograd.grad(value, [x, W, V], create_graph=True, materialize_grads=True)
        squares: Any = sum(f.square().sum() for f in first)
        second = xt.autograd.grad(squares, [x, W, V], materialize_grads=True)
        return [f.detach() for f in first], second

    return inside


@pytest.mark.parametrize(
    "function", [cond, cond_within_cond, scan, scan_back, scan_with_cond, scan_in_scan, mapped]
)
def test_gradients_of_gradients_within_a_program(function: Callable[[xt.Tensor], Any]) -> None:
    inside = slopes(function)
    step = warm(inside)
    for seed in range(2):
        x = data(3, 3, seed=seed)
        close(run(step, x), run(inside, x))


def test_draws_go_on_after_a_loop() -> None:
    step = warm(scan_with_dropout)
    x = data(3, 3)
    run(scan_with_dropout, x)
    wanted = xt.rand(3)
    run(step, x)
    assert xt.equal(xt.rand(3), wanted)


def test_one_branch_runs_and_a_loop_is_one_equation() -> None:
    def function(x: xt.Tensor) -> Any:
        return xt.cond(x.sum() > 0, lambda: xt.scan(lambda s, r: (s + r, s), x[0], x)[1], lambda: x)

    step = warm(function)
    text = str(explain(step)(data(3, 3, seed=1)))
    assert "1 program" in text


def test_indices_are_checked_where_they_are_used() -> None:
    table = data(4, 2, seed=3)

    def function(x: xt.Tensor, number: xt.Tensor) -> Any:
        return xt.cond(x > 0, lambda: F.embedding(number + 1, table), lambda: table[0] * 2)

    step = xt.compile(function, fullgraph=True)
    for _ in range(3):
        step(xt.tensor(1.0), xt.tensor(2))
    close(step(xt.tensor(-1.0), xt.tensor(9)), table[0] * 2)
    with pytest.raises(IndexError):
        step(xt.tensor(1.0), xt.tensor(9))

    def loop(x: xt.Tensor, numbers: xt.Tensor) -> Any:
        return xt.scan(
            lambda s, n: (s + 1, xt.cond(s > 1, lambda: F.embedding(n, table), lambda: table[0] * 1)),
            x,
            numbers,
        )

    step = xt.compile(loop, fullgraph=True)
    for _ in range(3):
        step(xt.tensor(0), xt.tensor([1, 2, 3]))
    close(step(xt.tensor(0), xt.tensor([9, 9, 3])), loop(xt.tensor(0), xt.tensor([9, 9, 3])))
    with pytest.raises(IndexError):
        step(xt.tensor(0), xt.tensor([9, 9, 9]))


def test_while_loop() -> None:
    def function(x: xt.Tensor) -> Any:
        with xt.no_grad():
            return xt.while_loop(
                lambda i, a: (a.abs().sum() > 0.1) & (i < 50),
                lambda i, a: (i + 1, a @ W * 0.2),
                (xt.tensor(0), x),
            )

    step = warm(function)
    for seed in range(3):
        close(step(data(3, 3, seed=seed)), function(data(3, 3, seed=seed)))
    with pytest.raises(RuntimeError, match="number of steps is not known"):
        warm(lambda x: xt.while_loop(lambda a: a.sum() < 3, lambda a: a + V.exp(), (x,)))


def test_what_a_program_cannot_hold_is_said() -> None:
    x = data(3, 3)
    with pytest.raises(RuntimeError, match="same shapes and dtypes"):
        warm(lambda x: xt.cond(x.sum() > 0, lambda: x, lambda: x[0]))
    with pytest.raises(RuntimeError, match="next state must have"):
        warm(lambda x: xt.scan(lambda s, r: (s.sum(), r), x[0], x))
    with pytest.raises(RuntimeError, match="writes to a tensor from before"):
        warm(lambda x: xt.cond(x.sum() > 0, lambda: W.detach().mul_(1), lambda: x))
    with pytest.raises(RuntimeError, match="Expected pred to be bool"):
        xt.cond(x > 0, lambda: 1, lambda: 2)


def test_a_branch_of_a_batch() -> None:
    def one(x: xt.Tensor) -> Any:
        return xt.cond(x.sum() > 0, lambda a: a * 2, lambda a: a - 1, (x,))

    x = data(4, 3, grad=False)
    close(xt.func.vmap(one)(x), xt.stack([one(row) for row in x]))
    close(xt.compile(xt.func.vmap(one))(x), xt.stack([one(row) for row in x]))
    close(
        xt.func.vmap(xt.func.grad(lambda r: one(r).square().sum()))(x),
        xt.stack([xt.func.grad(lambda r: one(r).square().sum())(r) for r in x]),
    )


def test_a_training_step_with_a_loop() -> None:
    def build() -> Any:
        xt.manual_seed(0)
        cell = nn.GRUCell(3, 4)
        return cell, xt.optim.Adam(cell.parameters(), 0.05)

    def stepper(cell: Any, optimizer: Any) -> Any:
        def step(x: xt.Tensor) -> Any:
            optimizer.zero_grad()
            last, states = xt.scan(lambda h, row: ((new := cell(row, h)), new), xt.zeros(2, 4), x)
            loss = (last.sum() - 1).square() + states.square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    (a, oa), (b, ob) = build(), build()
    eager, program = stepper(a, oa), xt.compile(stepper(b, ob), fullgraph=True)
    for seed in range(5):
        x = data(6, 2, 3, seed=seed, grad=False)
        close(program(x), eager(x))
    close(list(b.parameters()), list(a.parameters()))


def test_a_module_for_jax_chooses() -> None:
    class Model(nn.Module):
        def forward(self, x: xt.Tensor) -> Any:
            return cond(x), xt.map(lambda r: r.sum(), x)

    model = Model()
    function, parameters = xt.jax.to_jax(model)
    for seed in range(4):
        x = data(3, 3, seed=seed, grad=False)
        chosen, sums = jax.jit(function)(parameters, x.numpy())
        close([xt.tensor(np.asarray(chosen)), xt.tensor(np.asarray(sums))], list(model(x)))
