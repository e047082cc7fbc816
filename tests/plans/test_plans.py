"""The plan executor: the same gradients as the interpreter's, from one program; and what it declines."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xtensor as xt
from tests.fuzz.autograd import execute, generate
from tests.fuzz.judging import judge
from xtensor import engine
from xtensor.plans import donation
from xtensor.plans.patterns import RECENT, Pattern
from xtensor.plans.plans import PlanExecutor, executor


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlanExecutor]:
    """Plans from the second time a structure is seen, never from the first, compiled at once."""
    executor.clear()
    engine.reset_stats()
    monkeypatch.setattr(executor, "enabled", True)
    monkeypatch.setattr(executor, "background", False)
    monkeypatch.setattr(executor, "hot", 2)
    monkeypatch.setattr(executor, "at_once", 0)
    yield executor
    executor.clear()


def leaf(*sizes: int, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).normal(size=sizes)
    return xt.tensor(values, dtype=xt.float64, requires_grad=True)


def mixed(x: Any, y: Any) -> Any:
    """Views, broadcasting, several outputs, a shared subgraph, and a leaf that is used twice."""
    a, b = (x @ y).tanh().split(2, dim=1)
    c = a.t() * b.sum(0, keepdim=True).t() + x[1, :2].unsqueeze(1)
    d = xt.cat([c, c.exp()[:, ::2].expand(2, 2)], dim=1)
    return (d.max(dim=1).values * y.diagonal()[:2]).sum() + x.mean()


def gradients(run: Callable[..., Any], *leaves: Any) -> list[Any]:
    for t in leaves:
        t.grad = None
    run(*leaves).backward()
    return [t.grad.numpy().copy() for t in leaves]


def test_a_plan_gives_the_interpreters_gradients(plans: PlanExecutor) -> None:
    x, y = leaf(3, 4), leaf(4, 4, seed=1)
    found = [gradients(mixed, x, y) for _ in range(4)]
    for later in found[1:]:
        for expected, got in zip(found[0], later, strict=True):
            np.testing.assert_array_equal(got, expected)  # to the bit
    assert engine.stats()["runs"] == {"interpreter": 1, "plan": 3}
    assert plans.stats() == {"structures": 1, "compiled": plans.compiled, "donated": plans.donated}


def layers(x: Any, weights: list[Any]) -> Any:
    """What rounds differently when it is fused: a convolution, norms, attention, products that are summed."""
    conv, scale, qkv, out = weights
    h = xt.nn.functional.conv2d(x, conv, padding=1).sigmoid()
    h = xt.nn.functional.max_pool2d(h, 2).flatten(2).transpose(1, 2)
    h = xt.nn.functional.layer_norm(h, (6,), scale) * h.tanh()
    q, k, v = (h @ qkv).chunk(3, dim=-1)
    h = h + xt.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return xt.nn.functional.cross_entropy((h @ out).flatten(0, 1), xt.arange(32) % 5)


def test_a_plan_rounds_as_the_interpreter_does(plans: PlanExecutor) -> None:
    random = np.random.default_rng(0)
    x, *weights = (
        xt.tensor(random.normal(size=s).astype("float32"), requires_grad=True)
        for s in ((2, 3, 8, 8), (6, 3, 3, 3), (6,), (6, 18), (6, 5))
    )
    found = [gradients(lambda *w: layers(x, list(w)), *weights) for _ in range(2)]
    assert engine.stats()["runs"] == {"interpreter": 1, "plan": 1}
    for expected, got in zip(*found, strict=True):
        np.testing.assert_array_equal(got, expected)


def identical(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    return repr(left) == repr(right)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 300), marks=pytest.mark.full)])
def test_random_programs_agree_to_the_bit(
    plans: PlanExecutor, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    monkeypatch.setattr(plans, "hot", 1)
    found: list[bool] = []
    recent = plans.patterns.recent
    monkeypatch.setattr(plans.patterns, "recent", lambda *args: noted(found, recent(*args)))
    for seed in seeds:
        program = generate(seed)
        monkeypatch.setattr(plans, "enabled", False)
        interpreted = list(execute(program, xt))
        monkeypatch.setattr(plans, "enabled", True)
        for _ in range(2):  # looked up, and among those that ran last
            planned = list(execute(program, xt))
            difference = judge(program, iter(interpreted), iter(planned), identical).difference
            assert difference is None, f"seed {seed}: {difference}\n{program}"
    assert plans.stats()["compiled"] > 0
    assert any(found)


def noted(found: list[bool], result: Any) -> Any:
    found.append(result is not None)
    return result


def test_a_long_graph_comes_more_often_before_it_is_compiled(
    plans: PlanExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(nodes: int) -> int:
        """How often a chain ran before it had a program."""
        x: Any = leaf(3)
        before, runs = plans.compiled, 0
        while plans.compiled == before:
            total = x
            for _ in range(nodes):
                total = total * 2.0
            total.backward(xt.ones(3))
            runs += 1
        return runs

    monkeypatch.setattr(plans, "hot", 3)
    assert [compiled(n) for n in (4, 11, 60)] == [3, 3, 5]


def test_new_values_and_offsets_compile_nothing(plans: PlanExecutor) -> None:
    x: Any = leaf(8, 3)
    compiled = plans.compiled
    for i in range(8):
        del x.grad
        (x[i] * float(i + 2)).sum().backward()
        expected = np.zeros((8, 3))
        expected[i] = i + 2
        np.testing.assert_array_equal(x.grad.numpy(), expected)
    assert plans.compiled == compiled + 1


def test_shapes_dtypes_and_static_arguments_are_other_structures(plans: PlanExecutor) -> None:
    for _ in range(3):
        for sizes in ((3,), (4,)):
            for dim in (0, -1):
                for dtype in (xt.float32, xt.float64):
                    x: Any = xt.ones(2, *sizes, dtype=dtype, requires_grad=True)
                    x.exp().cumsum(dim).sum().backward()
                    n = x.shape[dim]
                    shape = (2, 1) if dim == 0 else (1, n)
                    expected = np.e * np.arange(n, 0, -1).reshape(shape) * np.ones(x.shape)
                    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)
                    assert x.grad.dtype is dtype


def test_gradients_accumulate_and_the_graph_is_released(plans: PlanExecutor) -> None:
    x: Any = leaf(3)
    for count in range(1, 5):
        out = x.exp().sum()
        out.backward()
        np.testing.assert_allclose(x.grad.numpy(), count * np.exp(x.detach().numpy()))
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            out.backward()
    out = x.exp().sum()
    out.backward(retain_graph=True)
    out.backward()
    assert engine.stats()["runs"]["plan"] == 5


def test_nothing_that_was_saved_outlives_the_pass(plans: PlanExecutor, waits: None, donated: None) -> None:
    x: Any = leaf(3)
    for _ in range(4):
        hidden = x.exp()
        array = weakref.ref(hidden._xt_storage.array)
        out = hidden.sin().sum()
        del hidden
        out.backward()
        del out
        assert array() is None or gc.collect() >= 0
        assert array() is None


@pytest.fixture
def donated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are donated however small they are."""
    monkeypatch.setattr(donation, "SMALL", 0)


