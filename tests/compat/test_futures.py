"""`torch.futures`: what waits for a result runs where it is set."""

import threading

import pytest

import xtensor
from xtensor.futures import Future, collect_all, wait_all


def test_what_follows_runs_when_the_result_is_there(capsys):
    future = Future()
    seen = []
    future.add_done_callback(lambda done: seen.append(done.value()))
    later = future.then(lambda done: done.wait() + 1).then(lambda done: done.value() * 2)
    assert not (future.done() or later.done())
    future.set_result(5)
    assert (seen, later.wait(), later.done()) == ([5], 12, True)
    future.add_done_callback(lambda done: 1 / 0)
    assert "ZeroDivisionError" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="completed Future as complete again"):
        future.set_result(6)


def test_errors_go_where_the_result_would():
    future = Future()
    after = future.then(lambda done: done.wait())
    both = collect_all([future])
    with pytest.raises(RuntimeError, match="not completed"):
        future.value()
    future.set_exception(ValueError("foo"))
    for asked in (future.wait, future.value, both.wait):
        with pytest.raises(ValueError, match="foo"):
            asked()
    with pytest.raises(RuntimeError, match="error when running the callback: ValueError: foo"):
        after.wait()
    with pytest.raises(AssertionError, match="not an Exception"):
        Future().set_exception(5)
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        Future(devices=["cpu"])


def test_threads_set_what_another_waits_for():
    futures = [Future() for _ in range(3)]
    together = collect_all(futures)
    threads = [threading.Thread(target=f.set_result, args=(n,)) for n, f in enumerate(futures)]
    for thread in threads:
        thread.start()
    assert [f.value() for f in together.wait()] == wait_all(futures) == [0, 1, 2]
    assert collect_all([]).wait() == []
    assert (
        isinstance(xtensor.jit.fork(lambda: 3), Future) and xtensor.jit.wait(xtensor.jit.fork(lambda: 3)) == 3
    )
