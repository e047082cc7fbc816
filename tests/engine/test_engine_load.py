"""The engine under load, on toy gradients: long chains, passes within passes, many threads."""

from __future__ import annotations

import gc
import sys
import threading
import traceback
import weakref

import pytest

from tests.toy_graph import (
    SOON,
    Linear,
    add,
    backward,
    chain,
    grad,
    leaf,
    meet_if_possible,
    mul,
    nested,
    no_collector,
    scale,
)
from tests.toy_graph import toy_rules as toy_rules
from xtensor import engine
from xtensor.engine import modes, task, workers
from xtensor.engine.graph import AccumulateGrad


def test_a_chain_of_100_000_nodes_runs_and_is_destroyed_without_recursion():
    length = 100_000
    x = leaf()
    freed = []

    class Counted(Linear):
        __slots__ = ()

        def __del__(self):
            freed.append(sys._getframe(1).f_code.co_name if len(freed) < 3 else None)

    with no_collector():
        edge = x.leaf.edge()
        for _ in range(length):
            edge = (Counted((edge,), ((1.0,),)), 0)
        engine.run_backward((edge,), (1.0,), True)
        assert x.grad == 1.0
        assert engine.run_backward((edge,), (1.0,), False, False, (x.leaf.edge(),), False, False) == (1.0,)
        assert not freed
        del edge
        assert len(freed) == length
        assert x.leaf.accumulator() is None


def test_work_per_node_does_not_grow_with_the_chain():
    def count(length):
        """Python function calls made in the engine."""
        out = chain(leaf(), length)
        calls = 0

        def profile(frame, event, arg):
            nonlocal calls
            calls += event == "call"

        sys.setprofile(profile)
        try:
            backward(out)
        finally:
            sys.setprofile(None)
        return calls

    short, long = count(1_000), count(10_000)
    assert (long - short) / 9_000 <= short / 1_000


def test_saved_values_are_gone_when_backward_returns():
    class Saved:
        pass

    class Keeps(Linear):
        __slots__ = ("saved",)

        def _xt_release(self):
            self.saved = None

    x = leaf()
    node = Keeps((x._gradient_edge(),), ((1.0,),))
    node.saved = Saved()
    alive = weakref.ref(node.saved)
    with no_collector():
        engine.run_backward(((node, 0),), (1.0,))
        assert alive() is None


def test_steps_do_not_grow_with_the_collector_off():
    x = leaf()

    def step():
        out = add(scale(x), mul(x, x))
        out.register_hook(lambda g: g)
        backward(out)
        grad([mul(x, x)], [x])

    with no_collector():
        for _ in range(10):
            step()
        before = len(gc.get_objects())
        for _ in range(1_000):
            step()
        assert len(gc.get_objects()) - before < 20


def test_reentrant_backward_1000_deep():
    x = leaf()
    backward(nested(1_000, x))
    assert x.grad == 1_000.0
    assert len(workers._Fresh.idle) <= workers._Fresh.max_idle


def test_reentrant_errors_and_modes_cross_the_threads():
    seen = []

    def fail():
        seen.append((engine.is_grad_enabled(), bool(modes.state.mode & engine.AUTOCAST), task.local.depth))
        raise ValueError("at the bottom")

    with engine.flag(engine.AUTOCAST), pytest.raises(ValueError, match="at the bottom") as caught:
        backward(nested(300, leaf(), fail))
    assert seen == [(False, True, 300)]
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "fail" and names.count("apply") == 300
    assert task.local.depth == 0


def test_reentrant_backward_from_hooks_and_callbacks():
    x = leaf()
    out = scale(x)

    def hook(g):
        out.register_hook(lambda g: engine.queue_callback(lambda: backward(scale(x, 100.0))))
        assert grad([scale(x, 7.0)], [x]) == (7.0,)
        backward(scale(x, 10.0))

    with out.register_hook(hook):
        backward(out, keep_graph=True)
    assert x.grad == 12.0
    backward(out)
    assert x.grad == 114.0


def test_threads_that_share_leaves_lose_no_gradient():
    x = leaf()

    class Slow(float):
        def __add__(self, other):
            value = float(self)
            go.wait(0)  # lets another thread in between the read and the write
            return Slow(value + float(other))

    go = threading.Event()
    x.grad = Slow(0.0)
    start = threading.Barrier(8)
    errors = []

    def work():
        try:
            start.wait(SOON)
            for _ in range(50):
                backward(add(scale(x), scale(x, 3.0)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    assert float(x.grad) == 8 * 50 * 5.0


def test_threads_get_one_accumulator(monkeypatch):
    barrier = threading.Barrier(2)

    def new(cls):
        meet_if_possible(barrier)
        return object.__new__(cls)

    monkeypatch.setattr(AccumulateGrad, "__new__", new)
    x = leaf()
    found = []
    threads = [threading.Thread(target=lambda: found.append(x.leaf.edge()[0])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert len(found) == 2 and found[0] is found[1]
