"""Branches and loops as steps of exported programs: graphs, files, plain JAX, ONNX, and what is refused."""

import io

import pytest

import xtensor
from xtensor import nn
from xtensor.export import Dim, Roof, explain, export, load, save
from xtensor.jax.pure import TraceError
from xtensor.serialization.errors import FileFormatError

from .test_files import by_plain_jax, edited

pytest.importorskip("flatbuffers")


class Net(nn.Module):
    """A branch within a loop, with random numbers, a constant and a module; a loop of unknown length; a branch that gives its input."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.shift = xtensor.tensor([1.0, 2.0, 3.0])

    def forward(self, x):
        def step(state, row):
            new = xtensor.cond(
                row.sum() > 0, lambda: self.layer(state) + self.shift, lambda: state.sin() * row
            )
            return new, nn.functional.dropout(new)

        last, steps = xtensor.scan(step, xtensor.zeros(3), x, reverse=True)
        (large,) = xtensor.while_loop(lambda v: v.sum() < 100, lambda v: (v + last.abs() + 1,), (x[0],))
        chosen = xtensor.cond(large[0] > 0, lambda a: {"a": a}, lambda a: {"a": a * 2}, (x,))
        return steps, large, chosen["a"], xtensor.map(lambda row: (row @ row).sin(), x)


@pytest.fixture(scope="module")
def saved():
    """A module, its program, and the bytes of its file."""
    xtensor.manual_seed(4)
    net = Net()
    program = export(net, (xtensor.randn(4, 3),))
    file = io.BytesIO()
    save(program, file, platforms=("cpu",))
    return net, program, file.getvalue()


def test_they_are_steps_with_programs_of_their_own(saved):
    _, program, _ = saved
    called = [
        str(n.target).rpartition(".")[2] for n in program.graph.nodes if "higher_order" in str(n.target)
    ]
    assert called == ["scan", "while_loop", "cond", "map"]
    text = program.graph_module.print_readable(print_output=False)
    assert "    class scan_combine_graph_0(torch.nn.Module):" in text
    assert "        class true_graph_0(torch.nn.Module):" in text and "    class false_graph_0(" in text
    assert "torch.ops.higher_order.map(self.body_graph_0, [x], ())" in text


def test_values_and_gradients_are_those_of_eager_code(saved, seed):
    net, program, raw = saved
    loaded = load(io.BytesIO(raw))
    for sign in (1, -1):
        x = xtensor.randn(4, 3, generator=xtensor.Generator().manual_seed(seed)) * sign
        found = []
        for run in (net, program.module(), loaded.module(), loaded.call):
            xtensor.manual_seed(7)
            found.append(run(x))
        for other in found[1:3]:
            assert all(xtensor.equal(a, b) for a, b in zip(found[0], other, strict=True))
        for a, b in zip(found[0], found[3], strict=True):
            xtensor.testing.assert_close(a.detach(), b)
    module = loaded.module()
    xtensor.manual_seed(7)
    module(x)[0].sum().backward()
    xtensor.manual_seed(7)
    net.zero_grad()
    net(x)[0].sum().backward()
    assert xtensor.equal(module.layer.weight.grad, net.layer.weight.grad)
    again = program.run_decompositions({}).module()
    assert xtensor.equal(again(x)[1], net(x)[1])


class Sums(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        def step(state, row):
            new = self.layer(state) + row
            return new, new * 2

        return xtensor.scan(step, xtensor.zeros(3), x)


class Branching(nn.Module):
    """A branch within a loop, and a loop of unknown length behind it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        def step(state, row):
            new = xtensor.cond(row.sum() > 0, lambda: self.layer(state) + row, lambda: state.sin() - row)
            return new, new * 2

        _, each = xtensor.scan(step, xtensor.zeros(3), x)
        (large,) = xtensor.while_loop(lambda v: v.sum() < 50, lambda v: (v * 2 + 1,), (each.abs(),))
        return large


@pytest.mark.parametrize("sign", [1, -1])
def test_plain_jax_runs_them_without_xtensor(sign, tmp_path):
    net = Branching()
    program = export(net, (xtensor.randn(5, 3),), dynamic_shapes=({0: Dim("steps", min=1)},))
    file = io.BytesIO()
    save(program, file, platforms=("cpu",))
    x = xtensor.randn(4, 3) * sign
    xtensor.testing.assert_close(xtensor.tensor(by_plain_jax(file.getvalue(), x, tmp_path)), net(x).detach())


