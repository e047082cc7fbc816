"""A world that changes between calls never gets a stale answer, and what cannot be captured runs as it is."""

from __future__ import annotations

import copy
import datetime
import random
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor import nn

F = nn.functional
SCALE = 2.0


def calls(make: Callable[[], Any], compiled: bool) -> tuple[list[Any], Any]:
    """What a function gives, call by call, while the world changes: `make` gives it and what is done before each call."""
    xtensor.manual_seed(3)
    function, changes = make()
    run = xtensor.compile(function) if compiled else function
    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "xtensor.compile")
        for change in changes:
            args = change()
            args = args if isinstance(args, tuple) else (args,) if args is not None else ()
            try:
                out = run(*args)
            except (ValueError, IndexError, RuntimeError) as error:
                found.append(f"{type(error).__name__}: {error}")
            else:
                found.append(out.detach().numpy().copy() if isinstance(out, xtensor.Tensor) else out)
    return found, getattr(run, "_xt_compiled", None)


def agrees(make: Callable[[], Any], programs: int | None = None) -> Any:
    """Compare with eager code; so many programs were made."""
    eager, _ = calls(make, False)
    fast, inner = calls(make, True)
    for number, (a, b) in enumerate(zip(eager, fast, strict=True)):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(b, a, rtol=1e-6, err_msg=f"call {number}")
        else:
            assert a == b, number
    if programs is not None:
        assert len(inner.entries) == programs, (inner.reasons, inner.missed)
    return inner


def test_numbers_of_closures_globals_defaults_and_objects() -> None:
    class Options:
        rate = 1.0

        def __init__(self) -> None:
            self.shift = 0.5
            self.parts = [1.0, 2.0]

    def make() -> Any:
        holder = [2.0]
        options = Options()
        table = {"a": 1.0, "b": {"c": 2.0}}
        x = xtensor.ones(3)
        factor = 1.5

        def f(a: Any, default: float = 2.0) -> Any:
            return (
                (a * holder[0] + options.shift * options.rate + table["b"]["c"] + sum(options.parts) + factor)
                * SCALE
                * default
            )

        def set_holder() -> Any:
            holder[0] = 3.0
            return x

        def set_shift() -> Any:
            options.shift = 7.0
            return x

        def set_rate() -> Any:
            options.rate = 4.0  # type: ignore[misc]
            return x

        def set_table() -> Any:
            table["b"]["c"] = 9.0  # type: ignore[index]
            return x

        def set_part() -> Any:
            options.parts.append(5.0)
            return x

        def set_factor() -> Any:
            nonlocal factor
            factor = 8.0
            return x

        def set_default() -> Any:
            f.__defaults__ = (5.0,)
            return x

        def nothing() -> Any:
            return x

        changes = [nothing, nothing]
        for change in (set_holder, set_shift, set_rate, set_table, set_part, set_factor):
            changes += [change, nothing]
        return f, changes

    # Three of the numbers became values of the program.
    inner = agrees(make, 4)
    assert not inner.reasons


def test_arguments_of_other_shapes_dtypes_and_kinds() -> None:
    def make() -> Any:
        x = xtensor.arange(12.0).reshape(3, 4)

        def f(a: Any, k: Any = 1, *, b: Any = None) -> Any:
            return a * k + (0 if b is None else b.sum()) + a.stride(0)

        return f, [
            lambda: x,
            lambda: x,
            lambda: (x, 2),
            lambda: (x, 2.0),
            lambda: x.t(),
            lambda: x[1:],
            lambda: x[:2],
            lambda: x.double(),
            lambda: x.clone().requires_grad_(),
            lambda: x + 1,
        ]

    agrees(make)


def test_one_tensor_given_twice() -> None:
    def make() -> Any:
        x, y = xtensor.ones(3), xtensor.ones(3)

        def f(a: Any, b: Any) -> Any:
            a.add_(1.0)
            return a * 2 + b

        return f, [
            lambda: (x, y),
            lambda: (x, y),
            lambda: (x, x),
            lambda: (y, y),
            lambda: (x[:2], x[1:]),
            lambda: (x, y),
        ]

    agrees(make)


