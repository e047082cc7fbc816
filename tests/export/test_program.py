"""Exported programs in memory: their graph, signature and results."""

import copy
import dataclasses

import numpy as np
import pytest

import xtensor
from xtensor import nn
from xtensor.export import (
    AdditionalInputs,
    Dim,
    InputKind,
    OutputKind,
    ShapesCollection,
    export,
    register_dataclass,
)


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


@dataclasses.dataclass
class Pair:
    one: xtensor.Tensor
    two: xtensor.Tensor


register_dataclass(Pair)


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


def test_sizes_changed_in_place_are_followed():
    class Turns(nn.Module):
        def forward(self, x):
            y = x + 1
            y.t_()
            y.unsqueeze_(0)
            z = y * 2
            y.squeeze_(0)
            return y + z, y

    x = xtensor.randn(2, 3)
    program = export(Turns(), (x,))
    for found in (program.module()(x), program.call(x)):
        assert all(xtensor.equal(a, b) for a, b in zip(found, Turns()(x), strict=True))


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


# Of tensors with an open first size: the study's snippets, and what models are made of.
OPEN = {
    "view": (lambda x: x.view(x.shape[0], 2, 2) + 1, (5, 4)),
    "view of the rest": (lambda x: x.view(-1, 2) + 1, (5, 4)),
    "flatten": (lambda x: x.flatten(1) * 1, (5, 3, 4)),
    "reshape": (lambda x: x.transpose(0, 1).reshape(2, -1) * 2, (5, 4)),
    "t": (lambda x: x.t() + 1, (5, 4)),
    "slices": (lambda x: x[:, 1:] + x[:, :1], (5, 4)),
    "first slices": (lambda x: x[1:] + x[:-1] + x[0], (5, 4)),
    "first": (lambda x: x[0] * 2 + x[-1] + x[x.shape[0] - 1], (5, 4)),
    "first two": (lambda x: x[:2] * 2, (5, 4)),
    "batched product": (lambda x: x @ x.transpose(1, 2), (5, 4, 5)),
    "number": (lambda x: x.sum() / x.shape[0] + x.numel(), (5, 4)),
    "made": (lambda x: x + xtensor.arange(x.shape[0])[:, None] + xtensor.zeros(x.shape[0], 1), (5, 4)),
    "written": (lambda x: (x + 1).index_fill_(1, xtensor.tensor([0]), 0.0).t().mul_(2), (5, 4)),
    "assigned": (lambda x: assigned(x + 1), (5, 4)),
    "attention": (
        lambda x: nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
        (5, 2, 6, 4),
    ),
    "normalized": (lambda x: nn.functional.normalize(x).expand(2, -1, -1), (5, 4)),
    "order": (lambda x: x.sort(0)[0] + x.topk(2)[0].sum(), (5, 4)),
    "gathered": (lambda x: x.gather(1, xtensor.zeros(x.shape[0], 1, dtype=xtensor.int64)), (5, 4)),
    "dropout": (lambda x: nn.functional.dropout(x), (5, 4)),
}


def assigned(x):
    x[:, 0] = 0
    x[1] = 3
    return x


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("what", OPEN)
def test_sizes_are_left_open(what):
    function, shape = OPEN[what]
    program = export(Calls(function), (xtensor.randn(shape),), dynamic_shapes=({0: Dim("b", min=3)},))
    assert str(program.range_constraints) == "{'b': VR[3, int_oo]}"
    x = xtensor.randn(8, *shape[1:])
    expected, eager = results(function, x), results(program.module(), x)
    assert xtensor.equal(expected, eager)
    assert xtensor.allclose(results(program.call, x), expected, atol=1e-5)


def test_two_sizes_left_open():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    batch, length = Dim("batch", min=2), Dim("length", min=2, max=64)
    program = export(layer, (xtensor.randn(3, 5, 8),), dynamic_shapes={"src": (batch, length, None)})
    x = xtensor.randn(4, 7, 8)
    assert xtensor.equal(program.module()(x), layer(x))
    assert xtensor.allclose(program.call(x), layer(x), atol=1e-5)
    with pytest.raises(AssertionError, match=r"Guard failed: src\.size\(\)\[1\] <= 64"):
        program.module()(xtensor.randn(2, 65, 8))
    assert 'src: "f32[batch, length, 8]"' in str(program)


