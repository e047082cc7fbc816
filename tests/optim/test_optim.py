"""Optimizers against PyTorch's over several steps, their states, hooks and errors; learning rate schedules."""

import copy
import gc
import os
import pickle
import re
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest

import xtensor
from xtensor import gradients, interop, nn, optim
from xtensor.optim import update
from xtensor.xla import compiles, sizes, store

SHAPES = [(3, 4), (5,), (), (2, 2, 2)]
CASES = [
    ("SGD", dict(lr=0.1)),
    ("SGD", dict(lr=0.1, momentum=0.9)),
    ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)),
    ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.3, maximize=True)),
    ("Adam", dict(lr=0.1)),
    ("Adam", dict(lr=0.1, amsgrad=True, weight_decay=0.1)),
    ("AdamW", dict(lr=0.1, amsgrad=True)),
    ("AdamW", dict(lr=0.1, maximize=True)),
]


def pair(torch, rng, name, options, dtype=np.float32):
    """The same parameters and optimizer in both libraries: `(library, parameters, optimizer)` of each."""
    start = [rng.normal(size=shape).astype(dtype) for shape in SHAPES]
    made = []
    for lib in (xtensor, torch):
        params = [lib.nn.Parameter(lib.tensor(value)) for value in start]
        groups = [{"params": params[:2]}, {"params": params[2:], "lr": 0.05}]
        made.append((lib, params, getattr(lib.optim, name)(groups, **options)))
    return made


def step(rng, made, dtype=np.float32):
    grads = [rng.normal(size=shape).astype(dtype) for shape in SHAPES]
    for lib, params, optimizer in made:
        for param, grad in zip(params, grads, strict=True):
            param.grad = lib.tensor(grad)
        optimizer.step()


def assert_same(made, tolerance=2e-6):
    (_, ours, mine), (_, theirs, other) = made
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)
    one, two = mine.state_dict(), other.state_dict()
    assert one["param_groups"] == two["param_groups"]
    assert one["state"].keys() == two["state"].keys()
    for key, state in two["state"].items():
        assert list(one["state"][key]) == list(state)
        for name, value in state.items():
            found = one["state"][key][name]
            np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=tolerance, atol=tolerance)
            assert str(found.dtype).removeprefix("xtensor.") == str(value.dtype).removeprefix("torch.")


@pytest.mark.parametrize("name, options", CASES)
def test_steps_as_pytorchs(torch, rng, name, options):
    made = pair(torch, rng, name, options)
    for i in range(4):
        if i == 2:
            for _, _, optimizer in made:
                optimizer.param_groups[0]["lr"] = 0.02
        step(rng, made)
    assert_same(made)
    assert repr(made[0][2]) == repr(made[1][2])


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_other_dtypes(torch, rng, dtype):
    made = pair(torch, rng, "Adam", dict(lr=0.1), dtype)
    for _ in range(3):
        step(rng, made, dtype)
    assert_same(made)


def test_states_are_interchangeable(torch, rng):
    made = pair(torch, rng, "Adam", dict(lr=0.1))
    step(rng, made)
    state = made[1][2].state_dict()
    states = {
        key: {name: xtensor.tensor(value.numpy()) for name, value in entry.items()}
        for key, entry in state["state"].items()
    }
    made[0][2].load_state_dict(state | {"state": states})
    step(rng, made)
    assert_same(made)


def test_a_step_is_one_program_and_rates_compile_nothing(monkeypatch):
    # Parameters of other tests have other sizes at this place.
    monkeypatch.setattr(sizes.families._State, "enabled", False)
    update.program_of.cache_clear()
    params = [nn.Parameter(xtensor.ones(3)), nn.Parameter(xtensor.ones(2))]
    optimizer = optim.AdamW(params, lr=0.1)
    used, made = [], []
    plain = update.program_of
    monkeypatch.setattr(update, "program_of", lambda *key: used.append(plain(*key)) or used[-1])

    def watcher(name):
        return lambda loaded: made.append(name) if loaded is not None else None

    compiles.watch(watcher)
    for i in range(4):
        for param in params:
            param.grad = xtensor.ones_like(param)
        optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
        optimizer.step()
    compiles.unwatch(watcher)
    assert len(used) == 4
    assert len(set(map(id, used))) == 1
    assert made.count("step") == 1


def test_what_others_hold_does_not_change():
    param = nn.Parameter(xtensor.ones(3))
    optimizer = optim.SGD([param], lr=1.0)
    clone, export, view = param.detach().clone(), param.detach().numpy(), param.detach()[1:]
    held = interop.to_jax(param.detach())
    loss = (param * param).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    assert clone.tolist() == held.tolist() == [1, 1, 1]
    assert (export.tolist(), view.tolist()) == ([-1, -1, -1], [-1, -1])  # as PyTorch's
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_step_reuses_the_memory_of_parameters_and_states(waits: None):
    param = nn.Parameter(xtensor.ones(256, 256))
    optimizer = optim.Adam([param], lr=0.1)

    def step():
        param.grad = xtensor.ones(256, 256)
        optimizer.step()
        state = optimizer.state[param]
        held = (param, state["exp_avg"], state["exp_avg_sq"])
        return {t._xt_storage.array.block_until_ready().unsafe_buffer_pointer() for t in held}

    # Not always: XLA copies a buffer that a thread has not let go of.
    assert any(step() == step() for _ in range(10))


