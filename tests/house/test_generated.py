"""What is generated from the declarations is fresh, says what is there, and type-checks a user's program."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import pathlib
import pickle
import re
import shutil
import subprocess
import sys

import pytest

import xtensor
from xtensor.explain.catalog import entries_in, entries_of, exported, families, namespaces
from xtensor.operators.attach import DUNDERS
from xtensor.operators.functions.deferred import materialized
from xtensor.tensor import Tensor

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
        if inspect.isfunction(value)
        and value.__module__ != "xtensor.tensor"
        and not value.__module__.startswith("xtensor.distributed.")  # there once that package is imported
        and not name.startswith("_")
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
            code = inspect.unwrap(materialized(function)).__code__
            spelled = [a.arg for a in node.args.args]
            assert spelled == list(code.co_varnames[: code.co_argcount]), node.name
            keywords = {a.arg for a in node.args.kwonlyargs}
            actual = set(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
            assert keywords == actual, node.name


def test_every_family_has_a_page_with_its_operators(files):
    for name, family in families().items():
        entries = entries_of(name, family)
        if entries:
            page = files[ROOT / "docs" / "reference" / f"{name}.md"]
            assert all(f"\n## {entry.name}\n" in page for entry in entries)


@pytest.mark.parametrize("name", ["linalg", "fft", "special", "nn.functional"])
def test_every_function_of_a_namespace_has_a_stub(files, name):
    stub = {
        n.name: n
        for n in parsed(files, f"{name.replace('.', '/')}.pyi").body
        if isinstance(n, ast.FunctionDef)
    }
    functions = exported(namespaces()[name])
    assert functions
    assert set(stub) == set(functions)
    for function_name, function in functions.items():
        code = (
            materialized(function).__code__
            if hasattr(function, "operator")
            else inspect.unwrap(function).__code__
        )
        spelled = [a.arg for a in stub[function_name].args.posonlyargs + stub[function_name].args.args]
        assert spelled == list(code.co_varnames[: code.co_argcount]), function_name


@pytest.mark.parametrize("name", ["signal.windows", "masked"])
def test_a_namespace_without_a_stub_is_annotated_in_full(files, name):
    assert ROOT / "xtensor" / f"{name.replace('.', '/')}.pyi" not in files
    functions = exported(namespaces()[name])
    assert functions
    for function in functions.values():
        signature = inspect.signature(function)
        annotations = [signature.return_annotation, *(p.annotation for p in signature.parameters.values())]
        assert inspect.Parameter.empty not in annotations, function


def test_every_namespace_has_a_page_with_its_functions(files):
    index = files[ROOT / "docs" / "reference" / "index.md"]
    for name, namespace in namespaces().items():
        page = files[ROOT / "docs" / "reference" / f"xtensor.{name}.md"]
        assert f"(xtensor.{name}.md)" in index
        entries = entries_in(name, namespace)
        assert entries
        assert all(f"\n## {entry.name}\n" in page for entry in entries)


def test_links_between_the_pages_lead_somewhere(files):
    """Every relative link of the generated pages and of the pages beside them: the file, and the heading in it."""
    pages = {path.resolve(): path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")}
    pages |= {
        (ROOT / name).resolve(): (ROOT / name).read_text("utf-8")
        for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    }
    pages |= {path.resolve(): text for path, text in files.items() if path.suffix == ".md"}
    dead = []
    for page, text in pages.items():
        for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text):
            path, _, heading = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if (file not in pages and not file.exists()) or (heading and heading not in anchors(pages[file])):
                dead.append(f"{page.name}: {target}")
    assert dead == []


def anchors(text: str) -> set[str]:
    """The headings of a page as links name them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_named_tuples_are_found_where_they_say(files):
    result = xtensor.ones(2, 2).max(0)
    assert type(result) is xtensor.return_types.max
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result)
    assert again.values.tolist() == [1.0, 1.0]
    stubbed = {n.name for n in parsed(files, "return_types.pyi").body if isinstance(n, ast.ClassDef)}
    assert {"sort", "linalg_svd", "linalg_lstsq"} <= stubbed <= set(dir(xtensor.return_types))


def test_functions_are_pickled_by_the_names_they_are_found_by():
    functions = {name: getattr(xtensor, name) for name in dir(xtensor) if not name.endswith("_")}
    for name, module in namespaces().items():
        functions |= {f"{name}.{n}": function for n, function in exported(module).items()}
    assert {"add", "fft.fft", "linalg.det", "special.airy_ai"} <= set(functions)
    for name, function in functions.items():
        if inspect.isfunction(function):
            assert pickle.loads(pickle.dumps(function)) is function, name


PROGRAM = """
import xtensor
from xtensor import Tensor

x: Tensor = xtensor.tanh(xtensor.zeros(2, 3))
y: Tensor = (x.tanh() + 1).sum(dim=0, keepdim=True).permute(1, 0).add_(x, alpha=2)
z: Tensor = xtensor.add(x, 2, alpha=3) @ y.permute((1, 0))[0]
z.backward()
u, s, v = xtensor.linalg.svd(x, full_matrices=False)
w: Tensor = xtensor.fft.ifft(xtensor.fft.fft(x, n=4, dim=1)) + xtensor.special.airy_ai(x) + s
w = xtensor.signal.windows.hann(3, sym=False) + xtensor.masked.mean(x, dim=1, mask=x > 0)
w = xtensor.linalg.eigh(x).eigenvalues + xtensor.sort(x).values
x.nothing_of_the_kind
xtensor.sum(x, dmi=0)
x.tanh(1)
xtensor.linalg.inv(x, 3)
xtensor.linalg.svd(x).D
xtensor.fft.fft(x, length=1)
xtensor.masked.sum(x, msk=x)
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
    assert len(errors) == 7, run.stdout
    assert 'Cannot access attribute "nothing_of_the_kind"' in errors[0]
    assert 'No parameter named "dmi"' in errors[1]
    assert "positional" in errors[2]
    assert "positional" in errors[3]
    assert 'Cannot access attribute "D" for class "linalg_svd"' in errors[4]
    assert 'No parameter named "length"' in errors[5]
    assert 'No parameter named "msk"' in errors[6]


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
