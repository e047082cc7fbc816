"""CONTRIBUTING's "Adding an operator", done as it says, in a copy of the repository."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIED = (
    "xtensor",
    "tests",
    "tools",
    "docs",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
)


def blocks() -> dict[str, str]:
    """The section's Python blocks, by the file that their first line names."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = text.partition("## Adding an operator")[2].partition("\n## ")[0]
    found = {}
    for block in re.findall(r"^ *```python\n(.*?)^ *```", section, re.DOTALL | re.MULTILINE):
        first, _, rest = textwrap.dedent(block).partition("\n")
        found[first.removeprefix("# ")] = rest
    return found


def test_the_section_names_two_files():
    assert sorted(blocks()) == ["tests/table/elementwise.py", "xtensor/ops/pointwise/elementwise.py"]


def run(copy: pathlib.Path, *command: str) -> str:
    """The output of a command in the copy, with the copy's own package."""
    found = subprocess.run(
        [sys.executable, *command],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-2000:]
    return found.stdout


@pytest.mark.full
@pytest.mark.timeout(600)
def test_two_files_and_one_command_make_an_operator(tmp_path):
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    for name, text in blocks().items():
        path = tmp_path / name
        path.write_text(f"{path.read_text('utf-8')}\n\n{text}", "utf-8")

    wrote = run(tmp_path, "tools/generate.py")
    assert "xtensor/functions.pyi" in wrote
    assert "docs/reference/elementwise.md" in wrote
    for name in ("xtensor/functions.pyi", "xtensor/methods.pyi"):
        assert "def gudermannian(" in (tmp_path / name).read_text("utf-8")
    assert "def gudermannian_(" in (tmp_path / "xtensor" / "methods.pyi").read_text("utf-8")
    assert "## gudermannian" in (tmp_path / "docs" / "reference" / "elementwise.md").read_text("utf-8")

    chosen = "gudermannian or fresh or every_operator_has_a_row"
    tested = run(
        tmp_path,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/ops/test_table.py",
        "tests/house/test_generated.py",
        "-k",
        chosen,
    )
    assert re.search(r"\b1[0-9] passed", tested), tested
    explained = run(tmp_path, "-c", "import xtensor as x; print(x.ops.explain('gudermannian', x.ones(3)))")
    assert "xtensor/ops/pointwise/elementwise.py" in explained
    assert "[saves input]" in explained
    assert "stablehlo.tanh" in explained