def test_a_gradient_that_is_the_parameter_itself():
    param = nn.Parameter(xtensor.full((3,), 2.0))
    optimizer = optim.SGD([param], lr=0.25)
    for expected in (1.5, 1.125):
        param.grad = param.detach()
        optimizer.step()
        assert param.tolist() == [expected] * 3


def test_views_and_tied_memory():
    base = xtensor.zeros(2, 2)
    row, same = nn.Parameter(base[0]), nn.Parameter(base[0])
    optimizer = optim.SGD([row, same], lr=1.0)
    row.grad = same.grad = xtensor.ones(2)
    optimizer.step()
    assert base.tolist() == [[-2, -2], [0, 0]]


def test_devices():
    params = [nn.Parameter(xtensor.ones(2, device=place)) for place in ("cpu", "cpu:1")]
    optimizer = optim.Adam(params, lr=0.5)
    for param in params:
        param.grad = xtensor.ones_like(param)
    optimizer.step()
    assert [str(p.device) for p in params] == ["cpu", "cpu:1"]
    assert params[0].tolist() == params[1].tolist() == pytest.approx([0.5, 0.5])
    assert [str(optimizer.state[p]["exp_avg"].device) for p in params] == ["cpu", "cpu:1"]


def test_closures_hooks_and_copies():
    param = nn.Parameter(xtensor.ones(1))
    optimizer = optim.SGD([param], lr=0.25, momentum=0.5)
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))

    def closure():
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 1
    assert (param.item(), calls) == (0.5, ["before", "after"])
    twin = copy.deepcopy(optimizer)
    assert twin.param_groups[0]["params"][0] is not param
    assert next(iter(twin.state.values()))["momentum_buffer"].tolist() == [2]
    optimizer.zero_grad()
    assert param.grad is None


ERRORS = {
    "no parameters": lambda lib, p: lib.optim.SGD([]),
    "a tensor": lambda lib, p: lib.optim.SGD(p),
    "a number": lambda lib, p: lib.optim.SGD([3]),
    "not a leaf": lambda lib, p: lib.optim.SGD([p * 2]),
    "rate": lambda lib, p: lib.optim.SGD([p], lr=-1),
    "nesterov": lambda lib, p: lib.optim.SGD([p], nesterov=True),
    "beta": lambda lib, p: lib.optim.Adam([p], betas=(1.5, 0.9)),
    "kinds of betas": lambda lib, p: lib.optim.Adam([p], betas=(0, 0.9)),
    "fused and foreach": lambda lib, p: lib.optim.Adam([p], fused=True, foreach=True),
    "twice": lambda lib, p: lib.optim.SGD([{"params": [p]}, {"params": [p]}]),
    "a set": lambda lib, p: lib.optim.SGD([{"params": {p}}]),
    "names": lambda lib, p: lib.optim.SGD([("a", p), lib.nn.Parameter(lib.ones(1))]),
    "state of another": lambda lib, p: lib.optim.SGD([p]).load_state_dict({"state": {}, "param_groups": []}),
    "base class": lambda lib, p: lib.optim.lr_scheduler.StepLR(3, 1),
}


@pytest.mark.parametrize("case", ERRORS)
def test_misuse_raises_pytorchs_errors(torch, case):
    raised = []
    for lib in (xtensor, torch):
        with pytest.raises(Exception) as info:
            ERRORS[case](lib, lib.nn.Parameter(lib.ones(2)))
        raised.append((info.type, re.sub(r"\btorch\b", "xtensor", str(info.value))))
    assert raised[0] == raised[1]


SCHEDULES = [
    ("LambdaLR", dict(lr_lambda=lambda e: 0.95**e)),
    ("StepLR", dict(step_size=3)),
    ("MultiStepLR", dict(milestones=[2, 5, 5])),
    ("ConstantLR", {}),
    ("LinearLR", {}),
    ("ExponentialLR", dict(gamma=0.9)),
    ("PolynomialLR", dict(power=2.0)),
    ("CosineAnnealingLR", dict(T_max=4, eta_min=0.01)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=2)),
    ("CyclicLR", dict(base_lr=0.1, max_lr=1.0, step_size_up=3, step_size_down=2, mode="triangular2")),
    ("OneCycleLR", dict(max_lr=1.0, total_steps=20)),
]


@pytest.mark.parametrize("name, options", SCHEDULES)
def test_schedules_as_pytorchs(torch, rng, name, options):
    made = pair(torch, rng, "SGD", dict(lr=0.1, momentum=0.5))
    schedules = [getattr(lib.optim.lr_scheduler, name)(optimizer, **options) for lib, _, optimizer in made]
    for _ in range(12):
        for (_, _, optimizer), schedule in zip(made, schedules, strict=True):
            optimizer.step()
            schedule.step()
        assert schedules[0].get_last_lr() == pytest.approx(schedules[1].get_last_lr())
        assert [g["momentum"] for g in made[0][2].param_groups] == pytest.approx(
            [g["momentum"] for g in made[1][2].param_groups]
        )
    assert set(schedules[0].state_dict()) == set(schedules[1].state_dict())