def chain(x: Any, keep: list[Any]) -> Any:
    hidden = (x * 2).exp()
    keep.append(hidden)
    return hidden.sin()


def test_what_only_the_graph_can_see_becomes_a_gradient(
    plans: PlanExecutor, waits: None, donated: None
) -> None:
    x: Any = leaf(3, 4)
    seed = xt.ones(3, 4, dtype=xt.float64)
    wanted = 2 * np.exp(2 * x.detach().numpy()) * np.cos(np.exp(2 * x.detach().numpy()))
    chain(x, []).backward(seed)  # the results of a program's first call have shapes of their own
    plans.clear()
    before = plans.donated
    reused = []
    for _ in range(20):
        x.grad = None
        out = chain(x, [])
        # The exponential is saved twice: as a result, and as what the sine read.
        buffer = out.grad_fn.saved[0][2].unsafe_buffer_pointer()
        out._xt_storage.array.block_until_ready()
        out.backward(seed)
        np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-12)
        reused.append(x.grad._xt_storage.array.unsafe_buffer_pointer() == buffer)
    assert any(reused[1:])  # not always: XLA copies a buffer that a thread has not let go of
    assert plans.stats() == {"structures": 1, "compiled": plans.compiled, "donated": before + 19}


def test_what_others_see_is_kept(plans: PlanExecutor, waits: None, donated: None) -> None:
    x: Any = leaf(3, 4)
    seed = xt.ones(3, 4, dtype=xt.float64)
    chain(x, []).backward(seed)
    plans.clear()
    kept: list[Any] = []
    before = plans.donated
    for _ in range(3):
        chain(x, []).backward(seed)
    assert plans.donated == before + 2
    # The same structure, and now someone holds what was donated before: the tensor, its array, or NumPy.
    chain(x, kept).backward(seed)
    out = chain(x, kept)
    array = kept.pop()._xt_storage.array
    out.backward(seed)
    out = chain(x, kept)
    values = kept.pop().detach().numpy()
    out.backward(seed)
    wanted = np.exp(2 * x.detach().numpy())
    for found in (kept[0].detach().numpy(), np.asarray(array), values):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    # A graph that is kept is run again.
    for _ in range(3):
        out = chain(x, [])
        out.backward(seed, retain_graph=True)
        out.backward(seed, retain_graph=True)
    x.grad = None
    out.backward(seed)
    np.testing.assert_allclose(x.grad.numpy(), 2 * wanted * np.cos(wanted), rtol=1e-12)


