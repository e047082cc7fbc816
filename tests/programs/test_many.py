"""The run over many signatures: what it counts, and that passed bounds are told."""

from __future__ import annotations

import gc
import itertools
import pathlib

import numpy as np
import pytest

from tests.programs import many
from xtensor import compile_cache
from xtensor.xla.store import Program

pytestmark = pytest.mark.skipif(not pathlib.Path("/proc/self/maps").exists(), reason="reads Linux's /proc")


def test_no_signature_comes_twice() -> None:
    met = list(itertools.islice(many.signatures(), 5000))
    assert len(set(met)) == 5000
    assert {name for name, _ in met} == set(many.OPERATORS)
    assert max(rows * columns for _, (rows, columns) in met) < 1000


def test_reports_come_at_the_start_and_after_every_so_many() -> None:
    reports = list(many.meet_many(24, 10))
    assert [report.signatures for report in reports] == [0, 10, 20, 24]
    assert all(report.memory > 50 and report.maps > 50 and report.round > 0 for report in reports)
    assert [report.again for report in reports] == [(), (), (), ()]


def test_programs_in_use_that_are_made_again_are_counted() -> None:
    reports = many.meet_many(16, 8)
    assert next(reports).again == ()
    many.xtensor.tanh(many.xtensor.ones(3))  # outside a round: no matter
    original, sizes = many.WorkingSet.run, itertools.count(3000)

    def run(self: many.WorkingSet) -> np.ndarray:
        many.xtensor.ones(2, next(sizes)).log2()
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many.WorkingSet, "run", run)
        assert next(reports).again


def test_programs_in_use_that_come_by_without_being_made_are_not_counted() -> None:
    reports = many.meet_many(16, 8)
    assert next(reports).again == ()
    original, came = many.WorkingSet.run, []

    def run(self: many.WorkingSet) -> np.ndarray:
        for program in [p for p in gc.get_objects() if type(p) is Program and p.name == "sum"]:
            program.forget()  # as the thread does that compiles for good what was compiled the quick way
            came.append(program)
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many.WorkingSet, "run", run)
        assert next(reports).again == ()
    assert came


def test_a_wrong_result_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = many.meet_many(16, 8)
    next(reports)
    original = many.WorkingSet.run
    monkeypatch.setattr(many.WorkingSet, "run", lambda self: original(self) + 1)
    with pytest.raises(AssertionError):
        next(reports)


@pytest.mark.parametrize(("bound", "told"), [("--memory", "memory: "), ("--maps", "maps: ")])
def test_a_passed_bound_is_told(bound, told, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(compile_cache, "set_directory", lambda path: None)
    # Other tests of this process have used memory before.
    plenty = ["8", "--slower", "1000", "--memory", "1000000", "--maps", "1000000"]
    assert many.main(plenty) == 0
    assert "passed" not in capsys.readouterr().out
    assert many.main([*plenty, bound, "1"]) == 1
    assert f"passed its bound: {told}" in capsys.readouterr().out
