"""What is generated from the declarations is fresh, says what is there, and type-checks a user's program."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import pathlib
import shutil
import subprocess
import sys

import pytest

import xtensor
from xtensor.ops.attach import DUNDERS
from xtensor.ops.catalog import entries_of, families
from xtensor.ops.deferred import materialized
from xtensor.tensor import Tensor

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "tools" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def files(generate) -> dict[pathlib.Path, str]:
    return generate.wanted()


def test_generated_files_are_fresh(generate, files):
    stale = [path.relative_to(ROOT).as_posix() for path in generate.stale(files)]
    assert stale == [], "run: python tools/generate.py"


def test_the_command_says_what_is_stale(generate, files, monkeypatch, capsys):
    page = ROOT / "docs" / "reference" / "arithmetic.md"
    monkeypatch.setattr(generate, "wanted", lambda: {**files, page: files[page] + "more"})
    assert generate.main(["--check"]) == 1
    assert "stale: docs/reference/arithmetic.md" in capsys.readouterr().out


def parsed(files, name: str) -> ast.Module:
    return ast.parse(files[ROOT / "xtensor" / name])


def test_every_public_operator_has_a_stub(files):
    stubbed = {n.name for n in parsed(files, "functions.pyi").body if isinstance(n, ast.FunctionDef)}
    public = {
        entry.name
        for name, family in families().items()
        for entry in entries_of(name, family)
        if getattr(xtensor, entry.name, None) is entry.function
    }
    assert public
    assert public <= stubbed


def test_every_attached_method_has_a_stub(files):
    (methods,) = [n for n in parsed(files, "methods.pyi").body if isinstance(n, ast.ClassDef)]
    stubbed = {n.name for n in methods.body if isinstance(n, ast.FunctionDef)}
    attached = {
        name
        for name, value in vars(Tensor).items()
        if inspect.isfunction(value) and value.__module__ != "xtensor.tensor" and not name.startswith("_")
    }
    attached |= {name for name in DUNDERS if name in vars(Tensor)}
    assert attached
    assert attached <= stubbed


def test_stubs_accept_what_functions_accept(files):
    """The parameters of a stub are those of the function that runs, in order, by kind and with the same defaults."""
    for node in parsed(files, "functions.pyi").body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            function = getattr(xtensor, node.name)
            op = getattr(function, "operator", None)
            if op is None:
                continue
            code = materialized(function).__code__
            spelled = [a.arg for a in node.args.args]
            assert spelled == list(code.co_varnames[: code.co_argcount]), node.name
            keywords = {a.arg for a in node.args.kwonlyargs}
            actual = set(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
            assert keywords == actual, node.name


def test_every_function_of_nn_functional_has_a_stub(files):
    stubbed = {n.name: n for n in parsed(files, "nn/functional.pyi").body if isinstance(n, ast.FunctionDef)}
    public = {
        name: value
        for name, value in vars(xtensor.nn.functional).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    assert {"gelu", "interpolate", "max_pool2d", "relu_"} <= set(stubbed)
    assert set(stubbed) == set(public)
    for name in ("interpolate", "ctc_loss", "gelu", "dropout"):
        spelled = [a.arg for a in stubbed[name].args.args]
        code = (
            materialized(public[name]).__code__
            if hasattr(public[name], "operator")
            else public[name].__code__
        )
        assert spelled == list(code.co_varnames[: code.co_argcount]), name


def test_every_family_has_a_page_with_its_operators(files):
    for name, family in families().items():
        entries = entries_of(name, family)
        if entries:
            page = files[ROOT / "docs" / "reference" / f"{name}.md"]
            assert all(f"\n## {entry.name}\n" in page for entry in entries)


PROGRAM = """
import xtensor
from xtensor import Tensor

x: Tensor = xtensor.tanh(xtensor.zeros(2, 3))
y: Tensor = (x.tanh() + 1).sum(dim=0, keepdim=True).permute(1, 0).add_(x, alpha=2)
z: Tensor = xtensor.add(x, 2, alpha=3) @ y.permute((1, 0))[0]
z.backward()
x.nothing_of_the_kind
xtensor.sum(x, dmi=0)
x.tanh(1)
"""


@pytest.mark.full
def test_a_users_program_type_checks(tmp_path):
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed: pip install -e '.[dev]'")
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "pyrightconfig.json").write_text(
        f'{{"include": ["program.py"], "extraPaths": ["{ROOT.as_posix()}"]}}'
    )
    run = subprocess.run(
        [pyright, "--pythonpath", sys.executable, "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line.partition(" - error: ")[2] for line in run.stdout.splitlines() if " - error: " in line]
    assert len(errors) == 3, run.stdout
    assert 'Cannot access attribute "nothing_of_the_kind"' in errors[0]
    assert 'No parameter named "dmi"' in errors[1]
    assert "positional" in errors[2]


def test_a_function_never_called_tells_its_signature():
    """Whether an operator was called before does not show: the code behind it is made on demand."""
    code = (
        "import inspect, xtensor\n"
        "before = str(inspect.signature(xtensor.copysign))\n"
        "assert before == '(input, other, *, out=None)', before\n"
        "xtensor.copysign(xtensor.ones(1), 2)\n"
        "assert str(inspect.signature(xtensor.copysign)) == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
