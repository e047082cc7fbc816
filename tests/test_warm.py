"""`python -m xtensor.warm`: programs run ahead, and what they compiled found by others."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from xtensor import warm

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Four steps: the backward graph has its plan in the third.
PROGRAM = """
import json, sys
import torch
from xtensor import compile_cache
from xtensor.plans.plans import executor

model = torch.nn.Linear(3, 2)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    optimizer.zero_grad()
    model(torch.ones(5, 3)).square().mean().backward()
    optimizer.step()
if "judge" in sys.argv:
    executor.wait()
    print(json.dumps(compile_cache.stats()))
else:
    print("ran", *sys.argv[1:])
    sys.exit(int(sys.argv[1]))
"""


def run(
    folder: pathlib.Path, *words: str, code: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XTENSOR_COMPILE"))}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        env=kept | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "home")} | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr[-2000:]
    return done


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def added(text: str) -> tuple[int, int]:
    """Programs added, and programs there."""
    found = re.search(r"^(\d+) programs added, [\d.]+ MB; (\d+) programs, [\d.]+ MB in ", text, re.M)
    assert found is not None, text
    return int(found[1]), int(found[2])


def test_an_own_cache_is_filled(folder: pathlib.Path) -> None:
    done = run(folder, "xtensor.warm", "program.py", "3", "--to", code=3)
    assert done.stdout.startswith("ran 3 --to\n")
    assert "status 3 of: program.py 3 --to" in done.stderr
    count, total = added(done.stdout)
    assert count == total > 5
    assert str(folder / "home") in done.stdout
    assert added(run(folder, "xtensor.warm", "program.py", "0").stdout) == (0, total)
    told = json.loads(run(folder, "xtensor", "program.py", "judge").stdout)
    assert (told["hits"], told["misses"]) == (total, 0)


def test_a_shared_store_is_filled_by_a_list_and_read_by_others(folder: pathlib.Path) -> None:
    (folder / "list").write_text(
        "# what is warmed\nprogram.py 0  # trained\n\n-c 'import torch; torch.ones(3, 7).erf()'\n"
    )
    done = run(folder, "xtensor.warm", "--list", "list", "--to=shared")
    count, total = added(done.stdout)
    assert count == total > 6
    assert not (folder / "home").exists()
    assert added(run(folder, "xtensor.warm", "--to", "shared", "program.py", "0").stdout) == (0, total)
    [machine] = (folder / "shared").iterdir()
    assert not list(machine.glob(".making*"))
    before = {f.name: f.stat().st_mtime_ns for f in machine.iterdir()}
    told = json.loads(
        run(
            folder, "xtensor", "program.py", "judge", XTENSOR_COMPILE_CACHE_SHARED=str(folder / "shared")
        ).stdout
    )
    assert (told["hits"], told["misses"]) == (total - 1, 0)
    # Nothing was written: neither there nor to the own one.
    assert before == {f.name: f.stat().st_mtime_ns for f in machine.iterdir()}
    assert not list((folder / "home").rglob("*.xla"))


def test_without_a_cache_there_is_nothing_to_fill(folder: pathlib.Path) -> None:
    done = run(folder, "xtensor.warm", "program.py", "0", code=2, XTENSOR_COMPILE_CACHE="off")
    assert "the compile cache is off" in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes are POSIX's")
def test_a_folder_that_nobody_would_trust_is_refused(folder: pathlib.Path, capsys) -> None:
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    assert warm.main(["--to", str(folder / "open"), "program.py"]) == 2
    assert "others may write to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "SCRIPT is missing"),
        (["--to", "folder"], "SCRIPT is missing"),
        (["--list"], "argument --list: expected one argument"),
        (["--list", "list", "program.py"], "a list and a program"),
        (["--list", "missing", "--to", "folder"], "No such file"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, monkeypatch, capsys, words, why) -> None:
    monkeypatch.chdir(tmp_path)
    assert warm.main(words) == 2
    assert why in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_help(capsys) -> None:
    assert warm.main(["--help"]) == 0
    assert "--to FOLDER" in capsys.readouterr().out
