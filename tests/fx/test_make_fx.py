"""Functions as graphs of operators: what is recorded gives the same on other inputs, and what cannot be is refused."""

import pytest

import xtensor
from xtensor import nn
from xtensor.compat import functorch
from xtensor.fx.experimental.proxy_tensor import get_isolated_graphmodule, get_proxy_mode, make_fx
from xtensor.nn import functional
from xtensor.trees import tree_leaves

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def tensor(*values, **options):
    return xtensor.tensor(*values, **options)


@case
def pointwise(x):
    return (x * 2 + 1).sin() / x.exp(), -x, x**2


@case
def containers(x):
    return {"a": x + 1, "b": [x.sum(), (x.mean(0),)]}


@case
def products(x):
    return x @ x.t(), xtensor.einsum("ij,kj->ik", x, x), functional.linear(x, x)


@case
def views_and_copies(x):
    return (
        x.t().contiguous() + 1,
        x.t().reshape(-1),
        x.view(-1)[1:],
        x[:, None].expand(2, 2, 3) * 1,
        x.t().flatten() + 1,
    )


@case
def written_views(x):
    y = x.clone()
    row = y[0]
    y.mul_(2)
    row.add_(1)
    flat = y.view(-1)
    flat[1] = 5
    y[:, 1:] = 7
    y[y > 3] = 0
    return y + row, flat


@case
def written_otherwise(x):
    a = x.clone().index_add_(0, tensor([0]), xtensor.ones(1, 3)).masked_fill_(x > 0.5, 0.0)
    b = x.clone().scatter_(1, tensor([[0], [1]]), 9.0).clamp_(max=3)
    return (
        a,
        b,
        x.clone().index_put_((tensor([0]),), xtensor.ones(3)),
        x[:, :2].clone().fill_diagonal_(3.0),
        x.clone().zero_(),
    )


@case
def two_of_one_memory(x):
    y = x.clone()
    z = y.clone()
    z.add_(1)
    return x, y * 2, z


@case
def several_results(x):
    top, at = x.max(1)
    a, b = x.split(1)
    return top, at, a + b, x.sort(1)[0], x.topk(2)[1]


@case
def made_within(x):
    return (
        x + xtensor.ones(3) + tensor(2.0) + xtensor.arange(3),
        xtensor.zeros(2).copy_(x[:, 0]),
        x.new_zeros(2) + 1,
    )


@case
def layers(x):
    h = functional.layer_norm(x, (3,)).softmax(-1)
    return (
        functional.gelu(h),
        functional.scaled_dot_product_attention(h[None], h[None], h[None]),
        functional.pad(h, (1, 1)),
    )


@case
def derivative(x):
    return xtensor.func.grad(
        lambda x: (functional.softmax(x @ xtensor.ones(3, 2), 1) ** 2).sum() + x.t().sin().sum()
    )(x)


@case
def derivative_by_autograd(x):
    x = x.detach().requires_grad_()
    (found,) = xtensor.autograd.grad((x.t() * x.t()).reshape(-1)[1:].sum(), x)
    return found


@pytest.mark.parametrize("name", CASES)
def test_what_is_recorded_is_what_ran(name):
    function = CASES[name]
    first = xtensor.arange(6.0).reshape(2, 3) / 7 + 0.1
    other = (xtensor.arange(6.0).reshape(2, 3) - 2).cos()
    traced = make_fx(function)(first)
    traced.graph.lint()
    for given in (first, other):
        expected, got = tree_leaves(function(given.clone())), tree_leaves(traced(given.clone()))
        assert len(expected) == len(got)
        assert all(xtensor.equal(a, b) for a, b in zip(expected, got, strict=True))
    if name != "derivative_by_autograd":  # whose constant is the number that the backward pass begins with
        assert "_tensor_constant" not in traced.code


def test_a_step_of_training():
    xtensor.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.ReLU(), nn.Linear(4, 2))

    def gradients(x):
        return xtensor.autograd.grad(net(x).square().sum(), list(net.parameters()))

    # A node's gradients are one program, and operators one by one in the graph: their rounding differs.
    traced = make_fx(gradients)(xtensor.ones(2, 3))
    x = xtensor.arange(6.0).reshape(2, 3)
    assert all(xtensor.allclose(a, b, atol=1e-6) for a, b in zip(traced(x), gradients(x), strict=True))
    with xtensor.no_grad():
        for p in net.parameters():
            p.mul_(2)
    assert all(xtensor.allclose(a, b, atol=1e-6) for a, b in zip(traced(x), gradients(x), strict=True))
    assert {n.name for n in traced.graph.nodes} >= {"linear", "relu", "linear_backward", "relu_backward"}


