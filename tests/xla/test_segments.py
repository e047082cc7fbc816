"""Calls that wait and run together: what is known at once, who has them run, and that nothing else shows."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import xtensor
from tests.fuzz.interrupts import stopped, watched
from xtensor import nn
from xtensor.optim.update import STEP
from xtensor.plans.plans import executor
from xtensor.storage import LazyStorage, Storage
from xtensor.xla import compiles, segments, sizes, store
from xtensor.xla.pending import Pending, Work, workers
from xtensor.xla.segments import apart, calls, running, structures, trial, waiters
from xtensor.xla.segments.running import pended

N = 1031


@pytest.fixture
def together() -> Iterator[None]:
    """Calls wait, and every structure has its program at once."""
    state = structures.state
    executor.wait()
    workers.wait()  # a program that is compiled meanwhile has calls wait again
    before = state.on, state.hot, state.background
    segments.enable(True)
    state.hot, state.background = 1, False
    yield
    state.hot, state.background = before[1:]
    segments.enable(before[0])


def pends(tensor: Any) -> bool:
    """Whether a tensor's values are still to come."""
    raw = tensor._xt_storage.raw
    return type(raw) is Pending and raw.call is not None


def both(function: Any) -> tuple[Any, Any]:
    """What a function gives without waiting, and with it, twice: by the programs of its calls and as one."""
    segments.enable(False)
    apart = function()
    segments.enable(True)
    first = function()
    again = function()
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, again, strict=True))
    return apart, again


def values(*tensors: Any) -> list[np.ndarray[Any, Any]]:
    return [t.detach().numpy() for t in tensors]


def test_what_is_known_of_a_call_that_waits(together: None) -> None:
    x = xtensor.arange(N, dtype=xtensor.float32)
    segments.finish()
    y = x * 2 + 1
    assert pends(y)
    assert (y.shape, y.dtype, y.stride(), y.device) == ((N,), xtensor.float32, (1,), x.device)
    assert y._version == 0 and y.numel() == N and y.is_contiguous() and not y._is_view()
    assert pends(y)
    assert y[-1].item() == 2 * N - 1
    assert not pends(y)


def test_calls_run_as_one_program_with_the_same_bits(together: None) -> None:
    generator = np.random.default_rng(0)
    a = xtensor.from_numpy(generator.normal(size=(67, 64)).astype(np.float32)).clone()
    w = xtensor.from_numpy(generator.normal(size=(64, 64)).astype(np.float32)).clone()

    def chain() -> list[Any]:
        v = nn.functional.gelu(a @ w + w[0]).softmax(-1)
        u = nn.functional.layer_norm(v * w[1], (64,)).cumsum(0)
        parts = xtensor.cat([u, v.t().t(), xtensor.where(v > 0.1, u, v)])
        return values(parts, parts.sum(0), parts.std(1), parts.exp().mean())

    apart, together_ = both(chain)
    for one, other in zip(apart, together_, strict=True):
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes()


def test_a_structure_that_came_before_compiles_nothing(together: None) -> None:
    x = xtensor.linspace(-1, 1, N)

    def step(scale: float) -> float:
        return (x.sinh() * scale - x).abs().sum().item()

    step(2.0)
    step(2.0)
    made: list[str] = []
    watcher = lambda name: made.append(name) or (lambda _: None)
    compiles.watch(watcher)
    before = segments.stats()
    try:
        assert step(3.0) != step(4.0)
    finally:
        compiles.unwatch(watcher)
    after = segments.stats()
    assert made == []
    assert after["whole"] - before["whole"] == 2 and after["calls"] - before["calls"] >= 8


def test_what_nobody_can_see_is_not_given(together: None) -> None:
    segments.finish()
    structures.state.tree = structures.Tree()
    calls.begin()
    x = xtensor.ones(N)
    given: list[int] = []

    def step() -> None:
        y = x + 1
        z = (y * 2).sqrt()
        del y
        z.tolist()

    for _ in range(2):
        step()
    for node in [structures.state.tree.root]:
        stack = [node]
        while stack:
            at = stack.pop()
            stack += at.next.values()
            if at.structure is not None:
                given += [len(wanted) for wanted in at.structure.programs if len(at.structure.nodes) == 3]
    assert given and set(given) == {1}


