"""Nodes made by hand: each is the history of its result, and remembers in anomaly mode where it was made."""

import pytest

import xtensor
from xtensor.engine import anomaly


def written(x, value):
    y = x * 1
    y.copy_(value)
    return y


def written_at(x, index):
    y = x * 1
    y[index] = x.sum()
    return y


def written_view(x):
    y = x * 1
    y[1:].mul_(2)
    return y


class Twice(xtensor.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


MADE = {
    "bernoulli": lambda x: xtensor.bernoulli(x / 4),
    "normal": lambda x: xtensor.normal(x, 0.0),
    "to": lambda x: x.to("meta"),
    "clone": lambda x: x.clone(),
    "copy_": lambda x: written(x, x),
    "fill_": lambda x: written(x, 2.0),
    "mask": lambda x: x[x > 1],
    "write by mask": lambda x: written_at(x, x > 1),
    "index": lambda x: x[xtensor.tensor([0, 2])],
    "write to a view": written_view,
    "Function": Twice.apply,
    "view": lambda x: x.view(2, 2),
    "operator": lambda x: x.exp(),
}


@pytest.mark.parametrize("name", MADE)
def test_results_have_a_node_that_knows_where_it_was_made(name: str) -> None:
    x = xtensor.arange(4.0).requires_grad_()
    with anomaly.set_detect_anomaly(True):
        y = MADE[name](x)
    node = y.grad_fn
    assert node is not None
    assert y.requires_grad
    assert anomaly.TRACE_KEY in node.metadata
    assert __file__ in "".join(node.metadata[anomaly.TRACE_KEY])
    with xtensor.no_grad():
        assert MADE[name](x).grad_fn is None
    assert MADE[name](x.detach()).grad_fn is None
    assert anomaly.TRACE_KEY not in MADE[name](x).grad_fn.metadata


READS = {
    "mask": lambda T, v: v[T.tensor([True, False, True])],
    "index": lambda T, v: v[T.tensor([0, 1])],
    "select": lambda T, v: v[1],
    "clone": lambda T, v: v.clone(),
    "bernoulli": lambda T, v: T.bernoulli(v),
    "operator": lambda T, v: v * 2,
}


@pytest.mark.parametrize("name", READS)
def test_what_reads_a_view_without_history_requires_grad(name: str, torch) -> None:
    found = []
    for lib in (torch, xtensor):
        x = lib.ones(4, requires_grad=True)
        with lib.no_grad():
            v = x[1:]
        y = READS[name](lib, v)
        y.sum().backward()
        found.append((y.requires_grad, x.grad))
    assert found[0] == found[1] == (True, None)
