"""Graphs of transformed functions: recorded beneath the levels, valid for other inputs, and made of plain operators."""

import pytest

import xtensor
from xtensor.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from xtensor.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from xtensor.nn import functional
from xtensor.trees import tree_leaves

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def assigned(row):
    row[1] = 5
    row[2:] = row[:2]
    return row


@case
def batch(x):
    return vmap(lambda row: (row.sin() * 2).sum() + row.softmax(0))(x)


@case
def batch_along_another_dimension(x):
    return vmap(lambda column: column * column.sum(), 1, 1)(x), vmap(lambda c: c + 1)(x.t())


@case
def batches_within_batches(x):
    return vmap(vmap(lambda v: v.exp() + 1))(x), vmap(lambda a: vmap(lambda b: a @ b)(x))(x)


@case
def gradients_of_samples(x):
    loss = lambda w, row: functional.linear(row, w).relu().sum()
    return vmap(grad(loss), (None, 0))(x, x)


@case
def gradient_of_a_batch(x):
    return grad(lambda x: vmap(lambda row: row.tanh().sum())(x).sum())(x), vjp(vmap(xtensor.cos), x)[1](x)


@case
def tangents(x):
    return jvp(lambda x: (x.sin() * x).sum(1), (x,), (x.cos(),)), jvp(vmap(xtensor.exp), (x,), (x * 2,))


@case
def jacobians(x):
    function = lambda row: row.sin() * row.sum()
    return jacfwd(function)(x[0]), jacrev(function)(x[0]), jacfwd(jacfwd(lambda r: r.exp().sum()))(x[0])


@case
def second_derivatives(x):
    return hessian(lambda row: (row**3).sum() + row.softmax(0)[0])(x[0])


@case
def views_and_writes_of_samples(x):
    return vmap(lambda row: (row.view(2, 2).t()[0] + row[1:3], assigned(row.clone()).mul_(2).add_(row)))(x)


@case
def written_arguments(x):
    return vmap(lambda row: row.mul_(2))(x), x + 1


@case
def indices_and_orders(x):
    def function(row):
        return (
            row[xtensor.tensor([0, 2])],
            row.sort()[0],
            row.topk(2)[0],
            row.cumsum(0),
            row.max() * row.argmax(),
        )

    return vmap(function)(x), vmap(lambda i: x[i])(xtensor.tensor([0, 1, 1]))


@case
def layers(x):
    def function(row):
        h = functional.conv1d(row[None, None], xtensor.ones(2, 1, 2))
        return functional.max_pool1d(functional.layer_norm(h, (3,)), 2).sum()

    return vmap(grad(function))(x)


@case
def made_within(x):
    return vmap(lambda row: row + xtensor.ones(4) + row.new_zeros(4) + xtensor.zeros_like(row).add_(row))(x)


@case
def factors(x):
    square = x[:, :3] @ x[:, :3].t() + 3 * xtensor.eye(3)
    made = [
        vmap(f)(square[None]) for f in (xtensor.linalg.inv, xtensor.linalg.cholesky, xtensor.linalg.svdvals)
    ]
    return *made, vmap(xtensor.linalg.qr)(square[None])[1].abs(), vmap(xtensor.linalg.pinv)(square[None])


@case
def written_and_seen_again(x):
    x.add_(1)
    y = x[0]
    y.mul_(2)
    x[:, 1] = 5
    x.t().copy_(x.t() * 2)
    return x, y


@case
def written_within(x):
    y = x.clone()
    flat = y.view(-1)
    flat[1] = 5
    y[y > 3] = 0
    y.fill_diagonal_(3)
    z = xtensor.zeros(3, 4)
    z[0] = x[0]
    z.index_add_(0, xtensor.tensor([1]), x[1:2]).clamp_(max=3).sigmoid_()
    z.index_put_((xtensor.tensor([2]),), x[0])
    return y + xtensor.mul(x, 2, out=xtensor.empty(3, 4)) + z, flat


def inputs():
    first = (xtensor.arange(12.0).reshape(3, 4) / 7 + 0.1).sin()
    return first, (xtensor.arange(12.0).reshape(3, 4) - 3).cos()