def test_what_is_read_by_indices_waits_and_indices_are_checked_at_once(together: None) -> None:
    x = xtensor.arange(N, dtype=xtensor.float32).requires_grad_()
    at = xtensor.tensor([3, -1, 3])
    segments.finish()

    def picked() -> list[Any]:
        y = x * 2
        found = y[at]
        assert pends(y) and pends(found) and found.shape == (3,)
        with pytest.raises(IndexError, match=f"index {N} is out of bounds for dimension 0 with size {N}"):
            y[xtensor.tensor([0, N])]
        (gradient,) = xtensor.autograd.grad(found.sum(), x)
        return values(found, gradient)

    for found, gradient in (picked(), picked()):
        assert found.tolist() == [6.0, 2.0 * N - 2, 6.0] and gradient.sum() == 6


def test_a_call_that_takes_long_waits_while_what_it_takes_is_being_compiled(
    together: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structures.state, "hot", 1 << 30)
    x, w = xtensor.full((N, 257), 0.5), xtensor.full((257, 257), 0.25)
    for _ in range(2):
        (x @ w).sum().item()
    assert not pends(x @ w)
    monkeypatch.setattr(workers, "submit", lambda work: None)
    y = x.erfc()
    z = y @ w
    assert pends(y) and pends(z)
    first = z.sum().item()
    y = x.erfc()
    z = y @ w
    assert not (pends(y) or pends(z))
    assert z.sum().item() == first


def test_a_first_call_on_the_complete_path_waits_and_a_later_one_does_not(together: None) -> None:
    x = xtensor.ones(2, 3, 37, 11).to(memory_format=xtensor.channels_last)
    a = xtensor.ones(37, 53)
    (x + 0).sum().item()
    for first in (True, False):
        segments.finish()
        y = nn.functional.avg_pool2d(x, (3, 2))
        assert pends(y) is first and y.is_contiguous(memory_format=xtensor.channels_last)
        segments.finish()
        with xtensor.autocast("cpu", dtype=xtensor.bfloat16):
            z = a.T @ a
        assert (pends(z) or not first) and z.dtype is xtensor.bfloat16
        assert y.mean().item() == 1 and z.float().mean().item() == 37


def test_errors_are_raised_by_their_call(together: None) -> None:
    x = xtensor.ones(N).cosh()
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        _ = x + xtensor.ones(N + 1)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.sum(2)
    assert pends(x)


