"""Gradients that are undefined rather than zero: nothing flows on, and leaves keep None, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import xtensor
from tests.oracle import Cases, leaf

case = Cases()


def silent(T: Any) -> Any:
    """A function whose backward gives nothing."""

    class Silent(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return None

    return Silent.apply


def gradients(T: Any, function: Any, *inputs: Any, create_graph: bool = False) -> Any:
    outputs = function(*inputs)
    return T.autograd.grad(
        outputs, inputs, T.ones_like(outputs), allow_unused=True, create_graph=create_graph
    )


@case
def nothing_flows_through_the_nodes_before(T):
    x = leaf(T, 3)
    silent(T)((x * 2).exp()).sum().backward()
    return x.grad


@case
def nothing_flows_with_create_graph(T):
    return gradients(T, lambda x: silent(T)((x * 2).exp()), leaf(T, 3), create_graph=True)


@case
def what_is_undefined_adds_nothing(T):
    return gradients(T, lambda x: silent(T)(x * 2) + x.exp(), leaf(T, 3))


@case
def one_result_of_several(T):
    return gradients(T, lambda x: x.unbind()[1] + silent(T)(x.unbind()[0]), leaf(T, 2, 3))


@case
def norm_that_counts(T):
    return [
        gradients(T, lambda x, p=p: T.linalg.vector_norm(x * 1, p), leaf(T, 3), create_graph=graph)
        for p in (0, 1)
        for graph in (False, True)
    ]


@case
def distances_that_count(T):
    far = T.nn.functional.pairwise_distance
    return [
        gradients(T, lambda a, b: far(a, b, 0.0), leaf(T, 2, 3), leaf(T, 2, 3)),
        gradients(T, lambda a: T.nn.functional.pdist(a, 0.0), leaf(T, 3, 2)),
        gradients(T, lambda a: T.cdist(a, a + 1, 0.0), leaf(T, 3, 2)),
    ]


@case
def products_of_no_reflectors(T):
    product = T.linalg.householder_product
    return [
        gradients(T, product, leaf(T, 3, 0), leaf(T, 0)),
        gradients(T, product, leaf(T, 3, 2), leaf(T, 2), create_graph=True),
        gradients(T, T.ormqr, leaf(T, 3, 0), leaf(T, 0), leaf(T, 3, 2)),
    ]


test_undefined = case.test()


def test_a_plan_leaves_undefined_what_the_interpreter_does(monkeypatch: pytest.MonkeyPatch):
    from xtensor.plans.plans import executor

    monkeypatch.setattr(executor, "enabled", True)
    monkeypatch.setattr(executor, "background", False)
    compiled = executor.compiled
    for _ in range(executor.hot + 1):
        x, y = leaf(xtensor, 3), leaf(xtensor, 3)
        (xtensor.linalg.vector_norm(x.exp(), 0) + y.sum()).backward()
        assert x.grad is None and y.grad is not None
    assert executor.compiled == compiled + 1
