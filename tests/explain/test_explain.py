"""`explain`: where an operator comes from, and what runs."""

from __future__ import annotations

import inspect
import operator
import pathlib
import re

import pytest

import xtensor
from xtensor import ops
from xtensor.explain.calls import calls_in
from xtensor.explain.catalog import entries_in, entries_of, families, namespaces, places_of
from xtensor.operators import dispatch
from xtensor.xla import segments

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def x():
    return xtensor.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])


def declared_at(name: str) -> tuple[str, int]:
    """File and line of the only `def name(` of an operator."""
    for path in sorted((ROOT / "xtensor" / "ops").rglob("*.py")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if line.startswith(f"def {name}("):
                return path.relative_to(ROOT).as_posix(), number
    raise LookupError(name)


def test_the_declaration():
    found = ops.explain("tanh")
    assert (found.name, found.kind) == ("tanh", "pointwise")
    assert (found.file, found.line) == declared_at("tanh")
    assert found.signatures == ("tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor",)
    assert [(r.argument, r.saves) for r in found.rules] == [("input", ("result",))]
    assert "def tanh_input(grad: Array, result: Array)" in found.rules[0].source
    assert dict(found.variants) == {
        "function": "xtensor.tanh",
        "also": "xtensor.nn.functional.tanh",
        "method": "Tensor.tanh",
        "in-place": "Tensor.tanh_",
        "out=": "xtensor.tanh(..., out=tensor)",
    }
    assert found.programs == ()


def test_aliases_and_overloads():
    assert ops.explain("multiply").name == "mul"
    assert "multiply" in ops.explain("mul").aliases
    permute = ops.explain("permute").signatures
    assert permute == (
        "permute(input: Tensor, dims: Sequence[int]) -> Tensor",
        "permute(input: Tensor, *dims: int) -> Tensor",
    )
    assert ("deprecated", "add(input, alpha, other)") in ops.explain("add").variants
    assert "axis: " in ops.explain("sum").signatures[0]


@pytest.mark.parametrize("what", ["add", "Tensor.add", xtensor.add, xtensor.Tensor.add, xtensor.Tensor.add_])
def test_an_operator_by_any_of_its_names(what):
    found = ops.explain(what)
    assert (found.file, found.line) == declared_at("add")


def test_the_programs(x):
    found = ops.explain("sum", x, dim=1)
    assert found.result.tolist() == [3.0, 12.0]
    (program,) = found.programs
    assert program.operator == "sum"
    assert program.key["dim"] in (1, (1,))
    assert program.arguments == ("float32[2,3]",)
    assert "stablehlo.reduce" in program.operations
    assert "func.func public @main" in program.stablehlo
    assert "HloModule jit_sum" in program.hlo
    assert "FileNames" not in program.hlo
    assert program.optimised_operations
    text = repr(found)
    assert "stablehlo.reduce" in text
    assert "HloModule jit_sum" in text


def test_in_place_programs(x):
    found = ops.explain(xtensor.Tensor.mul_, x, 2.0)
    assert x.tolist()[1] == [6.0, 8.0, 10.0]
    (program,) = found.programs
    assert "stablehlo.multiply" in program.operations


def test_custom_calls_are_named():
    program = ops.explain("tanh", xtensor.ones(2)).programs[0]
    program.__dict__["hlo"] = (
        'ENTRY %m { %c = f32[] custom-call(), custom_call_target="__cudnn$convForward" }'
    )
    assert program.custom_calls == ["__cudnn$convForward"]


def test_a_view_runs_nothing(x):
    found = ops.explain("transpose", x, 0, 1)
    assert found.kind == "view"
    assert found.programs == ()
    assert any("strides (1, 3)" in str(call) for call in found.path)


def test_segments_in_which_a_program_ran_are_told():
    x = xtensor.ones(33)
    before = xtensor.settings.segments()
    if not segments.allowed():
        pytest.skip("calls do not wait here: XTENSOR_SEGMENTS=0")
    xtensor.settings.segments(True)
    for _ in range(5):
        (x.acosh() * 2).sum().item()
    xtensor.settings.segments(before)
    known = {k.names: k for k in ops.explain("acosh", x).segments}
    found = known["acosh", "mul", "sum"]
    ran = found.whole + found.by_call
    assert 2 <= ran <= 5  # a call whose program is on disk does not wait when it comes first
    assert found.ended == {"a value": ran}
    assert "3 calls (acosh, mul, sum): ran" in repr(ops.explain("acosh", x))
    assert ops.explain(xtensor.nn.Identity(), x).segments == ()


def test_watching_leaves_nothing_behind(x):
    before = dispatch.watchers[:]
    with pytest.raises(RuntimeError):
        ops.explain("add", x, xtensor.ones(7))
    assert dispatch.watchers == before
    assert xtensor.is_grad_enabled()


def steps(found) -> list[str]:
    return [f"{'  ' * call.depth}{call.name}" for call in found.path]


def test_a_module():
    module = xtensor.nn.Conv2d(8, 3, 3, padding=1)
    found = ops.explain(module, xtensor.ones(1, 8, 5, 5))
    assert (found.name, found.kind) == ("Conv2d", "module")
    assert steps(found) == [
        "nn.modules.conv.Conv2d.forward",
        "  nn.modules.conv._Forward._conv_forward",
        "    nn.functional.conv2d",
        "      ops.network.convolution.conv2d",
    ]
    assert {rule.argument for rule in found.rules} == {"conv2d.input", "conv2d.weight", "conv2d.bias"}
    (program,) = found.programs
    assert program.key["padding"] == (1, 1)
    assert "stablehlo.convolution" in program.operations
    assert "convolution" in program.optimised_operations or program.custom_calls
    assert tuple(found.result.shape) == (1, 3, 5, 5)


@pytest.mark.parametrize("name", ["Conv2d", "Linear", "LayerNorm"])
def test_a_class_of_modules_is_explained_by_an_example_of_its_own(name):
    found = ops.explain(getattr(xtensor.nn, name))
    assert steps(found)[0].endswith(f"{name}.forward")
    assert found.programs
    assert "HloModule" in repr(found)


class Squash(xtensor.nn.Module):
    """A module of a user's, with an example that nobody would guess."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, input):
        return input.tanh() if self.how == "tanh" else input.sigmoid()

    @classmethod
    def _example(cls):
        return cls("sigmoid"), (xtensor.ones(2),)


def test_a_class_may_bring_its_own_example():
    assert [program.operator for program in ops.explain(Squash).programs] == ["sigmoid"]


def test_calls_of_several_programs_form_one_tree(x):
    found = ops.explain(xtensor.hstack, [x, x])
    assert found.path[0].depth == 0
    assert {"hstack"} <= {call.name.rpartition(".")[2] for call in found.path}


def test_a_notebook_gets_a_table(x):
    html = ops.explain("add", x, x)._repr_html_()
    assert html.startswith("<table>")
    assert "<details><summary>StableHLO of add(float32[2,3], float32[2,3]" in html
    assert "<script" not in html
    assert re.search(r"lambda grad: grad", html)


@pytest.mark.parametrize(
    ("what", "error"), [("no_such_operator", LookupError), (3, TypeError), (int, TypeError)]
)
def test_what_cannot_be_explained(what, error):
    with pytest.raises(error):
        ops.explain(what)


def test_everything_can_be_explained():
    entries = [entry for name, family in families().items() for entry in entries_of(name, family)]
    entries += [entry for name, namespace in namespaces().items() for entry in entries_in(name, namespace)]
    for entry in entries:
        found = ops.explain(entry.function)
        assert found.signatures, entry.name
        source = inspect.getsource(inspect.unwrap(entry.body)).lstrip()
        assert source.startswith(("def ", "lambda", "@")), entry.name
        assert (ROOT / found.file).exists()
        if entry.kind in ("pointwise", "reduction", "general"):
            assert {r.argument for r in found.rules} == set(entry.op.rules.differentiable)
            assert all(r.source for r in found.rules), entry.name


def test_paths_of_composites_lead_to_operators():
    found = list(calls_in(inspect.unwrap(xtensor.hstack)))
    assert found[0].depth == 0
    assert any(call.kind in ("general", "pointwise", "view") for call in found)


def test_source_of_generated_functions():
    assert ops.source("tanh").startswith("def tanh(input")
    assert ops.source("tanh_").startswith("def tanh_(input")
    assert "def transpose(" in ops.source("transpose")
    assert ops.source("hstack").startswith("def hstack(")


@pytest.mark.parametrize(
    ("name", "kind", "file"),
    [
        ("conv2d", "general", "network/convolution"),
        ("nn.functional.conv2d", "general", "network/convolution"),
        ("F.conv2d", "general", "network/convolution"),
        ("add_", "pointwise", "pointwise/arithmetic"),
        ("Tensor.add_", "pointwise", "pointwise/arithmetic"),
        ("torch.add", "pointwise", "pointwise/arithmetic"),
        ("__add__", "pointwise", "pointwise/arithmetic"),
        ("__getitem__", "composite", "index/indexing"),
        ("Tensor.view", "composite", "shape/reinterpret"),
        ("transpose", "view", "shape/shapes"),
        ("Tensor.T", "composite", "shape/shapes"),
        ("linalg.svd", "composite", "linalg/decompositions"),
        ("xtensor.svd", "composite", "linalg/matrices"),
        ("zeros", "composite", "create/creation"),
        ("to", "composite", "tensor/conversion"),
    ],
)
def test_names_as_programs_write_them(name, kind, file):
    found = ops.explain(name)
    assert (found.kind, found.file) == (kind, f"xtensor/ops/{file}.py")
    assert found.path and found.path[0].file == found.file
    assert found.name in repr(found) and f"{found.file}:{found.line}" in found._repr_html_()


@pytest.mark.parametrize("name", ["nn.Conv2d", "Conv2d", "xtensor.nn.Conv2d"])
def test_a_class_by_its_name(name):
    assert ops.explain(name).path == ops.explain(xtensor.nn.Conv2d).path


def test_properties_and_methods_under_their_public_names():
    assert ops.explain(xtensor.Tensor.mT).name == "mT"
    assert ops.explain(xtensor.Tensor.view).name == "view"


def test_a_function_of_the_users():
    def energy(x):
        return xtensor.sin(x) * 2

    found = ops.explain(energy, xtensor.ones(2))
    assert found.name == "energy" and pathlib.Path(found.file).samefile(__file__)
    assert [program.declaration.name for program in found.programs] == ["sin", "mul"]
    assert [rule.argument for rule in ops.explain(energy).rules] == ["sin.input"]


@pytest.mark.parametrize(
    ("name", "kind", "file"),
    [
        ("fft.fft", "general", "ops/signal/fourier"),
        ("linalg.det", "general", "ops/linalg/linear_algebra"),
        ("linalg.inv", "composite", "ops/linalg/linear_algebra"),
        ("linalg.norm", "composite", "ops/linalg/matrix_norms"),
        ("masked.sum", "composite", "masked"),
        ("signal.windows.hann", "composite", "signal/windows"),
        ("special.airy_ai", "pointwise", "ops/pointwise/bessel"),
        ("special.expit", "pointwise", "ops/pointwise/elementwise"),
    ],
)
def test_functions_of_namespaces(name, kind, file):
    found = ops.explain(name)
    assert (found.name, found.kind, found.file) == (name, kind, f"xtensor/{file}.py")
    assert all(signature.startswith(f"{name}(") for signature in found.signatures)
    function = operator.attrgetter(name)(xtensor)
    assert name in places_of(function)
    by_function = ops.explain(function)
    assert (by_function.file, by_function.line) == (found.file, found.line)


def test_a_function_is_named_by_where_users_find_it():
    variants = ops.explain(xtensor.fft.fft).variants
    assert variants == (("function", "xtensor.fft.fft"), ("out=", "xtensor.fft.fft(..., out=tensor)"))
    assert ("also", "xtensor.special.expit") in ops.explain("sigmoid").variants
    assert ops.explain("nuttall").name == "signal.windows.nuttall"


def test_a_misspelled_name_gets_a_hint():
    with pytest.raises(LookupError, match=r"'conv'; there is .*conv3d, conv2d"):
        ops.explain("conv")
    with pytest.raises(LookupError, match=r"'nn\.Conv2D'"):
        ops.explain("nn.Conv2D")
