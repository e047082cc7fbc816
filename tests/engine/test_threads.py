"""Threads that share tensors: values race, nothing fails; with one thread, buffers are reused as before."""

from __future__ import annotations

import threading

import pytest

import xtensor
from tests.fuzz.threads import CASES, race
from xtensor.xla import threads


@pytest.mark.parametrize("case", CASES)
def test_nothing_fails(case: str) -> None:
    done, errors = race(case, 60.0, rounds=150)
    assert errors == {}
    assert min(done.values()) > 0


def memory_of(tensor: xtensor.Tensor) -> int:
    return tensor._xt_storage.array.unsafe_buffer_pointer()


def test_buffers_are_given_up_only_where_one_thread_runs_operators() -> None:
    for _ in range(2):  # a call that is new waits, and its program is then another
        x = xtensor.zeros(1031)
        x.add_(1).add_(1)
        assert threads.others == []
        before = memory_of(x)
        x.add_(1)
    assert memory_of(x) == before
    ready, leave = threading.Event(), threading.Event()

    def other() -> None:
        xtensor.ones(2).add(1)
        ready.set()
        leave.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert ready.wait(60)
        assert len(threads.others) == 1
        x.add_(1)  # compiles the program that gives nothing up
        before = memory_of(x)
        x.add_(1)
        assert memory_of(x) != before
        assert x[0].item() == 5
    finally:
        leave.set()
        thread.join()
    del thread
    assert threads.others == []


def test_the_packages_own_threads_do_not_count() -> None:
    assert threads.OWN == "xtensor "
    found = []

    def work() -> None:
        xtensor.ones(2).add(1)
        found.append(list(threads.others))

    thread = threading.Thread(target=work, name=f"{threads.OWN}test")
    thread.start()
    thread.join()
    assert found == [[]]
