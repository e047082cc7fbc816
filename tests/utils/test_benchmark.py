"""`utils.benchmark`: what a Timer runs, and what its Measurement says."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import xtensor
from xtensor.utils.benchmark import Measurement, Timer


def counted() -> tuple[list[int], dict[str, Any]]:
    runs: list[int] = []
    return runs, {"runs": runs, "x": xtensor.ones(3)}


def test_a_measurement_of_so_many_runs() -> None:
    runs, names = counted()
    found = Timer("runs.append(1); x + 1", globals=names).timeit(200)
    assert len(runs) == 202 and found.number_per_run == 200 and len(found.times) == 1
    assert found.times[0] == found.raw_times[0] / 200 == found.median == found.mean and found.iqr == 0


def test_as_many_as_fit_into_the_time() -> None:
    clock = itertools.count(0, 5)
    heard: list[tuple[int, float]] = []
    timer = Timer("pass", timer=lambda: float(next(clock)))
    found = timer.blocked_autorange(lambda number, seconds: heard.append((number, seconds)), min_run_time=5)
    assert found.raw_times == [5.0] and heard == [(1, 5.0)]
    assert timer.adaptive_autorange(min_run_time=2, max_run_time=30).iqr == 0


def test_what_it_says(torch: Any) -> None:
    from torch.utils.benchmark import Measurement as Theirs
    from torch.utils.benchmark.utils.common import TaskSpec

    for times in ([0.25], [0.02, 0.0203, 0.0205, 0.0201]):
        ours = Measurement(10, times, label="fit", sub_label="small", stmt="f()")
        theirs = Theirs(10, times, TaskSpec(stmt="f()", setup="", label="fit", sub_label="small"))
        assert (ours.median, ours.mean) == pytest.approx((theirs.median, theirs.mean))
        assert ours.iqr == pytest.approx(theirs.iqr)
        assert repr(ours).splitlines()[2:] == repr(theirs).splitlines()[2:]


def test_what_it_does_not_measure() -> None:
    with pytest.raises(NotImplementedError, match="Python statements alone"):
        Timer("x;", language="c++")
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        Timer("pass").repeat()
