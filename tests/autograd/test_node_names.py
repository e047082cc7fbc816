"""Names of nodes, of operators and of their derivatives, against PyTorch's."""

from __future__ import annotations

import pytest

import xtensor
import xtensor.nn.functional
from xtensor.operators.functions.node_names import NODES, SECOND
from xtensor.operators.operator import REGISTRY
from xtensor.operators.views import VIEWS

torch = pytest.importorskip("torch")

FIRST = {
    "linear": lambda lib, F, x: F.linear(x, x, x[0]),
    "linear without a bias": lambda lib, F, x: F.linear(x, x),
    "linear of a batch": lambda lib, F, x: F.linear(x[None], x, x[0]),
    "classes": lambda lib, F, x: F.cross_entropy(x, lib.tensor([0, 1, 2])),
    "classes of places": lambda lib, F, x: F.cross_entropy(x[None], lib.tensor([[0, 1, 2]])),
    "shares of classes": lambda lib, F, x: F.cross_entropy(x, x.detach().abs()),
    "differences": lambda lib, F, x: F.l1_loss(x, x.detach(), reduction="sum"),
    "square": lambda lib, F, x: x.square(),
    "log1p": lambda lib, F, x: x.abs().log1p(),
    "squeeze": lambda lib, F, x: x[None].squeeze(),
    "squeeze of one": lambda lib, F, x: x[None].squeeze(0),
    "squeeze of several": lambda lib, F, x: x[None].squeeze((0, 1)),
    "max_pool1d": lambda lib, F, x: F.max_pool1d(x, 2),
    "reflected": lambda lib, F, x: F.pad(x, (1, 1), mode="reflect"),
    "copied": lambda lib, F, x: x.clone().copy_(x),
    "median": lambda lib, F, x: x.median(0)[0],
}
DERIVATIVES = {
    "exp": lambda lib, F, x: x.exp(),
    "sigmoid": lambda lib, F, x: x.sigmoid(),
    "relu": lambda lib, F, x: x.relu(),
    "softmax": lambda lib, F, x: x.softmax(1),
    "gelu": lambda lib, F, x: F.gelu(x),
    "sum": lambda lib, F, x: x.sum(),
    "mean": lambda lib, F, x: x.mean(),
    "product": lambda lib, F, x: x @ x.detach(),
    "sort": lambda lib, F, x: x.sort(1)[0],
    "norm": lambda lib, F, x: F.layer_norm(x, (3,)),
    "t": lambda lib, F, x: x.t(),
    "transpose": lambda lib, F, x: x.transpose(0, 1),
    "permute": lambda lib, F, x: x.permute(1, 0),
    "view": lambda lib, F, x: x.view(9),
    "unsqueeze": lambda lib, F, x: x.unsqueeze(0),
    "row": lambda lib, F, x: x[0],
    "rows": lambda lib, F, x: x[:2],
    "expand": lambda lib, F, x: x[None].expand(2, 3, 3),
    "unbind": lambda lib, F, x: x.unbind(0)[1],
    "split": lambda lib, F, x: x.split(1)[0],
}


def value(lib, function):
    x = lib.arange(9.0).reshape(3, 3).sub(4).requires_grad_()
    return x, function(lib, lib.nn.functional, x)


@pytest.mark.parametrize("name", FIRST)
def test_nodes_are_called_as_there(name):
    ours, theirs = [value(lib, FIRST[name])[1].grad_fn.name() for lib in (xtensor, torch)]
    assert ours == theirs


@pytest.mark.parametrize("name", DERIVATIVES)
def test_nodes_of_derivatives_are_called_as_there(name):
    found = []
    for lib in (xtensor, torch):
        x, result = value(lib, DERIVATIVES[name])
        (grad,) = lib.autograd.grad(result, x, lib.ones_like(result).requires_grad_(), create_graph=True)
        found.append(grad.grad_fn.name())
    assert found[0] == found[1]


def test_a_node_of_its_own_name_prints_without_its_namespace():
    x = xtensor.ones(2, requires_grad=True)
    copied = x.clone().copy_(x)
    assert copied.grad_fn.name() == "torch::autograd::CopyBackwards"
    assert "grad_fn=<CopyBackwards>" in repr(copied)
    assert repr(copied.grad_fn).startswith("<CopyBackwards object")


def test_the_tables_name_operators():
    known = {*REGISTRY, *VIEWS}
    assert set(NODES) <= known
    assert set(SECOND) <= known


def test_versions_of_a_view_go_on_with_its_base_when_its_memory_is_replaced():
    def versions(lib):
        base = lib.zeros(4)
        view = base.view(2, 2)
        view.data = lib.ones(2, 2)
        view.add_(1)
        return base._version, view._version

    assert versions(xtensor) == versions(torch)
