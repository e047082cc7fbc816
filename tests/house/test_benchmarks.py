"""The benchmark of whole processes: its table of public scripts, how their files are had, and what its figures are judged by."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import public_scripts  # noqa: E402  # pyright: ignore[reportMissingImports]
import start  # noqa: E402  # pyright: ignore[reportMissingImports]
import suite  # noqa: E402  # pyright: ignore[reportMissingImports]

sys.path.remove(str(ROOT / "benchmarks"))


@pytest.mark.parametrize("name", public_scripts.SCRIPTS)
def test_a_script_runs_what_is_fetched(name: str) -> None:
    script = public_scripts.SCRIPTS[name]
    repository = public_scripts.REPOSITORIES[script.repository]
    files = {*repository.files, *repository.made}
    assert re.fullmatch(r"[0-9a-f]{40}", repository.commit)
    named = [word for word in script.command if word.endswith(".py")]
    if script.command[0] == "-c":
        [module] = re.findall(r"^from ([\w.]+) import test; test\(\)$", script.command[1])
        named = [f"{module.replace('.', '/')}.py"]
    assert named
    assert {(pathlib.PurePosixPath(script.folder) / word).as_posix() for word in named} <= files


def test_there_are_scripts_of_all_kinds() -> None:
    scripts = [*public_scripts.SCRIPTS.values()]
    assert len(scripts) + len(start.own_jobs()) >= 60
    assert {s.kind for s in scripts} >= {"image model", "gpt", "recurrent", "tutorial", "operator suite"}
    assert {s.repository for s in scripts} == {*public_scripts.REPOSITORIES}


@pytest.fixture
def clone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder of clones with one repository, whose file has changed since the commit that is asked for."""
    folder = tmp_path / "clones" / "owner" / "name"
    folder.mkdir(parents=True)

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    (folder / "sub").mkdir()
    for text in ("first", "second"):
        (folder / "sub" / "a.py").write_text(text)
        git("add", ".")
        git("commit", "-qm", text)
    repository = public_scripts.Repository(
        git("rev-parse", "HEAD~1"), ("sub/a.py",), {"b.txt": lambda: b"made"}
    )
    monkeypatch.setitem(public_scripts.REPOSITORIES, "owner/name", repository)
    return tmp_path / "clones"


def test_files_are_those_of_the_commit(clone: pathlib.Path, tmp_path: pathlib.Path) -> None:
    folder = public_scripts.fetch("owner/name", tmp_path / "cache", clone)
    assert (folder / "sub" / "a.py").read_text() == "first"
    assert (folder / "b.txt").read_bytes() == b"made"
    # Once had, they are had.
    assert public_scripts.fetch("owner/name", tmp_path / "cache", tmp_path / "nowhere") == folder


def test_what_cannot_be_had_leaves_nothing(clone: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(public_scripts.Absent):
        public_scripts.fetch("owner/name", tmp_path / "cache", tmp_path / "nowhere")
    assert not [path for path in (tmp_path / "cache").glob("*") if path.suffix != ".part"]
    assert public_scripts.fetch("owner/name", tmp_path / "cache", clone).exists()


def test_a_failing_script_is_told(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bad.py").write_text("raise SystemExit('because')")
    job = start.Job("own", ("bad.py",), tmp_path)
    with pytest.raises(RuntimeError, match=r"torch, status 1: because"):
        start.process(job, "torch", str(tmp_path))


def script(torch: float, cold: float, warm: float) -> dict[str, float | str]:
    seconds = {"torch": torch, "cold": cold, "warm": warm}
    ratios = {f"{name} to torch": seconds[name] / torch for name in ("cold", "warm")}
    return seconds | {f"{n} cpu": v for n, v in seconds.items()} | ratios | {"kind": "own", "programs": 3}


def test_totals_are_of_seconds_and_bounds_are_judged() -> None:
    scripts = {"short": script(1, 7, 1), "long": script(9, 3, 9)}
    sums = start.total(scripts)
    assert (sums["cold to torch"], sums["warm to torch"], sums["programs"]) == (1.0, 1.0, 6)
    found = {
        "scripts": scripts,
        "all scripts": sums,
        "lengths": {"context": {"torch": 0.1, "cold": 5.0, "warm": 2.0}},
    }
    judged = {row.name: row.holds for row in suite.start_rows(found)}
    assert judged == {
        "lengths: context, cold": True,
        "lengths: context, warm": False,
        "2 scripts, cold": True,
        "2 scripts, warm": True,
        "short, cold": False,
        "short, warm": True,
        "long, cold": True,
        "long, warm": True,
    }
    assert any(
        "| short | own | 1.00 | 7.00 | **7.00** | 1.00 | 1.00 | 3 |" in line
        for line in suite.scripts_table(scripts)
    )
