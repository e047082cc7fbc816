"""The README: its taste runs, its commands are one line each and name what is there."""

import ast
import io
import pathlib
import re
import runpy
import sys
import tomllib
from contextlib import redirect_stdout

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# What is imported under another name than it is installed.
INSTALLED_AS = {"absl": "absl-py", "sklearn": "scikit-learn"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def installed_by(extra: str) -> set[str]:
    """The names that a plain install and an extra bring."""
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]]
    return {re.split(r"[\[<>=]", requirement)[0] for requirement in wanted}


def test_the_taste_runs(tmp_path):
    (taste,) = blocks("python")
    file = tmp_path / "taste.py"  # what is compiled is read from its file
    file.write_text(taste, "utf-8")
    printed = io.StringIO()
    with redirect_stdout(printed):
        runpy.run_path(str(file))
    assert printed.getvalue().startswith("tensor([[ 0.,  0.,  0.],\n        [10., 10., 10.]])\n")
    assert "MseLossBackward0" in printed.getvalue() and printed.getvalue().endswith("True\n")


def test_two_commands_of_one_line():
    train, test = blocks("sh")
    assert train.count("\n") == test.count("\n") == 1
    for command, extra, runs in ((train, "examples", "examples/digits.py"), (test, "dev", "-m pytest")):
        steps = [step.strip() for step in command.split("&&")]
        assert steps[0] == "python3 -m venv .venv"
        assert re.fullmatch(rf"\.venv/bin/pip install (-e )?'\.\[{extra}\]'", steps[1])
        assert runs in steps[2] and steps[2].startswith(".venv/bin/python ")
    assert (ROOT / "examples" / "digits.py").is_file()


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_the_extra_brings_what_an_example_imports(path):
    brought = installed_by("examples") | {"xtensor"} | {p.stem for p in path.parent.glob("*.py")}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names:
                assert INSTALLED_AS.get(top, top) in brought, name


def test_the_extras_of_the_table_exist():
    for extra in re.findall(r"pip install (?:-e )?'\.\[(.+?)\]'", README):
        assert extra in PROJECT["optional-dependencies"]