@pytest.mark.parametrize(("momentum", "expected"), [(0, 1 - 0.1 * 3), (0.9, 1.0)])
def test_no_gradient_flows_through_the_first_momentum_buffer(momentum: float, expected: float) -> None:
    x = xtensor.tensor([2.0], requires_grad=True)
    param = x.clone()
    param.retain_grad()
    param.grad = 3 * x
    optim.SGD([param], lr=0.1, momentum=momentum, differentiable=True).step()
    (found,) = xtensor.autograd.grad(param.sum(), x)
    assert found.item() == pytest.approx(expected)


def test_states_are_dictionaries_in_copies_files_and_trees(tmp_path) -> None:
    w = nn.Parameter(xtensor.ones(3))
    opt = optim.Adam([w], lr=0.1)
    w.sum().backward()
    opt.step()
    assert isinstance(opt.state, defaultdict) and isinstance(opt.state[w], dict)
    assert repr(opt.state).startswith("defaultdict(<class 'dict'>, {")
    own = opt.state_dict()["state"][0]
    assert type(own) is dict and own["exp_avg"] is opt.state[w]["exp_avg"]
    for made in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
        (state,) = made.state.values()
        assert state["exp_avg"].tolist() == own["exp_avg"].tolist() and state is not opt.state[w]
        assert made.state[xtensor.zeros(1)] == {}
    assert copy.copy(opt).state is opt.state
    assert b"xtensor.optim.states" not in pickle.dumps((opt.state[w], opt))
    xtensor.save(opt.state_dict(), tmp_path / "opt.pt")
    assert type(xtensor.load(tmp_path / "opt.pt")["state"][0]) is dict
    from xtensor.utils import _pytree as trees

    doubled = trees.tree_map(lambda t: t * 2, opt.state)
    assert type(doubled) is defaultdict and type(doubled[w]) is dict
    assert doubled[w]["exp_avg"].tolist() == (own["exp_avg"] * 2).tolist()


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop"])
def test_a_first_step_is_compiled_while_gradients_are_looked_for(kind, monkeypatch):
    asked = []
    ahead = store.Program.ahead

    def seen(self, *examples):
        ahead(self, *examples)
        asked.append((self, list(self.begun)))

    monkeypatch.setattr(store.Program, "ahead", seen)
    layer = nn.Linear(37, 41)
    optimizer = getattr(xtensor.optim, kind)(layer.parameters(), lr=0.125)
    optimizer.zero_grad()
    layer(xtensor.ones(3, 37)).sum().backward()
    ((program, begun),) = asked
    forms = []
    entry = store.Program._entry
    monkeypatch.setattr(
        store.Program,
        "_entry",
        lambda self, form, args: forms.append((self, form)) or entry(self, form, args),
    )
    optimizer.step()
    xtensor.cpu.synchronize()
    (form,) = [form for made, form in forms if made is program] or begun
    assert begun in ([], [form])  # none where an earlier test has had it compiled
    assert not program.begun
    layer(xtensor.ones(3, 37)).sum().backward()
    assert len(asked) == 1


def test_optimizers_that_are_gone_are_not_told_of_a_backward_pass():
    before = len(gradients.before_backward)
    kept = [xtensor.optim.SGD(nn.Linear(2, 3).parameters(), lr=0.1) for _ in range(5)]
    assert len(gradients.before_backward) == before + 5
    kept.clear()
    gc.collect()
    assert len(gradients.before_backward) == before


STEPS = """
import xtensor
from xtensor import nn
xtensor.manual_seed(0)
model = nn.Sequential(nn.Linear(256, {width}), nn.Tanh(), nn.Linear({width}, 4))
optimizer = xtensor.optim.AdamW(model.parameters(), lr=0.01)
x = xtensor.ones(8, 256)
for _ in range(4):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
print(model[0].weight.sum().item(), xtensor.compile_cache.stats()["misses"])
"""


@pytest.mark.parametrize(
    "width", [pytest.param(64, marks=pytest.mark.full), 256, pytest.param(1024, marks=pytest.mark.full)]
)
def test_a_second_start_compiles_no_other_step(width: int, tmp_path) -> None:
    # Steps that joined a segment in the first start gave no buffers up; the second begins without segments.
    kept = {k: v for k, v in os.environ.items() if k not in ("JAX_COMPILATION_CACHE_DIR", "XTENSOR_SEGMENTS")}
    environment = {**kept, "XTENSOR_COMPILE_CACHE": str(tmp_path)}
    told = []
    for _ in range(2):
        command = [sys.executable, "-c", STEPS.format(width=width)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        told.append(done.stdout.split())
    assert told[0][0] == told[1][0]
    assert int(told[0][1]) > 0
    assert told[1][1] == "0"