def test_a_size_that_the_code_fixes_is_named():
    fixes = {
        "view": lambda x: x.view(5, 4) * 2,
        "if": lambda x: x * 2 if x.shape[0] > 4 else x,
        "product": lambda x: x @ xtensor.ones(4, 5),
    }
    x = xtensor.ones(5, 4)
    for name, function in fixes.items():
        wish = {1: Dim("b", min=2)} if name == "product" else {0: Dim("b", min=2)}
        with pytest.raises(RuntimeError, match=r"Constraints violated \(b\)!.*test_program\.py:\d+"):
            export(Calls(function), (x,), dynamic_shapes=(wish,))
    program = export(Calls(fixes["view"]), (x,), dynamic_shapes=((Dim.AUTO, Dim.AUTO),))
    assert program.range_constraints == {}
    program = export(nn.Linear(4, 2), (x,), dynamic_shapes=((Dim.AUTO, Dim.AUTO),))
    assert program.module()(xtensor.ones(9, 4)).shape == (9, 2)


def test_a_step_within_which_a_view_is_taken_again():
    module, x = nn.InstanceNorm1d(3, track_running_stats=True), xtensor.randn(3, 5)
    twin = copy.deepcopy(module)
    exported = export(module, (x,)).module()
    assert xtensor.equal(exported(x), twin(x)) and xtensor.equal(exported.running_var, twin.running_var)


def test_keywords_in_another_order():
    class Two(nn.Module):
        def forward(self, x, first=None, second=None):
            return x @ first + second

    x, first, second = xtensor.ones(5, 4), xtensor.ones(4, 3), xtensor.ones(3)
    options = {"second": second, "first": first}
    for sizes in (None, {"x": {0: Dim("b")}, "first": None, "second": None}):
        module = export(Two(), (x,), options, dynamic_shapes=sizes).module()
        assert xtensor.equal(module(x, **options), module(x, first=first, second=second))


def test_a_mistake_that_is_none_of_sizes_is_told_as_it_is():
    with pytest.raises(RuntimeError, match=r"^mat1 and mat2 shapes cannot be multiplied"):
        export(
            Calls(lambda x: x @ xtensor.ones(5, 5)), (xtensor.ones(5, 4),), dynamic_shapes=({0: Dim("b")},)
        )


