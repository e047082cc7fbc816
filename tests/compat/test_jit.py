"""TorchScript's interface over exported programs."""

import io

import pytest

import xtensor
from xtensor import jit, nn
from xtensor.serialization.errors import FileFormatError


@pytest.fixture
def net(seed):
    xtensor.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).eval()


def test_a_traced_module_is_the_module(net):
    x = xtensor.randn(5, 3)
    traced = jit.trace(net, x)
    assert isinstance(traced, jit.ScriptModule) and traced.original_name == "Sequential"
    assert xtensor.equal(traced(x), net(x)) and set(traced.state_dict()) == set(net.state_dict())
    other = xtensor.randn(2, 3)
    assert xtensor.equal(traced(other), net(other))
    assert "torch.ops.aten.linear.default" in traced.code
    traced(x).sum().backward()
    assert net[0].weight.grad is not None
    with xtensor.no_grad():
        net[0].weight.mul_(2)
    assert xtensor.equal(traced(x), net(x))


def test_a_trace_in_training_writes_buffers(net):
    x = xtensor.randn(5, 3)
    before = net[1].running_mean.clone()
    traced = jit.trace(net.train(), x)
    assert xtensor.equal(net[1].running_mean, before)
    traced(x)
    assert not xtensor.equal(net[1].running_mean, before) and net[1].num_batches_tracked == 1


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (lambda x: x if x.sum() > 0 else -x, "a Python boolean"),
        (lambda x: x * int(x[0]), "a Python integer"),
        (lambda x: x * float(x[0]), "a Python float"),
        (lambda x: x * x[0].item(), "a Python number"),
        (lambda x: x * x.tolist()[0], "a Python list"),
        (lambda x: x * float(x.numpy()[0]), "a NumPy array"),
    ],
)
def test_values_that_python_reads_are_constants(read, kind):
    with pytest.warns(jit.TracerWarning, match=f"Converting a tensor to {kind} might cause the trace"):
        traced = jit.trace(read, xtensor.full((2,), 2.0), check_trace=False)
    x = xtensor.full((2,), 2.0)
    assert xtensor.equal(traced(x), read(x))
    expected = [-3.0, -3.0] if kind == "a Python boolean" else [-6.0, -6.0]
    assert traced(-x - 1).tolist() == expected


def test_tensors_made_of_numbers_are_constants():
    with pytest.warns(jit.TracerWarning, match=r"torch\.tensor results are registered as constants"):
        traced = jit.trace(lambda x: x + xtensor.tensor([1.0, 2.0]), xtensor.zeros(2))
    assert traced(xtensor.ones(2)).tolist() == [2.0, 3.0]


def test_a_trace_is_checked():
    count = []

    def changing(x):
        count.append(x)
        return x * len(count)

    with pytest.warns(jit.TracerWarning, match="Output nr 1. of the traced function does not match"):
        jit.trace(changing, xtensor.ones(2))
    with pytest.raises(RuntimeError, match="Encountering a dict at the output"):
        jit.trace(lambda x: {"a": x}, xtensor.ones(2))
    traced = jit.trace(lambda x: {"a": x + 1}, xtensor.ones(2), strict=False)
    assert traced(xtensor.ones(2))["a"].tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="Only tensors, lists, tuples"):
        jit.trace(lambda x: "text", xtensor.ones(2))


def test_is_tracing():
    seen = []
    jit.trace(lambda x: (seen.append(jit.is_tracing()), x + 1)[1], xtensor.ones(1), check_trace=False)
    assert seen == [True] and not jit.is_tracing()


def test_methods_are_traced():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            return self.inner(x)

        def twice(self, x, y):
            return self.inner(x) * 2 + y

    two, x = Two(), xtensor.ones(1, 2)
    traced = jit.trace_module(two, {"forward": x, "twice": (x, x)})
    assert xtensor.equal(traced(x), two(x)) and xtensor.equal(traced.twice(x, x), two.twice(x, x))


def test_what_is_scripted_stays_python(net):
    assert jit.script(net) is net and jit.script(len) is len
    with pytest.raises(RuntimeError, match="a program is made from examples"):
        jit.save(net, io.BytesIO())
    with pytest.raises(RuntimeError, match="Freezing is currently only implemented for modules in eval mode"):
        jit.freeze(net.train())
    assert jit.freeze(net.eval()) is net


def test_files(net, tmp_path):
    pytest.importorskip("flatbuffers")
    x = xtensor.randn(5, 3)
    jit.save(jit.trace(net, x), tmp_path / "net.pt")
    loaded = jit.load(tmp_path / "net.pt")
    assert isinstance(loaded, jit.ScriptModule) and not loaded.eval().training
    assert xtensor.equal(loaded(x), net(x)) and set(loaded.state_dict()) == set(net.state_dict())
    assert xtensor.equal(xtensor.export.load(tmp_path / "net.pt").module()(x), net(x))
    file = io.BytesIO()
    jit.script(net, example_inputs=[(x,)])
    jit.save(net, file, _extra_files={"note": "text"})
    extra = {"note": ""}
    assert xtensor.equal(jit.load(io.BytesIO(file.getvalue()), _extra_files=extra)(x), net(x))
    assert extra == {"note": "text"}
    other = io.BytesIO()
    loaded.save(other)
    assert xtensor.equal(jit.load(io.BytesIO(other.getvalue()))(x), net(x))
    with pytest.raises(ValueError, match="The provided filename"):
        jit.load(tmp_path / "nothing.pt")


def test_archives_of_torchscript_are_refused(torch, tmp_path):
    with pytest.warns(DeprecationWarning):
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "script.pt")
    with pytest.raises(FileFormatError, match="TorchScript archive of PyTorch's cannot be run here"):
        jit.load(tmp_path / "script.pt")