def test_the_same_code_as_pytorch(torch):
    theirs = __import__("torch.fx.experimental.proxy_tensor", fromlist=["x"]).make_fx
    for function in (
        lambda x: x.sin().sum(),
        lambda x: (x + 1).relu() * 2,
        lambda x: x.t().view(-1) if x.dim() == 1 else x.transpose(0, 1),
        lambda d: d["a"].exp() - d["b"][0],
        lambda x, y: {"s": x + y, "m": [x.mul(y)]},
    ):
        count = function.__code__.co_argcount
        codes = []
        for library, make in ((torch, theirs), (xtensor, make_fx)):
            x = (
                {"a": library.ones(2, 2), "b": (library.zeros(2),)}
                if function.__code__.co_varnames[0] == "d"
                else library.ones(2, 2)
            )
            codes.append(
                make(function)(*[x + 0 if count > 1 else x for _ in range(count)]).code.replace(
                    "xtensor", "torch"
                )
            )
        assert codes[0] == codes[1]


def test_running_statistics_are_written_by_the_graph():
    """Weights and buffers that share an array of zeros are constants of their own."""
    net, twin = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    x = xtensor.arange(12.0).reshape(4, 3).cos()
    before = [b.clone() for b in net.buffers()]
    traced = make_fx(net)(x)
    names = [n.name for n in traced.graph.nodes]
    assert "add_" in names and "copy_" in names and "copy__1" in names
    with xtensor.no_grad():
        for buffer, value in zip(net.buffers(), before, strict=True):
            buffer.copy_(value)
    for _ in range(2):  # the graph writes the module's own buffers
        assert xtensor.equal(traced(x), twin(x))
    assert all(xtensor.equal(a, b) for a, b in zip(net.buffers(), twin.buffers(), strict=True))
    assert not net.running_mean.requires_grad and net.num_batches_tracked == 2


def test_statistics_that_a_function_writes_and_reads_again():
    net, twin = (nn.InstanceNorm1d(2, track_running_stats=True) for _ in range(2))
    x = xtensor.arange(24.0).reshape(3, 2, 4).cos()
    traced = make_fx(net)(x)
    net.reset_running_stats()
    assert xtensor.equal(traced(x), twin(x))
    assert all(xtensor.equal(a, b) for a, b in zip(net.buffers(), twin.buffers(), strict=True))


def test_inputs_given_twice_are_two_inputs():
    x = xtensor.ones(2)
    traced = make_fx(lambda a, b: a - b)(x, x)
    assert traced(xtensor.tensor([3.0]), xtensor.tensor([1.0])).tolist() == [2.0]


def test_decompositions():
    aten = xtensor.ops.aten
    traced = make_fx(lambda x: functional.silu(x + 1), {aten.silu.default: lambda x: x * x.sigmoid()})(
        xtensor.ones(2)
    )
    assert [n.target for n in traced.graph.nodes][1:-1] == [
        aten.add.Tensor,
        aten.sigmoid.default,
        aten.mul.Tensor,
    ]


def test_values_are_not_read():
    with pytest.raises(
        RuntimeError,
        match="trying to get value out of a tracing tensor with aten",
    ):
        make_fx(lambda x: x if x.sum() > 0 else -x)(xtensor.ones(2))


def test_what_cannot_be_followed_is_refused():
    with pytest.raises(
        NotImplementedError, match="made within the function by something that is no operator"
    ):
        make_fx(lambda x: xtensor.complex(x, x).real * 2)(xtensor.ones(2))
    assert get_proxy_mode() is None


def test_random_numbers_are_drawn_anew():
    xtensor.manual_seed(0)
    x = xtensor.ones(1031)
    for function in (functional.dropout, lambda x: x.clone().normal_(), lambda x: xtensor.bernoulli(x, 0.5)):
        traced = make_fx(function)(x)
        assert not xtensor.equal(traced(x), traced(x)) and traced(x).unique().numel() > 1


def test_a_graph_within_a_graph():
    inner = []

    def function(x):
        inner.append(get_isolated_graphmodule(lambda y, scale: y * scale, (x,), {"scale": 3}))
        return x + 1

    traced = make_fx(function)(xtensor.ones(2))
    assert [n.name for n in traced.graph.nodes] == ["x_1", "add", "output"]
    assert [n.name for n in inner[0].graph.nodes] == ["arg0_1", "mul", "output"]


def test_operators_are_found_with_and_without_library():
    assert xtensor.ops.aten.add.Tensor is xtensor.library.ops.aten.add.Tensor
    assert not hasattr(xtensor.ops, "nothing_of_this_name")


def test_functorch_has_it():
    assert functorch.make_fx is make_fx