def assert_same(function, traced, given):
    other = given.clone()
    expected, got = tree_leaves((function(given), given)), tree_leaves((traced(other), other))
    for a, b in zip(expected, got, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        assert xtensor.allclose(a, b, rtol=1e-4, atol=1e-5)


def operators(traced):
    return [n.target for n in traced.graph.nodes if n.op == "call_function" and hasattr(n.target, "_schema")]


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_recorded_computes_the_same(name, mode):
    function = CASES[name]
    first, other = inputs()
    traced = make_fx(function, tracing_mode=mode)(first.clone())
    traced.graph.lint()
    assert_same(function, traced, first)
    assert_same(function, traced, other)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_written_in_a_functional_graph(name, remove):
    function = CASES[name]
    first, other = inputs()
    traced = make_fx(functionalize(function, remove=remove))(first.clone())
    targets = operators(traced)
    written = [t._opname for t in targets if t._schema.is_mutable]
    assert set(written) <= {"copy_"} and len(written) == name.startswith("written_a")
    assert remove == "mutations" or not any(t.is_view for t in targets)
    assert_same(functionalize(function), traced, first)
    assert_same(functionalize(function), traced, other)


def test_the_operators_of_pytorch(torch):
    theirs = __import__("torch.fx.experimental.proxy_tensor", fromlist=["x"]).make_fx
    for function in (
        lambda library: library.func.vmap(lambda row: row.sin() + row),
        lambda library: library.func.functionalize(library.func.vmap(lambda row: row.mul(row))),
        lambda library: library.func.vmap(lambda row: row + library.rand(4), randomness="different"),
    ):
        names = []
        for library, make in ((torch, theirs), (xtensor, make_fx)):
            graph = make(function(library))(library.ones(3, 4)).graph
            names.append(
                [n.target._opname if hasattr(n.target, "_opname") else n.target for n in graph.nodes]
            )
        assert [n.split("::")[-1].removesuffix("_") for n in names[0] if isinstance(n, str)] == [
            n.removesuffix("_") for n in names[1] if isinstance(n, str)
        ]


def test_sizes_above_a_vector_loop():
    function = vmap(grad(lambda row: (row.softmax(0) * row).sum()))
    traced = make_fx(function)(xtensor.ones(3, 1031))
    assert len(list(traced.graph.nodes)) < 60
    assert_same(function, traced, xtensor.arange(3.0 * 1031).reshape(3, 1031).cos())


def test_each_sample_has_its_own_random_numbers():
    xtensor.manual_seed(0)
    x = xtensor.ones(3, 1031)
    for randomness in ("same", "different"):
        traced = make_fx(vmap(lambda row: functional.dropout(row), randomness=randomness))(x)
        assert xtensor.equal(*traced(x)[:2]) == (randomness == "same")
        assert not xtensor.equal(traced(x), traced(x))
    made = make_fx(functionalize(lambda x: functional.dropout(x) + x.clone().normal_()))(x)
    assert not xtensor.equal(made(x), made(x)) and not any(t._schema.is_mutable for t in operators(made))
    with pytest.raises(RuntimeError, match="randomness error mode"):
        make_fx(vmap(lambda row: row + xtensor.rand(4)))(xtensor.ones(3, 4))


def test_values_of_samples_are_not_read():
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(lambda x: jvp(lambda x: x * x.sum().item(), (x,), (x,)))(xtensor.ones(2))


def test_what_cannot_be_followed_is_refused():
    with pytest.raises(NotImplementedError, match="a loop within a transform that ends by values"):
        make_fx(vmap(xtensor.gcd))(xtensor.tensor([4, 6]), xtensor.tensor([2, 3]))


def test_nothing_is_recorded_where_that_is_off():
    def function(x):
        with disable_proxy_modes_tracing():
            other = float(vmap(xtensor.sin)(xtensor.ones(2))[0])
        return x + other

    assert [n.name for n in make_fx(function)(xtensor.ones(2)).graph.nodes] == ["x_1", "add", "output"]


@pytest.mark.parametrize("method", ["resize_", "resize_as_", "as_strided_"])
def test_what_changes_sizes_in_place_is_recorded(method):
    arguments = {"resize_": ([2],), "resize_as_": (xtensor.ones(2),), "as_strided_": ((2,), (2,))}[method]

    def function(x):
        return getattr(x * 2, method)(*arguments)

    given = xtensor.arange(12.0).reshape(3, 4)
    graph = make_fx(function)(xtensor.ones(3, 4))
    assert xtensor.equal(graph(given), function(given))