def test_modules_flags_hooks_and_parameters() -> None:
    def make() -> Any:
        xtensor.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
        x = xtensor.randn(4, 3)
        handles: list[Any] = []

        def f(a: Any) -> Any:
            return model(a) * 2

        def hook() -> Any:
            handles.append(model[0].register_forward_hook(lambda m, i, o: o + 1))
            return x

        def unhook() -> Any:
            handles.pop().remove()
            return x

        def replace() -> Any:
            model[0] = nn.Linear(3, 3)
            return x

        def data() -> Any:
            model[0].weight.data = xtensor.ones(3, 3)
            return x

        def number() -> Any:
            model[1].eps = 0.5
            return x

        def weight() -> Any:
            with xtensor.no_grad():
                model[0].weight.mul_(2.0)
            return x

        def frozen() -> Any:
            model[0].weight.requires_grad_(False)
            return x

        def evaluating() -> Any:
            model.eval()
            return x

        return f, [
            lambda: x, lambda: x, evaluating, hook, lambda: x, unhook, replace, data, weight, number, frozen, lambda: x,
        ]  # fmt: skip

    agrees(make)


def test_modes() -> None:
    def make() -> Any:
        w = xtensor.ones(3, requires_grad=True)
        x = xtensor.arange(3.0)

        def f(a: Any) -> Any:
            out = (a * w).sum() + xtensor.zeros(1)
            return out.requires_grad, str(out.dtype)

        def off() -> Any:
            xtensor.set_grad_enabled(False)
            return x

        def on() -> Any:
            xtensor.set_grad_enabled(True)
            return x

        def double() -> Any:
            xtensor.set_default_dtype(xtensor.float64)
            return x

        def single() -> Any:
            xtensor.set_default_dtype(xtensor.float32)
            return x

        return f, [lambda: x, lambda: x, off, lambda: x, on, double, lambda: x, single, lambda: x]

    try:
        agrees(make)
    finally:
        xtensor.set_default_dtype(xtensor.float32)
        xtensor.set_grad_enabled(True)


def test_gradients_that_come_and_go() -> None:
    def make() -> Any:
        w = nn.Parameter(xtensor.ones(3))
        x = xtensor.arange(3.0)

        def f(a: Any) -> Any:
            (a * w).sum().backward()
            return w.grad

        def drop() -> Any:
            w.grad = None
            return x

        def other() -> Any:
            w.grad = xtensor.full((3,), 5.0)
            return x

        return f, [lambda: x, lambda: x, lambda: x, drop, lambda: x, other, lambda: x, drop, lambda: x]

    assert len(agrees(make).entries) == 2


def test_optimizer_options_and_states() -> None:
    def make() -> Any:
        w = nn.Parameter(xtensor.ones(3))
        opt = xtensor.optim.Adam([w], lr=0.1)
        kept: list[Any] = []

        def f() -> Any:
            opt.zero_grad()
            (w * w).sum().backward()
            opt.step()
            return w * 1

        def option(name: str, value: Any) -> Callable[[], None]:
            return lambda: opt.param_groups[0].__setitem__(name, value)

        def saved() -> None:
            kept.append(dict(opt.state_dict()))

        def loaded() -> None:
            opt.load_state_dict(kept[0])

        def added() -> None:
            opt.add_param_group({"params": [nn.Parameter(xtensor.zeros(2))]})

        none = lambda: None
        return f, [
            none, none, option("lr", 0.5), none, option("weight_decay", 0.1), none, option("maximize", True), none,
            saved, none, loaded, none, added, none, option("betas", (0.5, 0.6)), none,
        ]  # fmt: skip

    agrees(make)


def test_tensors_that_are_replaced_without_a_word() -> None:
    def make() -> Any:
        xtensor.manual_seed(0)
        model = nn.Linear(2, 2)
        opt = xtensor.optim.Adam(model.parameters(), lr=0.1)
        x = xtensor.ones(1, 2)

        def f(a: Any) -> Any:
            opt.zero_grad()
            loss = model(a).square().sum()
            loss.backward()
            opt.step()
            return loss.detach()

        def state() -> Any:
            opt.state[model.weight]["exp_avg"] = xtensor.ones(2, 2)
            return x

        def member() -> Any:
            model._parameters["bias"] = nn.Parameter(xtensor.zeros(2))
            return x

        def values() -> Any:
            with xtensor.no_grad():
                model.weight.copy_(xtensor.ones(2, 2))
            return x

        return f, [lambda: x, lambda: x, lambda: x, state, lambda: x, member, lambda: x, values, lambda: x]

    agrees(make, 3)


