"""Traced modules as modules: copies, pickles, files, pictures; modules of PyTorch's database; the alias; what an import costs."""

import copy
import importlib
import io
import math
import operator
import pickle
import subprocess
import sys
import textwrap
import typing

import numpy as np
import pytest

import xtensor
from xtensor import fx
from xtensor.fx.annotate import annotate
from xtensor.fx.experimental import symbolic_shapes
from xtensor.fx.passes.graph_drawer import FxGraphDrawer
from xtensor.fx.passes.shape_prop import ShapeProp
from xtensor.interop import alias

from .judge import code, described, words


class Net(xtensor.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = xtensor.nn.Sequential(xtensor.nn.Linear(3, 4), xtensor.nn.BatchNorm1d(4))
        self.scale = xtensor.nn.Parameter(xtensor.ones(4))
        self.register_buffer("shift", xtensor.zeros(4))

    def forward(self, x, flag: bool = True):
        y = self.body(x) * self.scale + self.shift
        return {"y": xtensor.relu(y), "parts": y.split(2, 1)}


def halved(x, n=2):
    return x[: len(x) // n]


fx.wrap("halved")


def test_training_goes_through_a_traced_module():
    net = Net()
    traced = fx.symbolic_trace(net)
    assert set(traced.state_dict()) == set(net.state_dict())
    assert all(traced.get_parameter(n) is p for n, p in net.named_parameters())
    optimizer = xtensor.optim.SGD(traced.parameters(), lr=0.1)
    x = xtensor.arange(9.0).reshape(3, 3).sin()
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (traced(x)["parts"][0] - 1).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert traced.training and not traced.eval().get_submodule("body.1").training


def test_pickles_and_copies():
    traced = fx.symbolic_trace(Net()).eval()
    x = xtensor.ones(2, 3)
    expected = traced(x)["y"]
    for again in (pickle.loads(pickle.dumps(traced)), copy.deepcopy(traced)):
        assert code(again) == code(traced)
        assert type(again).__mro__[1] is fx.GraphModule and not again.training
        np.testing.assert_array_equal(again(x)["y"].detach().numpy(), expected.detach().numpy())


def test_files_give_a_traced_modules_state_and_do_not_run_it():
    traced = fx.symbolic_trace(Net())
    for content in (traced.state_dict(), traced):
        file = io.BytesIO()
        xtensor.save(content, file)
        file.seek(0)
        if content is traced:
            with pytest.raises(
                pickle.UnpicklingError, match="Trying to call reduce for unrecognized function"
            ):
                xtensor.load(file, weights_only=False)
        else:
            fx.symbolic_trace(Net()).load_state_dict(xtensor.load(file))


def test_pickles_of_wrapped_functions_and_containers():
    traced = fx.symbolic_trace(lambda d, x: halved(d["a"]) * x, {"d": {"a": fx.PH}})
    again = pickle.loads(pickle.dumps(traced))
    given = {"a": xtensor.arange(4.0)}, 2.0
    assert again(*given).tolist() == traced(*given).tolist() == [0.0, 2.0]
    assert code(again) == code(traced)


def test_a_folder(tmp_path):
    traced = fx.symbolic_trace(Net()).eval()
    traced.to_folder(tmp_path / "made", "Made")
    text = """
        import sys, xtensor
        sys.path.insert(0, sys.argv[1])
        from made import Made
        print(Made().eval()(xtensor.ones(2, 3))["y"].tolist())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(eval(done.stdout), traced(xtensor.ones(2, 3))["y"].detach().numpy(), rtol=1e-6)


def test_a_folder_of_wrapped_and_annotated_functions(tmp_path):
    def f(x: typing.Optional[xtensor.Tensor], y: "int" = 2) -> xtensor.Tensor:  # noqa: UP045
        return halved(x) * y + math.sqrt(y)

    fx.symbolic_trace(f).to_folder(tmp_path / "wrapped", "Wrapped")
    sys.path.insert(0, str(tmp_path))
    try:
        made = importlib.import_module("wrapped").Wrapped()
    finally:
        sys.path.remove(str(tmp_path))
    assert made(xtensor.ones(4), 4).tolist() == [6.0, 6.0]


def test_stack_traces():
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(Net())
    relu = next(n for n in graph.nodes if n.name == "relu")
    assert relu.stack_trace is not None
    assert "test_modules.py" in relu.stack_trace.splitlines()[-2]
    assert (
        relu.stack_trace.splitlines()[-1].strip() == 'return {"y": xtensor.relu(y), "parts": y.split(2, 1)}'
    )
    shown = fx.GraphModule(tracer.root, graph).print_readable(False)
    assert 'in forward, code: return {"y": xtensor.relu(y), "parts": y.split(2, 1)}' in shown


def test_a_picture():
    traced = fx.symbolic_trace(Net())
    ShapeProp(traced).propagate(xtensor.ones(2, 3))
    dot = FxGraphDrawer(traced, "net").get_dot_graph()
    assert '"body_0" -> "body_1";' in dot.to_string()
    assert "f32[2, 4]" in dot.to_string()
    pytest.importorskip("pygraphviz")
    assert dot.picture().svg.startswith("<svg") and dot.create_svg() == dot.create("svg")


def test_tensors_asserts_and_annotations():
    # pytest writes the asserts of its own files anew.
    names = {"annotate": annotate}
    exec(
        "def f(x):\n    y = annotate(x + 1, kind)\n    assert y.shape[0] == 2\n    return y",
        names | {"kind": xtensor.Tensor},
        names,
    )
    tracer = fx.Tracer()
    tracer.trace_asserts = True
    graph = tracer.trace(names["f"])
    assert [n.name for n in graph.nodes][-2:] == ["assert_fn", "output"]
    module = fx.GraphModule(tracer.root, graph)
    assert module(xtensor.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(AssertionError):
        module(xtensor.ones(3))
    assert next(n for n in graph.nodes if n.name == "add").type is xtensor.Tensor


def test_mutable_operations_are_refused():
    tracer = fx.Tracer()
    tracer.check_mutable_operations = True
    with pytest.raises(RuntimeError, match="Tried to trace mutable operation relu_"):
        tracer.trace(lambda x: xtensor.relu_(x))
    with pytest.raises(RuntimeError, match="Tried to trace mutable operation add"):
        tracer.trace(lambda x, y: xtensor.add(x, x, out=y))


def test_arguments_of_operators_stand_in_their_order():
    """One operator's function does not know how it was called: a method does."""
    traced = fx.symbolic_trace(lambda x: (xtensor.clamp(x, min=0.5), x.clamp(min=0.5)))
    nodes = list(traced.graph.nodes)
    assert (nodes[1].args[1:], nodes[1].kwargs) == ((0.5,), {})
    assert (nodes[2].args[1:], nodes[2].kwargs) == ((), {"min": 0.5})


@pytest.mark.parametrize(
    "name", "eq ne lt gt le ge add sub floordiv truediv mod lshift and_ matmul iadd iand".split()
)
def test_a_constant_on_the_left_records_a_method(torch, name):
    def node(lib):
        given = lib.ones(2, 2, dtype=lib.int32)
        found = list(lib.fx.symbolic_trace(lambda x: getattr(operator, name)(given, x)).graph.nodes)[2]
        return found.op, found.target, found.name, str(found.args)

    assert node(xtensor) == node(torch)


def test_a_comparison_with_a_constant_on_the_left_runs():
    traced = fx.symbolic_trace(lambda x: xtensor.ones(2) < x)
    assert traced(xtensor.tensor([0.0, 2.0])).tolist() == [False, True]


def test_a_compiled_traced_module():
    traced = fx.symbolic_trace(lambda x: xtensor.relu(x) * 2 + x.sum())
    x = xtensor.tensor([-1.0, 2.0])
    assert xtensor.compile(traced)(x).tolist() == traced(x).tolist() == [1.0, 5.0]


# ---- modules of PyTorch's database ---------------------------------------------------------------------------------

CLASSES = (
    "Linear Bilinear Conv1d Conv2d ConvTranspose2d BatchNorm1d LayerNorm GroupNorm RMSNorm InstanceNorm1d ReLU GELU SiLU Softmax "
    "LogSoftmax Threshold Hardtanh ELU CELU SELU LeakyReLU Dropout MaxPool1d AvgPool2d AdaptiveAvgPool2d Embedding Flatten "
    "CosineSimilarity PixelShuffle ZeroPad2d L1Loss MSELoss CrossEntropyLoss BCELoss PoissonNLLLoss SmoothL1Loss HuberLoss GRUCell Upsample"
).split()


class Inside:
    """A tracer that enters every module."""

    def is_leaf_module(self, module, path):
        return False


def instances():
    """A module of each class, small, built alike on both libraries, and the shapes of its inputs."""
    options = dict(
        Linear=((3, 2), [(2, 3)]), Bilinear=((2, 3, 2), [(2, 2), (2, 3)]), Conv1d=((2, 2, 1), [(1, 2, 4)]),
        Conv2d=((1, 2, 2), [(1, 1, 3, 3)]), ConvTranspose2d=((1, 2, 2), [(1, 1, 3, 3)]), BatchNorm1d=((3,), [(2, 3)]),
        LayerNorm=((3,), [(2, 3)]), GroupNorm=((1, 2), [(1, 2, 3)]), RMSNorm=((3,), [(2, 3)]), InstanceNorm1d=((2,), [(1, 2, 3)]),
        Softmax=((1,), [(2, 3)]), LogSoftmax=((1,), [(2, 3)]), Threshold=((0.3, 2.0), [(2, 3)]), Dropout=((0.5,), [(2, 3)]),
        MaxPool1d=((2,), [(1, 1, 4)]), AvgPool2d=((2,), [(1, 1, 4, 4)]), AdaptiveAvgPool2d=((2,), [(1, 1, 4, 4)]),
        CosineSimilarity=((1,), [(2, 3), (2, 3)]), PixelShuffle=((2,), [(1, 4, 2, 2)]), ZeroPad2d=((1,), [(1, 1, 2, 2)]),
        L1Loss=((), [(2, 3), (2, 3)]), MSELoss=((), [(2, 3), (2, 3)]), CrossEntropyLoss=((), [(2, 3), (2, 3)]),
        BCELoss=((), [(2, 3), (2, 3)]), PoissonNLLLoss=((), [(2, 3), (2, 3)]), SmoothL1Loss=((), [(2, 3), (2, 3)]),
        HuberLoss=((), [(2, 3), (2, 3)]), GRUCell=((3, 2), [(2, 3), (2, 2)]), Upsample=((None, 2), [(1, 1, 2, 2)]),
    )  # fmt: skip
    return {name: options.get(name, ((), [(2, 3)])) for name in CLASSES if name not in ("Embedding",)}


@pytest.mark.parametrize("name", instances())
def test_modules_are_traced_into_alike(torch, name):
    arguments, shapes = instances()[name]
    made = []
    for library in (torch, xtensor):
        kind = type("Deep", (Inside, library.fx.Tracer), {})
        module = getattr(library.nn, name)(*arguments).eval()
        made.append((module, kind()))
    (theirs, their_tracer), (ours, our_tracer) = made
    ours.load_state_dict({k: xtensor.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    inputs = [np.linspace(0.1, 0.9, int(np.prod(s)), dtype=np.float32).reshape(s) for s in shapes]
    try:
        graph = their_tracer.trace(theirs)
    except Exception as error:
        with pytest.raises(Exception) as caught:
            our_tracer.trace(ours)
        assert (
            words(str(caught.value)) == words(str(error))
            or type(caught.value).__name__ == type(error).__name__
        )
        return
    expected = torch.fx.GraphModule(theirs, graph)
    got = xtensor.fx.GraphModule(ours, our_tracer.trace(ours))
    wanted = expected(*[torch.from_numpy(x) for x in inputs])
    given = got(*[xtensor.tensor(x) for x in inputs])
    np.testing.assert_allclose(given.detach().numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
    if name not in DIFFERENT:
        assert [n[:3] for n in described(got.graph)] == [n[:3] for n in described(expected.graph)]


DIFFERENT = {"Threshold": "PyTorch's function is called _threshold"}
"""Modules whose `forward` is written otherwise here, and how."""


# ---- under the name torch, and its cost ----------------------------------------------------------------------------


def test_sizes_are_numbers():
    x = xtensor.ones(2, 3)
    assert symbolic_shapes.guard_or_false(x.shape[0] == 2) and not symbolic_shapes.statically_known_true(
        x.shape[1] == 2
    )
    assert (
        symbolic_shapes.definitely_false(x.shape[1] == 2) and symbolic_shapes.free_symbols(x.shape) == set()
    )
    assert symbolic_shapes.is_concrete_int(x.shape[0])


ALIASED = """
import xtensor.interop.alias as alias
alias.install()
import torch
assert "xtensor.fx" not in __import__("sys").modules, "fx was loaded before anyone asked"
import torch.fx as fx
import torch.fx.experimental.proxy_tensor, torch.fx.interpreter, torch.fx.node, torch.fx.graph, torch.fx.graph_module
import torch.fx.operator_schemas, torch.fx.passes.graph_drawer, torch.fx.passes.shape_prop, torch.fx.passes.split_module
import torch.fx.proxy, torch.fx.subgraph_rewriter, torch.fx.traceback, torch.fx._symbolic_trace
from torch.fx.graph_module import _copy_attr
from torch.fx.experimental.symbolic_shapes import guard_or_false
from functorch import make_fx
traced = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
print(traced.code.strip())
print(make_fx(lambda x: x.sin())(torch.ones(2)).code.strip())
print(torch.fx.node.map_arg((1,), lambda n: n), torch.fx.passes.shape_prop.ShapeProp.__name__)
alias.uninstall()
print(fx.symbolic_trace(lambda x: torch.relu(x)).code.strip())
"""


def test_under_the_name_torch():
    done = subprocess.run([sys.executable, "-c", ALIASED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "relu = torch.relu(x);  x = None" in lines
    assert "sin = torch.ops.aten.sin.default(x_1);  x_1 = None" in lines
    assert "relu = xtensor.relu(x);  x = None" in lines


def test_classes_answer_for_themselves():
    assert not alias.is_installed()
    assert xtensor.fx.GraphModule.__module__ == "xtensor.fx.graph_module"
    assert fx.symbolic_trace(Net()).__class__.__name__ == "Net"
    assert words(repr(fx.Proxy(fx.Graph().placeholder("x")))) == "Proxy(x)"
