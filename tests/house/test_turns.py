"""Contenders with processes of their own: who has a turn when, what is told of one that fails, and that all of them end."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import turns  # noqa: E402  # pyright: ignore[reportMissingImports]

sys.path.remove(str(ROOT / "benchmarks"))

CONTENDERS = """
import os, sys

def noting(name, path):
    print("printed beside the answers")

    def run():
        with open(path, "a") as file:
            file.write(name)
        return lambda: None

    return run, {"process": os.getpid()}

def refused():
    raise ValueError("no such model")

def failing(calls):
    left = [calls]

    def run():
        if not left[0]:
            raise ValueError("no such step")
        left[0] -= 1
        return lambda: None

    return run, {}

def ended():
    os._exit(3)

def libraries(*arguments):
    import steps

    run, report = steps.contender(*arguments)
    return run, report | {"libraries": {"jax", "torch", "xtensor"} & sys.modules.keys()}
"""


@pytest.fixture(autouse=True)
def quick(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without rests, and a module of contenders that the processes find."""
    monkeypatch.setattr(turns, "SETTLE", 0.0)
    (tmp_path / "contenders.py").write_text(CONTENDERS, "utf-8")
    path = [str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))


def test_turns_go_back_and_forth(tmp_path: pathlib.Path) -> None:
    noted = tmp_path / "noted"
    with (
        turns.Process("first", "contenders:noting", "a", str(noted), seconds=0) as first,
        turns.Process("second", "contenders:noting", "b", str(noted), seconds=0) as second,
    ):
        assert len({first.report["process"], second.report["process"], os.getpid()}) == 3
        # Two calls find out how many a turn has: here one, after one that warms it up.
        assert noted.read_text() == "aabb"
        found = turns.measure_apart([first, second], 3)
    assert noted.read_text() == "aabb" + "aabb" + "bbaa" + "aabb"
    assert {name: len(times) for name, times in found.items()} == {"first": 3, "second": 3}
    assert first.process.returncode == second.process.returncode == 0


def test_both_ways_of_measuring_make_the_same_calls() -> None:
    noted = ""

    def run(name: str) -> turns.Run:
        def call() -> turns.Run:
            nonlocal noted
            noted += name
            return lambda: lambda: None

        return call

    found = turns.measure({"first": run("a"), "second": run("b")}, 3, 0)
    assert noted == "aabb" + "aabb" + "bbaa" + "aabb"
    assert {name: len(times) for name, times in found.items()} == {"first": 3, "second": 3}


def test_a_factory_that_fails_is_told_with_its_traceback() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)mine, in its process.*in refused.*no such model"):
        turns.Process("mine", "contenders:refused", seconds=0)


def test_a_turn_that_fails_is_told_and_ends_all(tmp_path: pathlib.Path) -> None:
    other = turns.Process("other", "contenders:noting", "a", str(tmp_path / "noted"), seconds=0)
    failing = turns.Process("mine", "contenders:failing", 3, seconds=0)
    with (
        pytest.raises(RuntimeError, match=r"(?s)mine, in its process.*in run.*no such step"),
        other,
        failing,
    ):
        turns.measure_apart([other, failing], 3)
    assert other.process.returncode is not None and failing.process.returncode is not None


def test_a_process_that_ends_is_told() -> None:
    with pytest.raises(RuntimeError, match="mine: its process ended with 3"):
        turns.Process("mine", "contenders:ended", seconds=0)


def test_a_process_ends_with_the_one_that_asks(tmp_path: pathlib.Path) -> None:
    process = turns.Process("mine", "contenders:noting", "a", str(tmp_path / "noted"), seconds=0)
    assert process.process.stdin is not None
    process.process.stdin.close()
    assert process.process.wait(30) == 0
    process.close()


@pytest.mark.parametrize(("who", "libraries"), [("jit", {"jax"}), ("torch", {"torch"})])
def test_a_contender_has_its_own_library_alone(who: str, libraries: set[str]) -> None:
    if importlib.util.find_spec(who) is None and who == "torch":
        pytest.skip("PyTorch is not installed")
    weights = turns.Process("xtensor", "steps:contender", "xtensor", "mlp-32x64-sgd", None, seconds=0)
    with (
        weights,
        turns.Process(
            who, "contenders:libraries", who, "mlp-32x64-sgd", weights.report["weights"], seconds=0
        ) as process,
    ):
        assert process.report["libraries"] == libraries
        assert process.report["loss"] == pytest.approx(weights.report["loss"], rel=1e-3)