CHANGED: dict[str, Callable[[Any, Any], Any]] = {
    "a member": lambda opt, w: opt.state[w].__setitem__("exp_avg", xtensor.ones(3)),
    "members": lambda opt, w: opt.state[w].update(exp_avg=xtensor.ones(3), exp_avg_sq=xtensor.ones(3)),
    "merged": lambda opt, w: opt.state.__ior__({w: dict(opt.state[w], exp_avg=xtensor.ones(3))}),
    "a state": lambda opt, w: opt.state.__setitem__(w, dict(opt.state[w], exp_avg=xtensor.ones(3))),
    "its member": lambda opt, w: opt.state[w].__setitem__("exp_avg", xtensor.zeros(3)),
    "a plain state's": lambda opt, w: opt.state[w].__setitem__("exp_avg_sq", xtensor.ones(3)),
    "a state gone": lambda opt, w: opt.state.pop(w),
    "none": lambda opt, w: opt.state.clear(),
    "all": lambda opt, w: setattr(opt, "state", copy.deepcopy(opt.state)),
    "one of another optimizer": lambda opt, w: xtensor.optim.Adam([w]).state[w].update(step=1),
    "the same": lambda opt, w: opt.state[w].__setitem__("step", opt.state[w]["step"]),
}


def test_states_of_optimizers_that_are_replaced() -> None:
    def make() -> Any:
        w = nn.Parameter(xtensor.ones(3))
        opt = xtensor.optim.Adam([w], lr=0.1)

        def f() -> Any:
            opt.zero_grad()
            (w * w).sum().backward()
            opt.step()
            return xtensor.cat([w, *(v.reshape(-1) for v in opt.state[w].values())])

        before = [lambda: None, lambda: None]
        changes: list[Any] = [lambda change=change: change(opt, w) and None for change in CHANGED.values()]
        return f, [*before, *(each for change in changes for each in (change, *before))]

    agrees(make)


def test_modules_called_with_other_parameters() -> None:
    model = nn.Linear(2, 2)
    x = xtensor.ones(1, 2)
    expected = [
        xtensor.func.functional_call(model, {"weight": xtensor.full((2, 2), k)}, x).tolist()
        for k in (1.0, 2.0)
    ]
    model.compile()
    plain = [model(x).tolist() for _ in range(3)]
    found = [
        xtensor.func.functional_call(model, {"weight": xtensor.full((2, 2), k)}, x).tolist()
        for k in (1.0, 2.0)
    ]
    assert found == expected and model(x).tolist() == plain[0]


def test_indices_out_of_range_raise_as_eager_does() -> None:
    def make() -> Any:
        table = nn.Embedding(4, 2)
        good, bad = xtensor.tensor([0, 1]), xtensor.tensor([0, 9])

        def f(i: Any) -> Any:
            return table(i).sum() + table(i % 5 + 1).sum()

        return f, [
            lambda: good,
            lambda: good,
            lambda: bad,
            lambda: good,
            lambda: xtensor.tensor([3, 3]),
            lambda: good,
        ]

    inner = agrees(make, 1)
    assert inner.entries[0].program.calls >= 2


def test_targets_out_of_range_raise_as_eager_does() -> None:
    def make() -> Any:
        x = xtensor.randn(3, 4)
        target = [xtensor.tensor([0, 1, 3]), xtensor.tensor([0, 1, 4]), xtensor.tensor([0, -100, 2])]

        def f(t: Any) -> Any:
            return F.cross_entropy(x, t)

        return f, [
            lambda: target[0],
            lambda: target[0],
            lambda: target[1],
            lambda: target[2],
            lambda: target[0],
        ]

    agrees(make, 1)


LOG: list[Any] = []
COUNT = 0


