"""Graphs that are plans from their first time on: those whose nodes would compile programs that no graph before has made."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import xtensor as xt
from xtensor import engine
from xtensor.operators.nodes import OpNode
from xtensor.plans.plans import PlanExecutor, executor
from xtensor.xla.compiles import unwatch, watch

sizes = itertools.count(211)


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlanExecutor]:
    """Plans as users have them."""
    executor.clear()
    engine.reset_stats()
    monkeypatch.setattr(executor, "enabled", True)
    yield executor
    executor.clear()


@pytest.fixture
def compiled() -> Iterator[list[str]]:
    """The names of the programs that are compiled or loaded meanwhile, one by one."""
    names: list[str] = []

    def watcher(name: str):
        return lambda loaded: None if loaded is None else names.append(name)

    watch(watcher)
    yield names
    unwatch(watcher)


def leaf(size: int) -> xt.Tensor:
    return xt.linspace(0.1, 0.9, size).requires_grad_()


def loss(x: xt.Tensor) -> xt.Tensor:
    return (x.sin().exp() * x.tanh()).log().sum()


def gradient(size: int, function=loss, **options) -> xt.Tensor:
    x = leaf(size)
    function(x).backward(**options)
    assert x.grad is not None
    return x.grad


def runs() -> dict[str, int]:
    return {name: count for name, count in engine.stats()["runs"].items() if count}


def test_a_new_graph_is_one_program(compiled: list[str]):
    x = leaf(next(sizes))
    result = loss(x)
    compiled.clear()
    result.backward()
    assert runs() == {"plan": 1}
    assert [name for name in compiled if "backward" in name] == ["backward_of_6_nodes"]


def test_its_gradients_are_the_interpreters_to_the_bit(plans: PlanExecutor, monkeypatch):
    size = next(sizes)
    planned = gradient(size)
    monkeypatch.setattr(plans, "enabled", False)
    assert gradient(size).tolist() == planned.tolist()
    assert runs() == {"plan": 1, "interpreter": 1}


def test_it_is_a_plan_ever_after(plans: PlanExecutor):
    size, before = next(sizes), plans.compiled
    first = gradient(size)
    for _ in range(3):
        assert gradient(size).tolist() == first.tolist()
    assert runs() == {"plan": 4}
    assert plans.compiled == before + 1


def test_a_graph_of_known_nodes_is_left_to_the_interpreter():
    size = next(sizes)
    gradient(size)
    gradient(size, lambda x: (x.tanh() * x.sin().exp()).log().exp().sum())
    assert runs() == {"plan": 1, "interpreter": 1}


def test_a_graph_of_equal_nodes_is_left_to_the_interpreter():
    def repeated(x: xt.Tensor) -> xt.Tensor:
        for _ in range(20):
            x = x.sin().cos().tanh()
        return x

    size = next(sizes)
    x = leaf(size)
    repeated(x).backward(xt.ones(size))
    assert runs() == {"interpreter": 1}


def test_a_small_graph_is_left_to_the_interpreter():
    gradient(next(sizes), lambda x: x.sin().sum())
    assert runs() == {"interpreter": 1}


def test_it_can_be_switched_off(plans: PlanExecutor, monkeypatch):
    monkeypatch.setattr(plans, "at_once", 0)
    gradient(next(sizes))
    assert runs() == {"interpreter": 1}


def test_a_graph_that_cannot_be_traced_as_a_whole_is_the_interpreters(monkeypatch):
    calls = []

    def broken(cls, pattern, grads, values):
        calls.append(cls)
        raise ValueError("not as a whole")

    monkeypatch.setattr(OpNode, "replay", classmethod(broken))
    size = next(sizes)
    first = gradient(size)
    assert gradient(size).tolist() == first.tolist()
    assert len(calls) == 1
    assert runs() == {"interpreter": 2}
    assert engine.stats()["fallbacks"] == {"plan: failed to compile": 2}


def test_a_graph_that_is_kept_can_run_again():
    x = leaf(next(sizes))
    result = loss(x)
    result.backward(retain_graph=True)
    assert x.grad is not None
    first = x.grad.clone()
    result.backward()
    assert x.grad.tolist() == (first + first).tolist()
    assert runs() == {"plan": 2}
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()


def test_inputs_are_asked_for():
    size = next(sizes)
    x, y = leaf(size), leaf(size)
    ((x * y).sin() * y.exp()).sum().backward(inputs=[y])
    assert x.grad is None
    assert y.grad is not None
    assert runs() == {"plan": 1}


def test_a_second_derivative_is_the_interpreters():
    x = leaf(next(sizes))
    (first,) = xt.autograd.grad(loss(x), x, create_graph=True)
    assert first is not None
    assert first.requires_grad
    assert runs() == {"interpreter": 1}