def test_divisions_of_floats_wait_and_those_of_integers_are_looked_at(together: None) -> None:
    x = xtensor.linspace(1, 2, 7) * 3
    y = x * 2
    assert pends(x // y) and pends(x % y) and pends(xtensor.fmod(y, x))
    wanted = values(y // x, (y // x).remainder(x))
    y = x * 2
    y //= x
    assert pends(y)
    z = (y * 1).remainder_(x)
    assert pends(z)
    for made, seen in zip(wanted, values(y, z), strict=True):
        np.testing.assert_array_equal(seen, made)
    n = xtensor.arange(7) * 2
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        n //= n * 0
    n %= n + 1
    assert n.tolist() == [0, 2, 4, 6, 8, 10, 12]


def test_memory_that_is_found_to_be_one_rounds_as_memory_that_is_not(together: None) -> None:
    x = xtensor.tensor([[0.699, 1.068, 0.555]], dtype=xtensor.float64)

    def run() -> Any:
        return (x @ x.amax(-2)).tanh().sum()  # the extremes of one row are that row, without a program's code

    with segments.paused():
        wanted = run().item()
    whole = segments.stats()["whole"]
    for _ in range(8):
        assert run().item() == wanted
        segments.workers.wait()
    assert segments.stats()["whole"] > whole


def test_gradients_and_a_training_step(together: None) -> None:
    def train() -> list[Any]:
        xtensor.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
        optimizer = xtensor.optim.Adam(model.parameters(), lr=0.01)
        x, y = xtensor.randn(8, 16), xtensor.randint(0, 4, (8,))
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return values(xtensor.stack(losses), *model.parameters())

    apart, together_ = both(train)
    for one, other in zip(apart, together_, strict=True):
        assert one.tobytes() == other.tobytes()


def trained(make: Any, steps: int = 4) -> Any:
    """A function that trains a small net by an optimizer, and gives all that it changed."""

    def train() -> list[Any]:
        xtensor.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
        optimizer = make(model.parameters())
        x, y = xtensor.randn(8, 16), xtensor.randint(0, 4, (8,))
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        states = [
            t for own in optimizer.state.values() for t in own.values() if isinstance(t, xtensor.Tensor)
        ]
        return values(*model.parameters(), *[p.grad for p in model.parameters()], *states)

    return train


OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda p: xtensor.optim.SGD(p, lr=0.1),
    "momentum": lambda p: xtensor.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: xtensor.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: xtensor.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: xtensor.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "radam": lambda p: xtensor.optim.RAdam(p, lr=0.01),
    "groups": lambda p: xtensor.optim.Adam(
        [{"params": [q], "lr": 0.01 * i} for i, q in enumerate(list(p)[::-1])], lr=0.01
    ),
}


def test_an_array_that_several_calls_take_is_handed_over_once(together: None) -> None:
    a, b, c = (xtensor.tensor(np.random.default_rng(i).normal(size=N).astype(np.float32)) for i in range(3))

    def chain(first: Any, second: Any, third: Any) -> Any:
        return ((first.sin() + second) * third).numpy()

    def taken() -> list[int]:
        nodes, found = [structures.state.tree.root], []
        while nodes:
            at = nodes.pop()
            nodes += {id(n): n for n in at.next.values()}.values()
            if at.structure is not None and len(at.structure.nodes) == 3:
                found.append(len(at.structure.firsts))
        return found

    structures.state.tree = structures.Tree()
    segments.finish()
    segments.enable(True)
    expected = {p: np.sin(p[0].numpy()) for p in ((a, a, a), (a, b, a), (a, b, c))}
    expected = {p: (v + p[1].numpy()) * p[2].numpy() for p, v in expected.items()}
    counts = []
    # What was one array so far is another one: then its calls run by themselves, and the next program tells these places apart.
    for given in ((a, a, a), (a, a, a), (a, b, a), (a, b, a), (a, b, c), (a, b, c), (a, a, a)):
        np.testing.assert_allclose(chain(*given), expected[given], rtol=1e-5, atol=1e-6)
        counts += taken()
    assert counts == [1, 1, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_step_is_one_program(together: None, name: str) -> None:
    train = trained(OPTIMIZERS[name], steps=6)
    apart, joined = both(train)
    for one, other in zip(apart, joined, strict=True):
        assert one.tobytes() == other.tobytes()
    before = segments.stats()
    train()
    after = segments.stats()
    assert after["ended by"][STEP] - before["ended by"][STEP] == 6
    # The first backward pass is run node by node, which ends segments.
    assert after["whole"] - before["whole"] <= 6 + 6


def test_steps_that_are_not_read_wait_for_nothing(together: None, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(OPTIMIZERS["adam"])()
    ended: list[str] = []
    finish = calls.Segment.finish
    monkeypatch.setattr(
        calls.Segment, "finish", lambda self, why="a value": ended.append(why) or finish(self, why)
    )
    model = nn.Linear(16, 4)
    optimizer = OPTIMIZERS["adam"](model.parameters())
    x = xtensor.ones(8, 16)
    for _ in range(6):
        del ended[:]
        before = segments.stats()["ended by"].get(STEP, 0)
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
    # The step before this one, whose parameters the model reads.
    assert len(ended) == 1 and segments.stats()["ended by"][STEP] == before + 1


def test_a_step_that_waits_is_had_by_whoever_asks_for_it(together: None) -> None:
    model = nn.Linear(16, 4)
    optimizer = OPTIMIZERS["momentum"](model.parameters())
    x = xtensor.ones(8, 16)

    def step() -> Any:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        step()
    loss = step()
    gradient = model.weight.grad
    assert pends(loss) and pends(gradient) and pends(model.weight)
    assert model.weight.detach().numpy().shape == (4, 16) and not pends(loss) and not pends(gradient)
    assert type(model.bias._xt_storage) is Storage
    loss = step()
    xtensor.cpu.synchronize()
    assert not pends(loss) and not pends(model.weight)
    loss = step()
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(model.bias.sum().item()))
    thread.start()
    thread.join()
    assert not pends(loss) and found == [model.bias.sum().item()]


def test_gradients_that_go_before_the_step_is_had_are_not_made(together: None) -> None:
    model = nn.Linear(16, 4, bias=False)
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    x = xtensor.ones(8, 16)
    segments.finish()
    structures.state.tree = structures.Tree()
    segments.enable(True)

    def train(steps: int, keep: bool) -> list[Any]:
        kept: list[Any] = []
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            kept.append(model.weight.grad if keep else None)
            optimizer.step()
        return kept

    def given() -> set[int]:
        nodes, found = [structures.state.tree.root], set()
        while nodes:
            at = nodes.pop()
            nodes += {id(n): n for n in at.next.values()}.values()
            if at.structure is not None and "step" in at.structure.names():
                found |= {len(wanted) for wanted in at.structure.programs}
        return found

    train(6, keep=False)
    segments.finish()
    assert 1 in given()  # the parameter alone
    kept = train(6, keep=True)
    assert all(np.isfinite(g.numpy()).all() for g in kept) and len({g.numpy().tobytes() for g in kept}) == 6


def test_a_step_shows_in_what_shares_memory(together: None) -> None:
    for _ in range(3):
        param = nn.Parameter(xtensor.ones(N))
        optimizer = xtensor.optim.SGD([param], lr=1.0)
        plain, view, exported = param.detach(), param.detach()[3:5], param.detach().numpy()
        version = param._version
        (param * param).sum().backward()
        optimizer.step()
        assert param._version == version + 1
        assert view.tolist() == [-1, -1] and exported[:2].tolist() == [-1, -1] and plain[0].item() == -1


def test_a_step_counts_without_reading(together: None) -> None:
    param = nn.Parameter(xtensor.ones(N))
    optimizer = OPTIMIZERS["adam"]([param])
    counts = []
    for _ in range(4):
        optimizer.zero_grad()
        param.sum().backward()
        optimizer.step()
        counts.append(optimizer.state[param]["step"])
    assert counts[0].item() == 4.0 and optimizer.state_dict()["state"][0]["step"].item() == 4.0
    loaded = OPTIMIZERS["adam"]([param])
    loaded.load_state_dict(optimizer.state_dict())
    param.sum().backward()
    loaded.step()
    assert loaded.state[param]["step"].item() == 5.0


def test_what_only_asks_for_a_dtype_ends_no_segment(together: None) -> None:
    x = xtensor.from_numpy(np.linspace(-1, 1, 1031, dtype=np.float32)) + 0
    mask = x > 0
    chosen = xtensor.where(mask, x, 0.0)
    assert pends(mask) and pends(chosen)
    assert chosen.sum().item() == x.clamp(min=0).sum().item()


# -- whether waiting pays


class Clock:
    """Time that goes by as one says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("waiting", "at_once", "pays", "turns"),
    [
        (1.0, 1.1, True, trial.TURNS),
        (1.1, 1.0, False, trial.TURNS),
        (1.01, 1.0, True, trial.TURNS),
        (0.7, 1.0, True, 4),
        (1.0, 0.5, False, trial.TURNS),
    ],
)
def test_a_trial_compares_windows_of_as_many_calls(
    monkeypatch: pytest.MonkeyPatch, waiting: float, at_once: float, pays: bool, turns: int
) -> None:
    clock = Clock()
    monkeypatch.setattr(trial, "perf_counter", clock)
    switched: list[bool] = []
    ended: list[bool | None] = []
    tried = trial.Trial(7, switched.append, ended.append)
    count = 0
    while not ended:
        clock.now += 0.001 * (waiting if tried.waits else at_once)
        tried.seen(3)
        tried.seen(7)
        count += 1
        assert count < 1000
    assert ended == [pays]
    assert switched == [False, True] * (turns // 2 - 1) + [False]


def test_a_trial_of_a_loop_that_ended_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(trial, "perf_counter", clock)
    ended: list[bool | None] = []
    tried = trial.Trial(7, lambda waits: None, ended.append)
    while not ended:
        tried.seen(3)
    assert ended == [None]
    ended.clear()
    tried = trial.Trial(7, lambda waits: None, ended.append)
    clock.now += 60
    for _ in range(trial.LEAST):
        tried.seen(7)
    assert ended == [None]


@pytest.mark.parametrize("pays", [True, False])
def test_calls_wait_as_a_trial_says(pays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    state = structures.state
    monkeypatch.setattr(trial.Trial, "pays", lambda self: pays)
    monkeypatch.setattr(trial, "SECONDS", 1e-9)
    monkeypatch.setattr(trial, "LEAST", 90)
    monkeypatch.setattr(trial, "LONG", 1e300)
    monkeypatch.setattr(running.budget, "spent", -1e9)
    before = state.on, state.hot, state.background, state.due, state.away, state.ran
    segments.enable(True)
    try:
        state.hot, state.background, state.due, state.ran = 1, True, 2, 0
        x = xtensor.ones(N)
        waited = set()
        for _ in range(400):
            y = x
            for _ in range(9):
                y = y.neg()
            waited.add((state.trial is None, pends(y)))
            y.tolist()
            workers.wait()
            if (state.trial is None and state.due != 2) or state.idle > 1:
                break
        assert {(False, True), (False, False)} <= waited
        assert pends(x.neg()) is pays
        assert (state.due > 2) is pays
    finally:
        state.hot, state.background, state.due, state.away, state.ran = before[1:]
        segments.enable(before[0])


def test_a_loop_that_nobody_reads_runs_turn_by_turn(together: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that their length ends would begin elsewhere each time: here at 37 places, each with a program of its own."""
    monkeypatch.setattr(structures.state, "hot", 4)
    x = xtensor.linspace(0.1, 1, N)

    def loop(turns: int, y: Any) -> Any:
        for _ in range(turns):
            for _ in range(12):
                y = (y * 0.5 + x).abs()
            y = y.sin()
        return y

    def compared(y: Any, turns: int) -> tuple[Any, dict[str, int]]:
        before = segments.stats()["ended by"].get("a loop's turn", 0), segments.stats()["compiled"]
        found = loop(turns, y)
        told = segments.stats()
        with segments.paused():
            assert values(found)[0].tobytes() == values(loop(turns, y))[0].tobytes()
        return found, {
            "turns": told["ended by"]["a loop's turn"] - before[0],
            "programs": told["compiled"] - before[1],
        }

    y, first = compared(x, 60)
    assert first["turns"] > 40 and first["programs"] <= 3
    # What was read in a turn's midst is made up for.
    y, second = compared(y.neg(), 60)
    assert second["turns"] > 40 and second["programs"] <= 3
    ran = [s for s in every(structures.state.tree.root) if s.runs > 40]
    assert 37 in [len(s.nodes) for s in ran]


def every(node: Any) -> list[Any]:
    """The structures that came, of a tree of nodes."""
    below = {id(n): n for n in node.next.values()}.values()
    own = [] if node.structure is None else [node.structure]
    return own + [s for n in below for s in every(n)]


def test_writes_and_versions(together: None) -> None:
    def write() -> list[Any]:
        x = xtensor.zeros(4, N)
        y = x + 1
        y[1].mul_(5)
        z = y.view(-1)
        y.add_(z.view(4, N))
        y[:, 0] = y[:, 1] * 3
        assert y._version == 3 and z._version == 3
        return values(y, z, x)

    apart, together_ = both(write)
    for one, other in zip(apart, together_, strict=True):
        assert one.tobytes() == other.tobytes()


def test_what_was_saved_and_written_since_is_refused(together: None) -> None:
    x = xtensor.ones(N, requires_grad=True)
    y = x.exp()
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_copies_of_views_of_what_waits_wait_too(launching: None) -> None:
    x = xtensor.arange(2.0 * N).view(2, N)
    segments.finish()
    y = x * 2
    z = y.t().contiguous()
    u = y[:, 3:].clone()
    assert pends(y) and pends(z) and pends(u)
    y.add_(1)
    want = np.arange(2.0 * N, dtype=np.float32).reshape(2, N) * 2
    assert np.array_equal(z.numpy(), want.T) and z.stride() == (2, 1)
    assert np.array_equal(u.numpy(), want[:, 3:]) and u.stride() == (N - 3, 1)
    assert np.array_equal(y.numpy(), want + 1)
    c = xtensor.complex(x, x + 1) * 1
    w = c.conj().t().clone()
    assert w.stride() == (1, N) and np.array_equal(w.resolve_conj().numpy(), c.numpy().conj().T)
    v = (x * 3).requires_grad_()
    k = (v * 2).t().clone()
    assert pends(k) and k.stride() == (1, N)
    k.sum().backward()
    assert v.grad.shape == (2, N) and (v.grad == 2).all()
    assert (y.t().to("meta").shape, (x * 5).t().to("cpu", copy=True)[1, 0].item()) == ((N, 2), 5.0)


def test_clipping_joins_what_waits_with_the_same_bits(together: None) -> None:
    def clipped() -> Any:
        xtensor.manual_seed(0)
        layer = nn.Linear(31, 7)
        layer(xtensor.ones(3, 31)).square().sum().backward()
        grads = [p.grad for p in layer.parameters()]
        versions = [g._version for g in grads]
        before = grads[0].clone()
        norm = nn.utils.clip_grad_norm_(layer.parameters(), 0.5)
        assert [g._version - v for g, v in zip(grads, versions)] == [1, 1]
        total = nn.utils.get_total_norm(grads)
        return values(norm, total, before, *grads)

    apart, again = both(clipped)
    assert all(np.array_equal(a, b) for a, b in zip(apart, again, strict=True))
    assert again[1] == pytest.approx(0.5, rel=1e-5)


def test_a_storage_that_was_to_wait_and_holds_its_array_is_one_like_any_other(together: None) -> None:
    p = nn.Parameter(xtensor.ones(7))
    p.grad = xtensor.full((7,), 3.0)
    p.grad._xt_storage.__class__ = LazyStorage
    assert type(p.grad._xt_storage.operand) is type(p._xt_storage.array)
    assert type(p.grad._xt_storage) is Storage


def test_another_thread_sees_what_waits(together: None) -> None:
    y = xtensor.ones(N) * 3
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append((y + 1).sum().item()))
    thread.start()
    thread.join()
    assert found == [4.0 * N] and not pends(y)


@pytest.fixture
def launching(together: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on an accelerator, where calls take longer to launch than to compute: what is long, and what is gained."""
    for module in (structures, running, calls):
        monkeypatch.setattr(module, "pace", lambda: structures.ACCELERATOR)
    segments.finish()
    structures.state.tree = structures.Tree()
    with sizes.paused():
        calls.begin()
        yield
    segments.finish()
    structures.state.tree = structures.Tree()
    calls.begin()


def test_a_training_step_is_one_segment_where_calls_take_long_to_launch(
    launching: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    xtensor.manual_seed(0)
    q = nn.Linear(8, 8)
    head = nn.Linear(8, 5)
    optimizer = xtensor.optim.AdamW([*q.parameters(), *head.parameters()], lr=0.1)
    x, y = xtensor.randn(2, 7, 8), xtensor.zeros(14, dtype=xtensor.int64)

    def step() -> Any:
        optimizer.zero_grad()
        z = q(x).view(2, 7, 2, 4).transpose(1, 2)
        z = nn.functional.scaled_dot_product_attention(z, z, z).transpose(1, 2).reshape(2, 7, 8)
        loss = nn.functional.cross_entropy(head(z).flatten(0, 1), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_([*q.parameters(), *head.parameters()], 1e-2)
        optimizer.step()
        return loss, norm

    monkeypatch.setattr(executor, "enabled", True)
    for _ in range(6):
        step()[0].item()
        executor.wait()
    seen: list[tuple[int, str]] = []
    structures.watchers.append(lambda names, whole, why: seen.append((len(names), why)))
    try:
        loss, norm = step()
        found = [loss.item(), norm.item(), q.weight.sum().item()]
    finally:
        structures.watchers.pop()
    assert seen[0][1] == STEP and seen[0][0] > 6 and all(np.isfinite(found))


def test_programs_within_a_program_stay_apart_on_an_accelerator_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind barriers, since only the CPU calls what it does not put inline."""
    monkeypatch.setattr(apart.jax, "devices", lambda: [SimpleNamespace(platform="gpu")])
    multiply, add = jax.jit(lambda a, b: a * b), jax.jit(lambda a, b: a + b)

    def function(a: Any, b: Any) -> Any:
        return add(multiply(a, b), b)

    a, b = np.float32(3), np.arange(N, dtype=np.float32)
    made = jax.make_jaxpr(lambda *args: apart.apart(function, args))(a, b)
    assert [e.primitive.name for e in made.eqns][1::2] == ["optimization_barrier"] * 2
    assert np.array_equal(apart.apart(function, (a, b)), a * b + b)


def test_what_an_interrupt_cut_off_still_pends(together: None, monkeypatch: pytest.MonkeyPatch) -> None:
    y = xtensor.ones(N).asinh() + 1
    assert segments.waiting()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("xtensor.xla.segments.calls.run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            y.tolist()
    assert pends(y)
    assert y[0].item() == pytest.approx(1 + np.arcsinh(np.float32(1)))


def test_an_interrupt_leaves_all_results_of_a_call_or_none(together: None) -> None:
    structures.state.hot = 1_000  # by the calls' own programs
    x = xtensor.ones(3, N)
    before = sys.gettrace()
    sys.settrace(watched)
    try:
        (x * 2).max(0)[0].tolist()
        at, reached = 0, True
        while reached:
            at += 1
            largest, where = (x * 2).max(0)
            reached, _ = stopped(largest._xt_storage.raw.value, at)
            assert where[0].item() == 0 and largest[1].item() == 2, at
            sys.settrace(watched)  # the exception has ended the tracing
    finally:
        sys.settrace(before)
    assert at > 10


def test_a_call_noted_down_while_its_segment_runs_is_made_later(together: None) -> None:
    """As a thread may that had looked for the segment just before another one needed its values."""
    x = xtensor.ones(N)
    segments.finish()
    segment = structures.state.segment
    y = x.asinh()
    node, args, _ = segment.calls[-1]
    y.tolist()
    late = pended(segment, node.aval, node.first)
    segment.calls.append((node, args, late))
    assert late.value().tolist() == y.tolist() and len(segment.calls) == 1


def test_a_failed_compile_is_raised_where_the_value_is_needed(
    together: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = xtensor.ones(N, 3).asinh().erfinv()

    def fails(*args: Any) -> Any:
        raise RuntimeError("no code for this")

    with monkeypatch.context() as patch:
        patch.setattr(store.Program, "_compiled", fails)
        with pytest.raises(RuntimeError, match="no code for this"):
            y.tolist()
    assert pends(y)
    assert y[0, 0].item() == pytest.approx(1.1035, abs=1e-4)


def test_work_is_done_once_and_again_after_an_interrupt() -> None:
    done: list[int] = []

    def interrupted() -> int:
        done.append(1)
        if len(done) == 1:
            raise KeyboardInterrupt
        return 3

    work = Work(interrupted)
    with pytest.raises(KeyboardInterrupt):
        work.result()
    assert work.result() == 3 and work.result() == 3 and len(done) == 2


def test_a_call_that_may_find_no_memory_is_looked_at_once(
    together: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never waits; what a trace tells of it was asked at each call, 2 ms of 0.8 that `topk` of 256x1024 takes."""
    asked: list[str] = []
    facts = waiters.facts
    monkeypatch.setattr(waiters, "LARGE", 1)
    monkeypatch.setattr(
        waiters, "facts", lambda program, *told: asked.append(program.__name__) or facts(program, *told)
    )
    x = xtensor.ones(7, N)
    x.tolist()
    for _ in range(3):
        y = x.logcumsumexp(1)
        assert not pends(y)
    assert asked.count("logcumsumexp") == 1


@pytest.mark.parametrize("wait", [lambda: xtensor.devices.synchronize("cpu"), xtensor.cpu.synchronize])
def test_synchronize_runs_what_waits(together: None, wait: Any) -> None:
    y = xtensor.ones(N) * 7
    assert pends(y)
    wait()
    assert not pends(y)


def test_a_program_that_ends_early_ends_well() -> None:
    code = "import xtensor as x\nfor n in range(3, 9): x.ones(n, n).sinh().softmax(1)\nprint('end')"
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "XTENSOR_SEGMENTS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert found.stdout == "end\n" and found.stderr == ""


def test_structures_that_never_come_again_let_calls_run_at_once(together: None) -> None:
    state = structures.state
    x = xtensor.ones(8)
    for length in range(2, 2 + structures.STRANGE):
        y = x
        for at in range(8):
            y = y + 1 if length >> at & 1 else y * 2
        y.tolist()
        if state.idle:
            break
    assert state.idle and not segments.enabled()
    assert not pends(x + 1)
    state.idle = 1
    _ = x + 1
    assert segments.enabled() and pends(x + 1)


def test_what_ended_segments_is_counted(together: None) -> None:
    def ended() -> dict[str, int]:
        return xtensor.engine.stats()["segments"]["ended by"]

    x = xtensor.ones(N)
    segments.finish()
    before = ended()
    (x.neg() - 1).tolist()
    with segments.paused():
        y = x.neg()
    z = x.neg() - 1
    with segments.paused():
        pass
    for _ in range(structures.MOST + 1):
        z = z.neg()
    found = {why: n - before.get(why, 0) for why, n in ended().items()}
    assert not pends(y) and found["a value"] == 1 and found["a pause"] == 1
    assert found.get("its length", 0) + found.get("its work", 0) == 1


def test_calls_that_are_read_each_stop_waiting(together: None) -> None:
    x = xtensor.ones(N)
    assert pends(x.expm1())
    for _ in range(structures.UNPAID + 1):
        x.expm1().tolist()
    assert not pends(x.expm1())
    assert pends(x.expm1().log1p())


def test_sizes_that_vary_are_compiled_once_however_they_run(together: None) -> None:
    x = xtensor.arange(47.0)

    def run() -> float:
        v = x
        for _ in range(6):
            v = v[1:] * v[:-1]
        return v.sum().item()

    with segments.paused():
        run()
        run()
    for _ in range(sizes.OFTEN + 4):
        run()
    asked: list[str] = []

    def watcher(name: str) -> Any:
        return lambda loaded: asked.append(name)

    with segments.paused():
        run()
        compiles.watch(watcher)
        try:
            run()
        finally:
            compiles.unwatch(watcher)
    assert asked == []


def test_what_waits_is_turned_as_it_lies_beside_what_is_read_on_the_host() -> None:
    y = xtensor.arange(27.0).view(3, 3, 3)
    for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1)):
        back = tuple(np.argsort(order))
        x = y.permute(order).contiguous().permute(back)
        assert xtensor.equal(x * 0.25 + y * 0.5, y * 0.75)


def test_a_block_in_which_no_call_waits(together: None) -> None:
    x = xtensor.ones(N) + 1
    with segments.paused():
        assert not pends(x) and not pends(x + 1)
    assert pends(x + 1)
    assert xtensor.settings.segments(False) is True
    assert not pends(x * 2)
    assert xtensor.settings.segments(True) is False


def test_compiled_functions_and_transforms(together: None) -> None:
    w = xtensor.linspace(0, 1, N) * 2

    def f(x: Any) -> Any:
        return (x.sin() * w).sum()

    x = xtensor.linspace(-1, 1, N) + 0.5
    plain = f(x)
    assert xtensor.compile(f)(x).item() == pytest.approx(plain.item(), rel=1e-6)
    slope = xtensor.func.grad(f)(x)
    assert xtensor.allclose(slope, x.cos() * w)
    assert xtensor.allclose(xtensor.vmap(f)(xtensor.stack([x, x])), plain.expand(2))


def test_a_first_backward_pass_waits_for_its_programs_and_a_later_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    segments.enable(True)
    plans = importlib.import_module("xtensor.plans.plans").executor
    monkeypatch.setattr(plans, "enabled", False)
    seen: list[bool] = []

    def passes() -> Any:
        x = xtensor.linspace(-1, 1, 1039, requires_grad=True)
        y = (x * 3).tanh().exp()
        y.detach().sum().item()  # forward is there
        y.backward(xtensor.ones(1039))
        assert x.grad is not None
        seen.append(pends(x.grad))
        return x.grad.tolist()

    found = [passes() for _ in range(4)]
    assert found.count(found[0]) == 4
    assert seen[0]
    assert not any(seen[2:])
    with segments.paused():
        assert passes() == found[0]


def test_the_switch_says_whether_calls_may_wait_not_whether_they_do_now(monkeypatch):
    before = xtensor.settings.segments(True)
    try:
        monkeypatch.setattr(structures.state, "idle", 100)
        monkeypatch.setattr(structures.state, "segment", None)
        assert xtensor.settings.segments() is True
        assert xtensor.settings.segments(False) is True
        assert xtensor.settings.segments(True) is False
    finally:
        xtensor.settings.segments(before)