def counts(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return x + COUNT


def logs(x: Any) -> Any:
    LOG.append(x.sum().item() if False else len(LOG))
    return x + len(LOG)


def draws(x: Any) -> Any:
    return x * 0 + (1.0 if random.Random(0).random() < 2 else 0.0)


def reads_clock(x: Any) -> Any:
    return x * 0 + (time.time() > 0)


def reads_date(x: Any) -> Any:
    return x * 0 + (datetime.datetime.now().year > 0)


def draws_numpy(x: Any) -> Any:
    return x * 0 + float(np.random.rand() < 2)  # noqa: NPY002


def reads_value(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x * 3


def masks(x: Any) -> Any:
    return x[x > 1.0]


def uses_numpy(x: Any) -> Any:
    return x + xtensor.from_numpy(x.numpy() * 2)


def tries(x: Any) -> Any:
    try:
        return x * x.sum().item()
    except Exception:
        return x * 100


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: Any) -> Any:
        self.count += 1
        return x + self.count


def makes_iterators() -> Any:
    numbers = iter(range(100))

    def f(x: Any) -> Any:
        return x + next(numbers)

    return f


EAGER = {
    "global": (lambda: counts, "COUNT"),
    "list": (lambda: logs, "list.append"),
    "random": (lambda: draws, "random"),
    "clock": (lambda: reads_clock, "time.time"),
    "date": (lambda: reads_date, "datetime.now"),
    "numpy's numbers": (lambda: draws_numpy, "RandomState.rand"),
    "value": (lambda: reads_value, "value of a tensor"),
    "mask": (lambda: masks, "value of a tensor"),
    "numpy": (lambda: uses_numpy, "tensor"),
    "handler": (lambda: tries, "catches"),
    "attribute": (Counter, "count"),
    "iterator": (makes_iterators, "iterator"),
}


def test_attributes_that_are_set_are_set_at_every_call() -> None:
    class Keeper:
        last: Any = None
        flag = 0

        def __call__(self, x: Any) -> Any:
            y = x * 2
            self.last = y + 1
            self.flag = 3
            return y + self.last.sum()

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            self.hidden = self.linear(x)
            return nn.Softplus()(self.hidden) * 2

    xtensor.manual_seed(0)
    keeper, layer = Keeper(), Layer()
    calls = xtensor.compile(lambda x: keeper(x) + layer(x)), lambda x: keeper(x) + layer(x)
    inner = calls[0]._xt_compiled
    for number in range(4):
        x = xtensor.arange(4.0) - number
        found = []
        for call in calls:
            y = call(x)
            found.append([v.detach().numpy().copy() for v in (y, keeper.last, layer.hidden)])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
        assert keeper.flag == 3
        keeper.flag = 0
    assert len(inner.entries) == 1 and inner.entries[0].program.calls == 3


def test_an_attribute_that_is_read_before_it_is_set_ends_the_capture() -> None:
    class Running:
        total: Any = 0.0

        def __call__(self, x: Any) -> Any:
            before = self.total
            self.total = x.sum()
            return x + before

    def make() -> Any:
        return Running(), [lambda n=n: xtensor.arange(3.0) + n for n in range(5)]

    inner = agrees(make, 0)
    assert any("sets the attribute total" in reason for reason in inner.reasons)


@pytest.mark.parametrize("name", EAGER)
def test_what_cannot_be_captured_runs_as_it_is_and_says_why(name: str, no_tracers: Any) -> None:
    global COUNT
    maker, why = EAGER[name]
    found = []
    for compiled in (False, True):
        COUNT = 0
        LOG.clear()
        function = maker()
        run = xtensor.compile(function) if compiled else function
        values = []
        for number in range(4):
            x = xtensor.arange(4.0) - number
            if compiled and number == 1:
                with pytest.warns(
                    UserWarning, match=f"cannot be captured: .*{why}.*\\(.*test_guards.py:\\d+\\)"
                ):
                    values.append(run(x).tolist())
            else:
                values.append(run(x).tolist())
        found.append(values)
    assert found[0] == found[1]
    no_tracers()


def test_fullgraph_raises() -> None:
    run = xtensor.compile(reads_value, fullgraph=True)
    run(xtensor.ones(2))
    with pytest.raises(RuntimeError, match=r"value of a tensor.*test_guards.py"):
        run(xtensor.ones(2))


def test_a_failed_capture_is_rolled_back_to_the_bit() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    opt = xtensor.optim.Adam(model.parameters())
    x = xtensor.randn(4, 3)
    log = xtensor.zeros(3)

    def step(stop: Any) -> Any:
        opt.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        opt.step()
        log.add_(1.0)
        if stop.item() > 0:
            raise ValueError("the user's own")
        return loss.detach()

    def world() -> Any:
        tensors = [*model.state_dict().values(), log, *[p.grad for p in model.parameters()]]
        tensors += [v for own in opt.state.values() for v in own.values()]
        arrays = [None if t is None else t.detach().numpy().tobytes() for t in tensors]
        versions = [t._version for t in tensors if t is not None]
        return arrays, versions, xtensor.get_rng_state().tolist(), [id(p.grad) for p in model.parameters()]

    run = xtensor.compile(step)
    run(xtensor.zeros(1))
    compiled = run._xt_compiled
    before = world()
    tensors: list[Any] = []
    args = (xtensor.zeros(1),)
    skeleton = compiled.skeleton_of((args, {}), tensors)
    with pytest.raises(BaseException, match="value of a tensor"):
        compiled.captured(args, {}, tensors, skeleton, compiled.world())
    assert world() == before
    run(xtensor.zeros(1))
    assert compiled.head is not None
    with pytest.raises(ValueError, match="the user's own"):
        run(xtensor.ones(1))


def test_what_was_exported_never_changes_and_versions_are_checked() -> None:
    w = nn.Parameter(xtensor.ones(2))
    opt = xtensor.optim.SGD([w], lr=0.1)

    @xtensor.compile
    def step() -> Any:
        opt.zero_grad()
        (w * w).sum().backward()
        opt.step()
        return w.sum().detach()

    for _ in range(3):
        step()
    view, exported, old = w.detach(), w.detach().numpy().copy(), w.grad
    kept = w.detach().clone().numpy()
    numbers, out = old.tolist(), (w * 2).exp()
    step()
    assert (kept == exported).all() and old.tolist() == numbers and w.grad is not old
    assert view.tolist() == w.tolist()
    late = (w * w).sum()
    step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        late.backward()
    assert out.shape == (2,)


def test_a_program_that_fails_leaves_all_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    w = nn.Parameter(xtensor.ones(2))
    opt = xtensor.optim.Adam([w])

    @xtensor.compile
    def step() -> Any:
        opt.zero_grad()
        (w * F.dropout(w, 0.5)).sum().backward()
        opt.step()

    for _ in range(3):
        step()
    program = step._xt_compiled.entries[0].program

    def world() -> Any:
        state = [v.tolist() for v in opt.state[w].values()]
        return w.tolist(), w._version, id(w.grad), state, xtensor.get_rng_state().tolist()

    def fail(*args: Any) -> Any:
        raise RuntimeError("no memory")

    before = world()
    with monkeypatch.context() as patch:
        patch.setattr(program, "program", lambda donate: fail)
        with pytest.raises(RuntimeError, match="no memory"):
            step()
    assert world() == before
    step()
    assert world() != before and program.calls == 3


def test_modes_that_a_function_leaves_changed() -> None:
    def f(x: Any) -> Any:
        xtensor.set_grad_enabled(False)
        return x * 2

    run = xtensor.compile(f)
    try:
        run(xtensor.ones(1))
        xtensor.set_grad_enabled(True)
        with pytest.warns(UserWarning, match="modes"):
            run(xtensor.ones(1))
        assert not xtensor.is_grad_enabled()
    finally:
        xtensor.set_grad_enabled(True)


def test_many_shapes_end_in_one_warning() -> None:
    run = xtensor.compile(lambda x: x * 2 + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, 10):
            run(xtensor.ones(n))
    with pytest.warns(UserWarning, match="captured 8 times.*shapes"):
        assert run(xtensor.ones(11)).tolist() == [3.0] * 11
    assert run(xtensor.ones(12)).tolist() == [3.0] * 12


def test_random_changes_of_the_world(rng: Any, full: bool) -> None:
    """Shapes, flags, numbers, rates and gradients, changed at random."""

    def make(order: list[int]) -> Any:
        xtensor.manual_seed(0)
        model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 4))
        opt = xtensor.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        numbers = {"scale": 1.0}

        def step(x: Any) -> Any:
            opt.zero_grad()
            loss = (model(x) * numbers["scale"]).square().mean()
            loss.backward()
            opt.step()
            return loss.detach()

        changes: list[Callable[[], Any]] = [
            lambda: model.train(),
            lambda: model.eval(),
            lambda: numbers.update(scale=2.0),
            lambda: numbers.update(scale=1.0),
            lambda: opt.param_groups[0].update(lr=opt.param_groups[0]["lr"] * 0.9),
            lambda: setattr(model[1], "p", 0.25),
            lambda: setattr(model[1], "p", 0.5),
            lambda: [setattr(p, "grad", xtensor.ones_like(p)) for p in model.parameters()],
            lambda: model[2].weight.data.mul_(0.9),
            lambda: None,
        ]
        return step, changes, model, order

    order = [int(i) for i in rng.integers(0, 10, 400 if full else 60)]
    sizes = [int(i) for i in rng.integers(2, 4, len(order))]
    found = []
    for compiled in (False, True):
        step, changes, model, _ = make(order)
        run = xtensor.compile(step) if compiled else step
        if compiled:
            run._xt_compiled.limit = 64
        xtensor.manual_seed(1)
        losses = []
        for which, size in zip(order, sizes, strict=True):
            changes[which]()
            losses.append(
                run(xtensor.full((size, 4), 0.5) + xtensor.arange(size * 4.0).reshape(size, 4)).item()
            )
        found.append((losses, [p.tolist() for p in model.parameters()]))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=2e-4, atol=1e-6)
    for a, b in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-3, atol=1e-5)


