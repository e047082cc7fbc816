"""Compiled functions and captures beside other threads, which never see what a capture sees."""

from __future__ import annotations

import threading
from typing import Any

import xtensor
from xtensor import nn


def test_another_thread_reads_a_model_while_it_is_captured() -> None:
    xtensor.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    x = xtensor.randn(3, 4)
    expected = model(x).tolist()
    found: list[Any] = []
    errors: list[BaseException] = []
    stop, begun = threading.Event(), threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                found.append(model(x).tolist())
                begun.set()
        except BaseException as error:
            errors.append(error)
            begun.set()

    thread = threading.Thread(target=read)
    thread.start()
    begun.wait()
    try:
        runs = [xtensor.compile(lambda a, k=k: model(a) * k) for k in range(1, 4)]
        for run in runs:
            run(x)
            run(x)
    finally:
        stop.set()
        thread.join()
    assert not errors and all(values == expected for values in found)


def test_threads_that_call_one_function() -> None:
    w = nn.Parameter(xtensor.full((3,), 2.0))
    f = xtensor.compile(lambda x: (w * x).sum())
    x = xtensor.arange(3.0)
    f(x)
    f(x)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                (grad,) = xtensor.autograd.grad(f(x), [w])
                assert grad is not None and grad.tolist() == [0.0, 1.0, 2.0]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
