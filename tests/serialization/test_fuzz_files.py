"""A sample of the mutated files; the full run is `python -m tests.fuzz.files`."""

from __future__ import annotations

import os

import pytest

from tests.fuzz import files

MUTATIONS, BATCH = 600, 100


@pytest.mark.parametrize("start", range(0, MUTATIONS, BATCH))
def test_mutations_load_or_are_refused(start: int) -> None:
    tally = files.judge(start, start + BATCH)
    assert tally.failures == []
    assert {outcome for _, outcome in tally.outcomes} == {"loaded", "refused"}


def test_the_judge_sees_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    court = files.Court()
    monkeypatch.setattr(court, "load", lambda *_, **__: os.system("true"))
    tally = files.Tally()
    for index in range(20):
        court.judge(index, tally)
    assert any("ran os.system" in failure for failure in tally.failures)


def test_the_judge_sees_errors_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    court = files.Court()

    def greedy(*_: object, **__: object) -> None:
        bytearray(files.MEMORY * 2)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    for fault, expected in ((greedy, "MiB"), (broken, "ZeroDivisionError")):
        monkeypatch.setattr(court, "load", fault)
        files.tracemalloc.start()
        tally = files.Tally()
        for index in range(20):
            court.judge(index, tally)
        files.tracemalloc.stop()
        assert any(expected in failure for failure in tally.failures)
