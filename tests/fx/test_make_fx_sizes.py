"""Functions traced without values, and with sizes left open."""

import pytest

import xtensor
from xtensor import nn
from xtensor.func import functionalize, grad, jacfwd, vmap
from xtensor.fx.experimental.proxy_tensor import make_fx
from xtensor.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from xtensor.nn import functional
from xtensor.trees import tree_leaves


def assigned(x):
    x[1] = 5
    x[:, 1:] = x[:, :-1] * 2
    return x


CASES = {
    "arithmetic": lambda x: (x * 2.5 + x.sum() / x.shape[0]).sin(),
    "views": lambda x: (x.view(-1) + x.shape[0] + x.numel(), x.t().reshape(x.shape[0] * x.shape[1])[1:]),
    "made": lambda x: xtensor.zeros(x.shape[0])[:, None] + xtensor.arange(x.shape[1]) * x,
    "sizes": lambda x: (x.shape[0], x.shape[0] * 2 - 1, x[: x.shape[0] // 2]),
    "joined": lambda x: xtensor.cat([x, x], 1)[:, 1:-1],
    "layers": lambda x: functional.layer_norm(x, (x.shape[1],)) @ x.t(),
    "extremes": lambda x: x.max(1)[0] - x[:, -1],
    "written": lambda x: assigned(x.clone()),
    "functional": functionalize(lambda x: x.add_(1)[0].mul_(2)),
    "functional assignment": functionalize(assigned),
    "gradient": grad(lambda x: (x.sin() * x).sum()),
    "gradient of products": grad(lambda x: (x @ x.t()).softmax(1)[0].sum()),
    "batch": vmap(lambda row: row.softmax(0) * 2.5 + row.mean()),
    "batch of gradients": vmap(grad(lambda row: row.cos().sum() * row[0])),
    "jacobian": lambda x: jacfwd(xtensor.sin)(x[:, 0]),
}


def assert_same(function, traced, given):
    expected, got = tree_leaves(function(given.clone())), tree_leaves(traced(given.clone()))
    for a, b in zip(expected, got, strict=True):
        if isinstance(a, int):
            assert a == b
        else:
            assert a.shape == b.shape and xtensor.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.one_in(2)
def test_graphs_are_for_other_sizes(name, mode):
    function, first = CASES[name], (xtensor.arange(12.0).reshape(3, 4) / 7).sin()
    traced = make_fx(function, tracing_mode=mode)(first.clone())
    traced.graph.lint()
    assert_same(function, traced, first)
    if mode == "symbolic":
        assert_same(function, traced, (xtensor.arange(30.0).reshape(5, 6) - 3).cos())
        assert_same(function, traced, xtensor.ones(7, 1031).cumsum(1).sin())


def test_nodes_of_sizes(torch):
    theirs = __import__("torch.fx.experimental.proxy_tensor", fromlist=["x"]).make_fx
    for function in (
        lambda x: x * 2,
        lambda x: x + x.shape[0],
        lambda x: x.sum() / x.shape[1],
        lambda x: (x.shape[0], x.shape[0] - 1, x),
    ):
        codes = [
            make(function, tracing_mode="symbolic")(library.ones(3, 4)).code.strip()
            for library, make in ((torch, theirs), (xtensor, make_fx))
        ]
        assert codes[0] == codes[1].replace("xtensor", "torch")


def test_sizes_of_one_are_fixed_and_equal_ones_are_one():
    traced = make_fx(lambda x, y: x.sum(1) * x.shape[0] + y.shape[1], tracing_mode="symbolic")
    graph = traced(xtensor.ones(1, 4), xtensor.ones(3, 4))
    assert "add.Tensor(mul, sym_size_int)" in graph.code and "mul.Tensor(sum_1, 1)" in graph.code
    assert graph.shape_env.var_to_val == {"s0": 4, "s1": 3}


def test_conditions_on_sizes_are_guards():
    def function(x):
        return x * 2 if x.shape[0] > 2 else x

    traced = make_fx(function, tracing_mode="symbolic")(xtensor.ones(3, 4))
    assert [g.expr for g in traced.shape_env.guards] == ["s0 > 2"]
    assert str(traced.shape_env.var_to_range["s0"]) == "VR[3, int_oo]"
    assert traced(xtensor.ones(5, 2)).sum() == 20
    other = make_fx(function, tracing_mode="symbolic")(xtensor.ones(2, 4))
    assert [g.expr for g in other.shape_env.guards] == ["s0 <= 2"] and other(xtensor.ones(2, 2)).sum() == 4


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_there_are_no_values(mode):
    for function in (lambda x: x * x.sum().item(), lambda x: x if x.sum() > 0 else -x):
        with pytest.raises(GuardOnDataDependentSymNode, match="data-dependent expression"):
            make_fx(function, tracing_mode=mode)(xtensor.ones(2, 3))
    ran = []
    traced = make_fx(lambda x: (ran.append(x.shape), x.exp())[1], tracing_mode="fake")(xtensor.ones(2, 3))
    assert ran == [(2, 3)] and xtensor.equal(traced(xtensor.zeros(2, 3)), xtensor.ones(2, 3))


def test_constants_must_be_allowed():
    weight = xtensor.arange(4.0)
    with pytest.raises(AssertionError, match="allow_non_fake_inputs"):
        make_fx(lambda x: x * weight, tracing_mode="fake")(xtensor.ones(3, 4))
    traced = make_fx(lambda x: x * weight, tracing_mode="symbolic", _allow_non_fake_inputs=True)(
        xtensor.ones(3, 4)
    )
    assert xtensor.equal(traced(xtensor.ones(5, 4)), xtensor.ones(5, 4) * weight)
    assert [g.expr for g in traced.shape_env.guards] == ["s1 == 4"]


def test_buffers_are_what_they_were():
    net, x = nn.BatchNorm1d(4), xtensor.arange(12.0).reshape(3, 4)
    make_fx(net, tracing_mode="fake", _allow_non_fake_inputs=True)(x)
    assert net.running_mean.tolist() == [0.0] * 4 and net.num_batches_tracked == 0
    net(x)
    assert net.num_batches_tracked == 1


QUESTIONS = {
    "equal": (lambda x: x + 1 if x.shape[0] == 4 else x, True),
    "another": (lambda x: x + 1 if x.shape[0] == 5 else x, False),
    "a multiple": (lambda x: x + 1 if x.shape[0] % 2 == 0 else x, True),
    "truth": (lambda x: x + 1 if x.shape[0] % 2 else x, False),
    "two sizes": (lambda x: x + 1 if x.shape[0] == x.shape[1] else x, False),
    "a count": (lambda x: x + 1 if x.numel() == 24 else x, True),
}


@pytest.mark.parametrize("what", QUESTIONS)
def test_equal_sizes_are_what_they_are_for_the_example(what):
    function, holds = QUESTIONS[what]
    module = make_fx(function, tracing_mode="symbolic")(xtensor.ones(4, 6))
    assert ("add" in module.code) is holds and module.shape_env.guards