def test_a_loop_goes_over_an_open_size():
    net, x = Sums(), xtensor.randn(4, 3)
    program = export(net, (x,), dynamic_shapes=({0: Dim("steps", min=1)},))
    file = io.BytesIO()
    save(program, file, platforms=("cpu",))
    loaded = load(io.BytesIO(file.getvalue()))
    for length in (1, 6):
        x = xtensor.randn(length, 3)
        assert xtensor.equal(loaded.module()(x)[1], net(x)[1])
        xtensor.testing.assert_close(loaded.call(x)[1], net(x)[1].detach())
    cost = explain(program, sizes={"steps": 5}, roof=Roof(1e12, 1e11))
    assert cost.flops == 5 * 2 * 3 * 3


def test_onnx_has_them_as_its_own():
    pytest.importorskip("onnxruntime")

    class Steps(nn.Module):
        def forward(self, x):
            last, all_of_them = xtensor.scan(lambda s, row: (s + row, s * row), xtensor.zeros(3), x)
            (large,) = xtensor.while_loop(lambda v: v.abs().sum() < 100, lambda v: (v * 2 + 1,), (last,))
            return all_of_them, large, xtensor.cond(x.sum() > 0, lambda: x + 1, lambda: x - 1)

    x = xtensor.arange(12.0).view(4, 3) / 7
    model = xtensor.onnx.export(Steps(), (x,))
    kinds = {n.op_type for n in model.model_proto.graph.node}
    assert {"If", "Loop"} <= kinds
    for given in (x, -x):
        for a, b in zip(model(given), Steps()(given), strict=True):
            xtensor.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        (lambda x: xtensor.cond(x.sum() > 0, lambda: x.add_(1), lambda: x), TraceError, "a function of cond writes to a tensor"),
        (lambda x: xtensor.map(lambda row: x.mul_(2)[0] + row, x), TraceError, "a function of map writes to a tensor"),
        (lambda x: xtensor.cond(x.sum() > 0, lambda: x, lambda: x[0]), RuntimeError, "^cond: both branches must give tensors of"),
        (lambda x: xtensor.scan(lambda s, row: (row, s), xtensor.zeros(2), x), RuntimeError, "^scan: the next state must have"),
        (lambda x: xtensor.cond(x.sum() > 0, lambda: x * x.sum().item(), lambda: x), TraceError, "needs the value of a tensor"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("opened", [None, ({0: Dim("rows", min=2)},)])
def test_what_a_program_cannot_hold_is_refused_alike_with_open_sizes(function, error, said, opened):
    class Net(nn.Module):
        def forward(self, x):
            return function(x)

    with pytest.raises(error, match=said):
        export(Net(), (xtensor.ones(4, 3),), dynamic_shapes=opened)


def scan_graph(told):
    return next(n for n in told["graph"] if n["target"] == "higher_order.scan")["args"]["tuple"][0]["graph"]


def nested(depth):
    inner = {"graph": ["f", [], [], {"tuple": []}]}
    for _ in range(depth):
        node = {"name": "cond", "target": "higher_order.cond", "args": {"tuple": [inner]}}
        inner = {"graph": ["f", [], [node], {"tuple": []}]}
    return inner


HOSTILE = {
    "another step": lambda t: next(n for n in t["graph"] if "higher" in n["target"]).update(target="higher_order.out_dtype"),
    "a function's name": lambda t: scan_graph(t).__setitem__(0, "a b"),
    "an input twice": lambda t: scan_graph(t)[1].append(scan_graph(t)[1][0]),
    "an input of no form": lambda t: scan_graph(t)[1].append("x"),
    "a size that is code": lambda t: scan_graph(t)[1][0].__setitem__(1, [["().__class__"], "float32"]),
    "a step of no form": lambda t: scan_graph(t)[2][0].update(target="builtins.exec"),
    "a node of the program around it": lambda t: scan_graph(t)[2][0].update(args={"tuple": [{"node": "x"}]}),
    "a result that is none": lambda t: scan_graph(t).__setitem__(3, {"tuple": [{"node": "nobody"}]}),
    "a number as a result": lambda t: scan_graph(t).__setitem__(3, {"tuple": [3]}),
    "one part less": lambda t: scan_graph(t).pop(),
    "a function as a result": lambda t: t.update(results={"tuple": [nested(0)] * len(t["outputs"])}),
    "functions without an end": lambda t: t["graph"][0].update(args={"tuple": [nested(70)]}),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_function_is_refused(saved, what):
    with pytest.raises(FileFormatError):
        load(io.BytesIO(edited(saved[2], HOSTILE[what])))
