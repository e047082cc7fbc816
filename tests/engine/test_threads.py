"""Threads that share tensors: values race, nothing fails; with one thread, buffers are reused as before."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import xtensor
from tests.fuzz.threads import CASES, race
from xtensor.xla import threads
from xtensor.xla.pending import workers
from xtensor.xla.x64 import SOON


@pytest.mark.parametrize("case", CASES)
def test_nothing_fails(case: str) -> None:
    done, errors = race(case, 60.0, rounds=150)
    assert errors == {}
    assert min(done.values()) > 0


def set_masked(out: xtensor.Tensor, i: int) -> None:
    out[xtensor.arange(len(out)) == i] = 1.0


def set_index(out: xtensor.Tensor, i: int) -> None:
    out[xtensor.tensor([i])] = 1.0


def set_slice(out: xtensor.Tensor, i: int) -> None:
    out[i : i + 1] = xtensor.ones(1)


WRITES: dict[str, Callable[[xtensor.Tensor, int], object]] = {
    "number": lambda out, i: out.__setitem__(i, 1.0),
    "slice": set_slice,
    "index": set_index,
    "mask": set_masked,
    "view": lambda out, i: out[i].add_(1),
    "whole": lambda out, i: out.index_add_(0, xtensor.tensor([i]), xtensor.ones(1)),
    "out": lambda out, i: xtensor.add(xtensor.zeros(1), 1, out=out[i : i + 1]),
    "foreach": lambda out, i: xtensor._foreach_add_([out[i : i + 1]], 1.0),
    "base": lambda out, i: out.view(8, -1).t()[i % (len(out) // 8), i // (len(out) // 8)].fill_(1),
}


@pytest.mark.parametrize("write", WRITES)
def test_threads_fill_one_tensor(write: str) -> None:
    """What another thread wrote elsewhere in the tensor meanwhile is not lost."""
    many, threads_ = 200, 4
    out, together = xtensor.zeros(many), threading.Barrier(threads_)

    def fill(first: int) -> None:
        together.wait(60)
        for i in range(first, many, threads_):
            WRITES[write](out, i)

    workers = [threading.Thread(target=fill, args=(i,)) for i in range(threads_)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert out.tolist() == [1.0] * many
    assert out._version >= many


def memory_of(tensor: xtensor.Tensor) -> int:
    return tensor._xt_storage.array.unsafe_buffer_pointer()


def test_buffers_are_given_up_only_where_one_thread_runs_operators() -> None:
    for _ in range(
        SOON + 2
    ):  # a call that is new waits, and the first ones may have a program that gives nothing up
        workers.wait()
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