def test_an_optimizer_that_is_new_makes_its_states_eagerly() -> None:
    def make() -> Any:
        xtensor.manual_seed(0)
        model = nn.Linear(3, 2)
        holder = [xtensor.optim.Adam(model.parameters(), lr=0.1)]
        x = xtensor.ones(4, 3)

        def step(a: Any) -> Any:
            holder[0].zero_grad()
            loss = model(a).square().sum()
            loss.backward()
            holder[0].step()
            return loss.detach()

        def other() -> Any:
            holder[0] = xtensor.optim.Adam(model.parameters(), lr=0.01)
            return x

        return step, [lambda: x] * 3 + [other] + [lambda: x] * 3

    inner = agrees(make)
    assert len(inner.entries) == 2 and not inner.reasons


def test_versions_of_tensors_that_are_views_of_their_memory() -> None:
    a, b = xtensor.arange(6.0).reshape(2, 3), xtensor.arange(6.0).reshape(2, 3)
    run = xtensor.compile(lambda: b.copy_(b).sum())
    for _ in range(4):
        a.copy_(a)
        run()
        assert a._version == b._version


def test_a_number_that_gives_an_optimizer_other_states() -> None:
    def make() -> Any:
        xtensor.manual_seed(0)
        model = nn.Linear(3, 2)
        opt = xtensor.optim.SGD(model.parameters(), lr=0.1)
        x = xtensor.ones(4, 3)

        def step(a: Any) -> Any:
            opt.zero_grad()
            loss = model(a).square().sum()
            loss.backward()
            opt.step()
            return loss.detach()

        def heavier() -> Any:
            opt.param_groups[0]["momentum"] = 0.9
            return x

        return step, [lambda: x] * 3 + [heavier] + [lambda: x] * 3

    agrees(make, 2)


