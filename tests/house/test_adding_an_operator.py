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


OPERATOR, FAMILY = "Adding an operator", "Adding a family"


def blocks(title: str) -> dict[str, str]:
    """A section's Python blocks, by the file that their first line names."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    found = {}
    for block in re.findall(r"^ *```python\n(.*?)^ *```", section, re.DOTALL | re.MULTILINE):
        first, _, rest = textwrap.dedent(block).partition("\n")
        found[first.removeprefix("# ")] = rest
    return found


def test_an_operator_and_a_view_take_two_files_and_a_family_three():
    operator = ["tests/table/elementwise.py", "xtensor/ops/pointwise/elementwise.py"]
    view = ["tests/table/shapes.py", "xtensor/ops/shape/shapes.py"]
    assert sorted(blocks(OPERATOR)) == sorted(operator + view)
    assert sorted(blocks(FAMILY)) == [
        "tests/table/haversines.py",
        "xtensor/__init__.py",
        "xtensor/ops/pointwise/haversines.py",
    ]
    assert blocks(FAMILY)["xtensor/__init__.py"].count("\n") == 1


def write(path: pathlib.Path, text: str) -> None:
    """Add a block to its file: an import after the last that is like it, anything else at the end."""
    held = path.read_text("utf-8") if path.exists() else ""
    if text.startswith("from .ops."):
        package = text[: text.index(".", len("from .ops."))]
        last = held.index("\n", held.rindex(f"{package}.")) + 1
        path.write_text(held[:last] + text + held[last:], "utf-8")
    else:
        path.write_text(f"{held}\n\n{text}" if held else text, "utf-8")


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
@pytest.mark.timeout(900)
def test_what_the_sections_say_is_all_that_it_takes(tmp_path):
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    for name, text in (blocks(OPERATOR) | blocks(FAMILY)).items():
        write(tmp_path / name, text)

    wrote = run(tmp_path, "tools/generate.py")
    assert "xtensor/functions.pyi" in wrote
    stubs = [(tmp_path / "xtensor" / name).read_text("utf-8") for name in ("functions.pyi", "methods.pyi")]
    pages = {"elementwise": "gudermannian", "shapes": "inner_part", "haversines": "haversine"}
    for page, name in pages.items():
        assert f"docs/reference/{page}.md" in wrote
        assert f"## {name}" in (tmp_path / "docs" / "reference" / f"{page}.md").read_text("utf-8")
        assert all(f"def {name}(" in stub for stub in stubs)
    assert "def gudermannian_(" in stubs[1] and "def haversine_(" in stubs[1]

    rows = " or ".join(pages.values())
    tested = run(
        tmp_path,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("tests/ops/test_table.py", "tests/house/test_generated.py", "tests/house/test_house.py"),
        *("-k", f"{rows} or fresh or every_operator_has_a_row or test_house and import"),
    )
    assert re.search(r"\b[2-4][0-9] passed", tested), tested
    explained = run(tmp_path, "-c", "import xtensor as x; print(x.ops.explain('gudermannian', x.ones(3)))")
    assert "xtensor/ops/pointwise/elementwise.py" in explained
    assert "[saves input]" in explained
    assert "stablehlo.tanh" in explained
