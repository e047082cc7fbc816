"""Exported programs in memory: their graph, signature and results."""

import copy

import numpy as np
import pytest

import xtensor
from xtensor import nn
from xtensor.export import Dim, InputKind, OutputKind, export


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("shift", xtensor.ones(4), persistent=False)
        self.scale = xtensor.full((4,), 2.0)

    def forward(self, x, times=1, *, extra=None):
        x = self.drop(self.norm(self.layer(x)).relu_()) * self.scale + self.shift
        x[:, 0] = 0
        return {"value": x * times, "times": times, "extra": extra}


@pytest.fixture
def net(seed):
    xtensor.manual_seed(seed)
    return Net()


def results(module, *args, **kwargs):
    xtensor.manual_seed(0)
    return module(*args, **kwargs)


@pytest.mark.parametrize("training", [False, True])
def test_a_replay_is_eager_to_the_bit(net, training):
    x = xtensor.randn(5, 3)
    net.train(training)
    twin = copy.deepcopy(net)
    program = export(net, (x,), {"extra": x.sum()})
    assert all(xtensor.equal(a, b) for a, b in zip(net.buffers(), twin.buffers(), strict=True))
    module = program.module()
    expected, got = (results(m, x, extra=x.sum()) for m in (twin, module))
    assert xtensor.equal(expected["value"], got["value"]) and got["times"] == 1
    assert xtensor.equal(expected["extra"], got["extra"])
    assert xtensor.equal(twin.norm.running_var, module.norm.running_var)
    assert program.draws == int(training)
    assert set(module.state_dict()) == set(net.state_dict())
    got["value"].sum().backward()
    assert net.layer.weight.grad is module.layer.weight.grad is not None


def test_the_signature(net):
    program = export(net, (xtensor.ones(2, 3), 3))
    signature = program.graph_signature
    assert signature.parameters == ("layer.weight", "layer.bias", "norm.weight", "norm.bias")
    assert signature.non_persistent_buffers == {"shift"}
    assert signature.lifted_tensor_constants == ("lifted_tensor_0",)
    assert list(signature.buffers_to_mutate.values()) == [
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    ]
    assert signature.user_inputs == ("x", 3)
    assert [s.kind for s in signature.input_specs][-2:] == [InputKind.USER_INPUT] * 2
    assert [s.kind for s in signature.output_specs][-1] is OutputKind.USER_OUTPUT
    text = str(program)
    assert 'p_layer_weight: "f32[4, 3]"' in text
    assert "torch.ops.aten.linear.default(x, p_layer_weight, p_layer_bias)" in text
    assert "p_layer_weight: PARAMETER target='layer.weight'" in text
    assert "test_program.py:" in text
    assert set(program.state_dict) == set(net.state_dict())


def test_other_calls_than_exported_are_refused(net):
    module = export(net.eval(), (xtensor.ones(2, 3), 3)).module()
    with pytest.raises(AssertionError, match=r"Guard failed: x\.size\(\)\[0\] == 2"):
        module(xtensor.ones(4, 3), 3)
    with pytest.raises(AssertionError, match="Guard failed: times == 3"):
        module(xtensor.ones(2, 3), 4)
    with pytest.raises(AssertionError, match=r"x\.dtype"):
        module(xtensor.ones(2, 3, dtype=xtensor.float64), 3)
    with pytest.raises(ValueError, match="Trying to flatten user inputs"):
        module(xtensor.ones(2, 3))
    with pytest.raises(NotImplementedError, match=r"Calling eval\(\) is not supported yet"):
        module.eval()


def test_what_cannot_be_exported_is_named(net):
    class ByValue(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match=r"needs the value of a tensor.*test_program\.py:\d+"):
        export(ByValue(), (xtensor.ones(2),))
    with pytest.raises(ValueError, match="Expected `mod` to be an instance"):
        export(net.forward, (xtensor.ones(2, 3),))
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        export(net, (xtensor.ones(2, 3),))(xtensor.ones(2, 3))


def test_a_module_is_what_it_was(net):
    class Leaky(nn.Module):
        def forward(self, x):
            self.last = x * 2
            self.inner = nn.Identity()
            return self.last

    leaky = Leaky()
    export(leaky, (xtensor.ones(2),))
    assert "last" not in leaky.__dict__ and not list(leaky.children())
    before = {n: t.clone() for n, t in net.state_dict().items()}
    export(net, (xtensor.ones(2, 3),)).module()(xtensor.ones(2, 3))
    assert all(xtensor.equal(t, before[n]) for n, t in net.state_dict().items())


def test_one_program_for_xla(net):
    x = xtensor.randn(5, 3)
    program = export(net.eval(), (x,))
    exported = program.stablehlo()
    assert exported.platforms == ("cpu", "cuda", "tpu")
    (value, *_), written = exported.call(program.weights(), [xtensor.interop.to_jax(x)])
    assert not written
    np.testing.assert_allclose(value, net(x)["value"].detach().numpy(), rtol=1e-6)
    assert xtensor.allclose(program.call(x)["value"], net(x)["value"])


def test_writes_to_inputs_are_done():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", xtensor.zeros(()))

        def forward(self, x):
            x.add_(1)
            self.seen = self.seen + x.sum()
            return self.seen * 1

    program = export(Counts(), (xtensor.zeros(2),))
    module, x = program.module(), xtensor.zeros(2)
    assert [module(x).item(), module(x).item(), x.tolist(), module.seen.item()] == [2.0, 6.0, [2.0, 2.0], 6.0]
    assert list(program.graph_signature.user_inputs_to_mutate.values()) == ["x"]
    _, written = program.stablehlo().call(program.weights(), [xtensor.interop.to_jax(xtensor.zeros(2))])
    assert {name: np.asarray(a).tolist() for name, a in written.items()} == {"seen": 2.0, "x": [1.0, 1.0]}


def test_tied_weights_are_one_input():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(3, 3, bias=False)
            self.two = nn.Linear(3, 3, bias=False)
            self.two.weight = self.one.weight

        def forward(self, x):
            return self.two(self.one(x))

    tied = Tied()
    program = export(tied, (xtensor.ones(1, 3),))
    assert program.graph_signature.parameters == ("one.weight",)
    module = program.module()
    assert set(module.state_dict()) == {"one.weight", "two.weight"}
    assert xtensor.equal(module(xtensor.ones(1, 3)), tied(xtensor.ones(1, 3)))


def test_decompositions_replace_operators():
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    x = xtensor.randn(4, 3)
    linear = xtensor.library.ops.aten.linear.default
    program = export(net, (x,)).run_decompositions({linear: lambda x, w, b: x @ w.t() + b})
    names = [n.target._opname for n in program.graph.nodes if n.op == "call_function"]
    assert names == ["t", "matmul", "add", "relu"]
    assert xtensor.allclose(program.module()(x), net(x))
    assert program.graph_signature.parameters == ("0.weight", "0.bias")


def test_dims_follow_from_each_other():
    batch = Dim("batch", min=2, max=8)
    assert (batch.min, (2 * batch + 1).max, (batch - 1).__name__) == (2, 17, "batch - 1")
    with pytest.raises(AssertionError, match="inconsistent"):
        Dim("batch", min=3, max=2)