def test_arrays_that_are_one_only_sometimes(plans: PlanExecutor, waits: None, donated: None) -> None:
    x: Any = leaf(3, 4)
    seed = xt.ones(3, 4, dtype=xt.float64)

    def run(other: Any) -> Any:
        x.grad = None
        hidden = (x * 2).exp()
        out = hidden * (hidden.detach() if other is None else other)
        del hidden
        out.backward(seed)
        return x.grad.numpy()

    hidden = np.exp(2 * x.detach().numpy())
    run(None)
    plans.clear()
    before = plans.donated
    for _ in range(3):
        np.testing.assert_allclose(run(None), 2 * hidden * hidden, rtol=1e-12)
    assert plans.donated == before + 2
    for factor in (3.0, 4.0, 5.0):
        np.testing.assert_allclose(run(seed * factor), 2 * hidden * factor, rtol=1e-12)
    np.testing.assert_allclose(run(None), 2 * hidden * hidden, rtol=1e-12)
    assert plans.donated == before + 2


def test_an_array_from_outside_is_never_donated(plans: PlanExecutor) -> None:
    x: Any = leaf(3, 4)
    for _ in range(4):
        outside = np.full((3, 4), 0.5)
        (x * xt.from_numpy(outside)).sum().backward()
        np.testing.assert_array_equal(outside, 0.5)


def test_grad_of_some_inputs(plans: PlanExecutor) -> None:
    x, y, z = leaf(3), leaf(3, seed=1), leaf(3, seed=2)
    for _ in range(3):
        one, none = xt.autograd.grad((x * y.exp()).sum(), (y, z), allow_unused=True)
        assert one is not None
        assert none is None
        np.testing.assert_allclose(one.numpy(), (x * y.exp()).detach().numpy())
        assert x.grad is None
    assert engine.stats()["runs"]["plan"] == 2
    for _ in range(3):
        (other,) = xt.autograd.grad((x * y.exp()).sum(), (x,))
        np.testing.assert_allclose(other.numpy(), y.exp().detach().numpy())


def test_leaves_are_accumulated_in_the_interpreters_order(plans: PlanExecutor) -> None:
    x, y, z = leaf(2), leaf(2, seed=1), leaf(2, seed=2)
    order: list[list[str]] = []
    original = type(x)._accumulate_grad

    def noted(self: Any, grad: Any, create: bool) -> None:
        order[-1].append(next(n for n, t in (("x", x), ("y", y), ("z", z)) if t is self))
        original(self, grad, create)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(x), "_accumulate_grad", noted)
        for _ in range(3):
            order.append([])
            ((x * y).exp() * z + x.sin() * y).sum().backward()
    assert engine.stats()["runs"] == {"interpreter": 1, "plan": 2}
    assert order[0] == order[1] == order[2]