class UNet(nn.Module):
    """Two levels down and up; upwards by transposed convolution, and by resizing."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.middle = nn.Conv2d(4, 8, 3, padding=1)
        self.bottom = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.joined = nn.Conv2d(16, 4, 3, padding=1)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        first = self.inner(x)
        second = self.middle(nn.functional.max_pool2d(first, 2)).relu()
        third = self.bottom(nn.functional.max_pool2d(second, 2))
        y = self.joined(xtensor.cat([self.up(third), second], 1)).relu()
        y = nn.functional.interpolate(y, size=first.shape[-2:], mode="bilinear")
        return self.out(xtensor.cat([y, nn.functional.interpolate(first, scale_factor=1)], 1))


def test_images_of_open_sizes():
    """Sizes that halve twice are multiples of four; what else is asked for is refused, with what would do."""
    net, x = UNet().eval(), xtensor.randn(2, 1, 8, 12)
    batch, height, width = (Dim(name, min=1, max=64) for name in ("batch", "height", "width"))
    program = export(net, (x,), dynamic_shapes=({0: batch, 2: 4 * height, 3: 4 * width},))
    for shape in ((1, 1, 16, 4), (3, 1, 20, 24)):
        x = xtensor.randn(*shape)
        assert xtensor.equal(program.module()(x), net(x))
        assert xtensor.allclose(program.call(x), net(x), atol=1e-5)
    with pytest.raises(AssertionError, match=r"Guard failed: x\.size\(\)\[2\] == 4\*height"):
        program.module()(xtensor.randn(1, 1, 6, 8))
    x = xtensor.randn(2, 1, 8, 12)
    with pytest.raises(
        RuntimeError, match=r"Constraints violated .*Suggested fixes: height = 4\*_height; width = 4\*_width"
    ):
        export(net, (x,), dynamic_shapes=({0: batch, 2: Dim("height", min=4), 3: Dim("width", min=4)},))


def test_onnx_models_of_images_of_open_sizes():
    pytest.importorskip("onnxruntime")
    net = UNet().eval()
    height, width = Dim("height", min=1), Dim("width", min=1)
    sizes = {"x": {2: 4 * height, 3: 4 * width}}
    model = xtensor.onnx.export(net, (xtensor.randn(1, 1, 8, 12),), dynamo=True, dynamic_shapes=sizes)
    x = xtensor.randn(1, 1, 20, 4)
    assert xtensor.allclose(model(x)[0], net(x), atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("options", [{"scale_factor": 2}, {"scale_factor": 1.5}, {"size": (5, 9)}])
def test_images_of_open_sizes_are_resized(mode, options):
    class Resized(nn.Module):
        def forward(self, x):
            return nn.functional.interpolate(x, mode=mode, **options)

    x = xtensor.randn(1, 2, 8, 4)
    program = export(Resized(), (x,), dynamic_shapes=({2: 4 * Dim("h", min=1), 3: 4 * Dim("w", min=1)},))
    x = xtensor.randn(1, 2, 4, 12)
    expected = Resized()(x)
    assert xtensor.equal(program.module()(x), expected)
    assert xtensor.allclose(program.call(x), expected, atol=1e-5)


def test_wrong_dynamic_shapes_are_refused():
    x = xtensor.ones(5, 4)
    module = nn.Linear(4, 2)
    with pytest.raises(ValueError, match=r"its top-level keys must be the arg names \['input'\]"):
        export(module, (x,), dynamic_shapes={"x": {0: Dim("b")}})
    with pytest.raises(ValueError, match="`inputs` has 1 elements, but `dynamic_shapes` has 2"):
        export(module, (x,), dynamic_shapes=({0: Dim("b")}, None))
    with pytest.raises(ValueError, match="outside of its range"):
        export(module, (x,), dynamic_shapes=({0: Dim("b", min=6)},))


def test_open_sizes_told_by_tensors_and_by_examples():
    class Sum(nn.Module):
        def forward(self, pair, more):
            return pair.one + pair.two + more[0]

    x, y = xtensor.ones(3), xtensor.ones(3)
    pair = Pair(x, xtensor.ones(1))
    batch, told, seen = Dim("batch"), ShapesCollection(), AdditionalInputs()
    told[x], told[y] = {0: batch}, (batch,)
    seen.add((Pair(xtensor.ones(5), xtensor.ones(1)), [xtensor.ones(5)]))
    other = Pair(xtensor.ones(7), xtensor.ones(1))
    for shapes in (told, seen):
        program = export(Sum(), (pair, [y]), dynamic_shapes=shapes)
        assert program.module()(other, [xtensor.ones(7)]).shape == (7,)
    seen.verify(program)
    with pytest.raises(ValueError, match="were not found in args"):
        told.dynamic_shapes(Sum(), (pair, [x]))
    with pytest.raises(AssertionError, match="non-tensor"):
        told[3] = {0: batch}
    with pytest.raises(AssertionError, match="do not match"):
        told[x] = {}
    with pytest.raises(ValueError, match="differing types"):
        seen.dynamic_shapes(Sum(), (pair, [3]))


@pytest.mark.parametrize(
    "function, x",
    [
        (xtensor.linalg.inv, xtensor.eye(3) * 2),
        (xtensor.linalg.cholesky, xtensor.eye(3) * 2),
        (lambda x: xtensor.linalg.lu_factor(x)[0], xtensor.eye(3) * 2),
        (lambda x: xtensor.quantile(x, x.flatten()[:1] / 4), xtensor.ones(2, 3)),
        (lambda x: xtensor.histc(x, 4), xtensor.arange(9.0)),
        (lambda x: xtensor.cov(x, aweights=x[0]), xtensor.rand(2, 5)),
    ],
)
def test_values_that_would_be_refused_are_not_asked_for(function, x):
    """Of programs; what eager code refuses, and compiled code with it, gives whatever it gives."""

    class Calls(nn.Module):
        def forward(self, x):
            return function(x)

    assert xtensor.equal(export(Calls(), (x,)).module()(x), function(x))
