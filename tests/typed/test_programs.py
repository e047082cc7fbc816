"""Ten programs of users, which use half of the surface: they run, and pyright and mypy find nothing in strict mode."""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import xtensor
from tests.typed.surface import PROGRAMS, surface, used
from xtensor import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Short enough for every run: the others take 60 s together, compiling hundreds of operators once each.
SHORT = ("devices", "leaving", "saving", "tensors")


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    """The programs where a user has them: outside of the library."""
    for path in PROGRAMS:
        shutil.copy(path, tmp_path / path.name)
    return tmp_path


def test_pyright_finds_nothing_in_strict_mode(folder):
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed: pip install -e '.[dev]'")
    settings = {
        "include": ["."],
        "typeCheckingMode": "strict",
        "extraPaths": [ROOT.as_posix()],
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    run = subprocess.run(
        ["pyright", "--pythonpath", sys.executable, "-p", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1].startswith("0 errors, 0 warnings")


@pytest.mark.full
def test_mypy_finds_nothing_in_strict_mode(folder):
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -e '.[dev]'")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache")]
    # A fault of the library's own files is not the program's: what it says of the programs counts.
    run = subprocess.run(
        [*command, "--follow-imports=silent", *sorted(path.name for path in PROGRAMS)],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=() if p.stem in SHORT else pytest.mark.full) for p in PROGRAMS],
)
def test_a_program_runs(path, tmp_path):
    """Its assertions hold: the hints are true of what runs."""
    run = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr


def test_the_programs_use_half_of_what_there_is():
    assert len(PROGRAMS) == 10
    there_is = {key for names in surface().values() for key in names}
    assert len(there_is) > 1500
    assert len(there_is & {key for path in PROGRAMS for key in used(path)}) >= len(there_is) / 2


def test_what_a_program_uses_is_known(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import xtensor.nn.functional as F\nfrom xtensor import linalg\n"
        "print(F.gelu(linalg.pinv(x)).sin(), x.nothing, gelu, linalg.nothing)\n"
    )
    names = {key: name for held in surface().values() for key, name in held.items()}
    assert {names[key] for key in used(program) if key in names} == {"gelu", "pinv", "sin"}


def test_completion_knows_operators_and_names_that_are_loaded_later():
    assert {"aten", "explain", "source"} <= set(dir(xtensor.ops))
    assert {"add", "scatter_reduce", "transpose"} <= set(dir(xtensor.ops.aten))
    assert {"compile", "vmap", "export", "jax", "fx", "help"} <= set(dir(xtensor))
    assert {"add_", "scatter_reduce", "t"} <= set(dir(xtensor.Tensor))


@pytest.mark.parametrize("function", [xtensor.sum, xtensor.Tensor.add_, nn.functional.conv2d, nn.Linear])
def test_a_question_mark_shows_a_signature_and_a_docstring(function):
    """What IPython and editors show of a name that has not been called yet."""
    assert len(inspect.signature(function).parameters) >= 2
    assert len(inspect.getdoc(function) or "") > 20