def test_graphs_that_begin_alike_are_told_apart(plans: PlanExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = leaf(3), leaf(3, seed=1)
    programs: list[Any] = [
        lambda: (x * y).exp().sum(),
        lambda: (x * x).exp().sum(),
        lambda: (y * x).exp().sum(),
        lambda: (x * y.detach()).exp().sum(),
        lambda: (x[:2] * y[:2]).exp().sum(),
        lambda: (x[1:] * y[1:]).exp().sum(),
        lambda: (x * y).exp().mul(2.0).sum(),
        lambda: (x.exp() * y.exp()).exp().sum(),
        lambda: (x * y).view(3).exp().sum(),
        lambda: (x.exp() * y).exp().sum(),
        lambda: (x.view(3) * y).exp().sum(),
        lambda: xt.cat([x, y]).exp().sum(),
        lambda: xt.cat([x, y, x]).exp().sum(),
    ]

    def found(run: Any) -> list[Any]:
        x.grad = y.grad = None
        run().backward()
        return [None if t.grad is None else t.grad.tolist() for t in (x, y)]

    expected = [found(run) for run in programs]
    for _ in range(2):
        assert [found(run) for run in programs] == expected
    walks: list[Any] = []
    looked_up = plans._looked_up
    monkeypatch.setattr(plans, "_looked_up", lambda *args: walks.append(args) or looked_up(*args))
    for run, wanted in zip(programs, expected, strict=True):
        found(run)
        before = len(walks)
        assert found(run) == wanted
        assert len(walks) == before  # what came last is recognised without a walk to find its hints


def test_what_a_graph_gained_is_seen_in_one_that_is_known(plans: PlanExecutor) -> None:
    x: Any = leaf(3)
    for _ in range(4):
        x.grad = None
        x.exp().sum().backward()
    calls = []
    handle = x.register_hook(lambda g: calls.append("tensor"))
    x.exp().sum().backward()
    handle.remove()
    x.register_post_accumulate_grad_hook(lambda t: calls.append("leaf"))
    x.exp().sum().backward()
    y = x.exp()
    y.retain_grad()
    y.sum().backward()
    assert calls == ["tensor", "leaf", "leaf"]
    np.testing.assert_array_equal(y.grad.numpy(), np.ones(3))


def declined() -> set[str]:
    return {reason.removeprefix("plan: ") for reason in engine.stats()["fallbacks"]}


class Doubled(xt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * 2


def hooked(x: Any) -> None:
    y = x * 2
    y.register_hook(lambda g: g * 3)
    y.sum().backward()


def in_anomaly_mode(x: Any) -> None:
    with xt.autograd.detect_anomaly(check_nan=False):
        (x * 2).sum().backward()


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize(
    ("reason", "run", "factor"),
    [
        ("hooks", hooked, 6),
        ("no operator", lambda x: Doubled.apply(x).sum().backward(), 2),
        ("create_graph", lambda x: (x * 2).sum().backward(create_graph=True), 2),
        ("anomaly mode or a profile", in_anomaly_mode, 2),
        ("several roots", lambda x: xt.autograd.backward([x.sum(), x.sum()]), 2),
    ],
)
def test_what_a_plan_declines_the_interpreter_runs(reason: str, run: Any, factor: float) -> None:
    for _ in range(3):
        x: Any = leaf(3)
        run(x)
        np.testing.assert_array_equal(x.grad.detach().numpy(), np.full(3, float(factor)))
    assert declined() == {reason}
    assert "plan" not in engine.stats()["runs"]


def test_a_saved_value_that_was_written_is_the_interpreters_error(plans: PlanExecutor) -> None:
    x: Any = leaf(3)
    for _ in range(3):
        x.exp().sum().backward()
    y = x.exp()
    out = y.sum()
    with xt.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_switched_off(plans: PlanExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "enabled", False)
    x: Any = leaf(3)
    for _ in range(3):
        x.exp().sum().backward()
    assert engine.stats()["runs"] == {"interpreter": 3}
    assert declined() == {"off"}


def test_compiled_in_the_background(plans: PlanExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "background", True)
    x: Any = leaf(5)
    for _ in range(2):
        x.exp().sum().backward()
    plans.wait()
    del x.grad
    x.exp().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(x.detach().numpy()))
    assert engine.stats()["runs"] == {"interpreter": 2, "plan": 1}


def test_the_number_of_structures_is_bounded(plans: PlanExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "limit", 3)
    for n in range(1, 8):
        xt.ones(n, requires_grad=True).exp().sum().backward()
    assert plans.stats()["structures"] == 3


def test_a_graph_is_compared_with_few_of_many(plans: PlanExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    w = leaf(3, 3)
    count = 30

    def run(n: int) -> None:  # differs far from the root only
        (xt.ones(n, 3, dtype=xt.float64) @ w).tanh().mean(0).exp().sum().backward()

    monkeypatch.setattr(plans, "hot", 1)
    for n in range(1, count + 1):
        run(n)
    assert plans.stats()["structures"] == count
    compared: list[Pattern] = []
    find = Pattern.find
    monkeypatch.setattr(Pattern, "find", lambda self, *args: compared.append(self) or find(self, *args))
    engine.reset_stats()
    for n in range(1, count + 1):
        run(n)
    assert engine.stats()["runs"] == {"plan": count}
    assert len(compared) <= 2 * count + RECENT
    # A few that take turns are all among those that are compared first.
    for n in (3, 4, 5) * 2:
        run(n)
    walks: list[Any] = []
    monkeypatch.setattr(plans, "_looked_up", walks.append)
    for n in (3, 4, 5) * 2:
        run(n)
    assert walks == []


def test_what_is_used_is_kept(plans: PlanExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "limit", 4)
    x: Any = leaf(3)
    for n in range(4, 24):
        x.exp().sum().backward()
        xt.ones(n, requires_grad=True).exp().sum().backward()
    assert engine.stats()["runs"] == {"interpreter": 21, "plan": 19}
    assert plans.stats()["structures"] <= 4


def test_a_graph_too_large_for_one_program_is_interpreted(
    plans: PlanExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "largest", 10)
    x: Any = leaf(2)
    out = x
    for _ in range(20):
        out = out + x
    out.sum().backward()
    assert declined() == {"too many nodes"}
    np.testing.assert_array_equal(x.grad.numpy(), [21, 21])