def test_sizes_that_vary_have_programs_of_their_own() -> None:
    x = xtensor.arange(200.0)
    run = xtensor.compile(lambda a: (a * 2).sum(), dynamic=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for size in [*range(1, 80), *range(70, 80)]:
            assert run(x[:size]).item() == size * (size - 1)
    inner = run._xt_compiled
    assert len(inner.entries) == 64 and not inner.gave_up
    assert inner.missed["shapes, dtypes, strides or requires_grad of arguments"] == 77
    (message,) = {str(w.message) for w in told}
    assert "has 8 programs, and keeps 64" in message and "requires_grad of arguments" in message


def test_methods_of_containers_called_as_functions_of_their_classes() -> None:
    names, held = {"a", "b"}, [1]

    def count(x: Any) -> Any:
        return x * len(set.symmetric_difference(names, {"b", "c"}))

    def grow(x: Any) -> Any:
        list.append(held, 3)
        return x * len(held)

    x = xtensor.ones(2)
    compiled = xtensor.compile(count, fullgraph=True)
    for more in ("a", "d", "e"):
        names.add(more)
        assert compiled(x)[0] == count(x)[0]
    compiled = xtensor.compile(grow, fullgraph=True)
    assert compiled(x)[0] == 2
    with pytest.raises(RuntimeError, match=r"list\.append on one that was there before"):
        compiled(x)


def test_a_limit_and_a_name() -> None:
    def doubled(x: xtensor.Tensor) -> xtensor.Tensor:
        return x * 2

    compiled = xtensor.compile(doubled, name="twice", recompile_limit=1, isolate_recompiles=True)
    for _ in range(3):
        compiled(xtensor.ones(3))
    with pytest.warns(UserWarning, match="twice was captured 1 times and runs eagerly"):
        for size in (4, 5, 6, 7, 8):
            assert compiled(xtensor.ones(size)).tolist() == [2.0] * size
