"""One backward pass over several devices, on toy gradients."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import warnings
import weakref

import pytest

from tests.toy_graph import (
    SOON,
    Fails,
    Linear,
    Var,
    add,
    backward,
    grad,
    leaf,
    linear,
    meet_if_possible,
    scale,
    validating,
)
from tests.toy_graph import toy_rules as toy_rules
from xtensor import engine
from xtensor.engine import modes


class Meets(Linear):
    """Waits until its partner runs too: two of them finish only if they run at the same time."""

    __slots__ = ("barrier", "thread")

    def apply(self, grads):
        self.barrier.wait(SOON)
        self.thread = threading.current_thread()
        return super().apply(grads)


def meeting(device, x, barrier):
    node = Meets((x._gradient_edge(),), ((2.0,),), device)
    node.barrier = barrier
    return Var(0.0, (node, 0))


def test_independent_branches_of_two_devices_run_at_the_same_time():
    barrier = threading.Barrier(2)
    x, y = leaf(), leaf()
    a, b = meeting("cpu:0", x, barrier), meeting("cpu:1", y, barrier)
    backward(add(a, b, device="cpu:0"))
    assert (x.grad, y.grad) == (2.0, 2.0)
    assert a.edge[0].thread is threading.current_thread()
    assert b.edge[0].thread.name == "xtensor backward cpu:1"


def test_the_calling_thread_serves_home():
    run = validating(lambda node, slot, g: g, home="cpu:0").run
    barrier = threading.Barrier(2)
    a, b = meeting("cpu:0", leaf(), barrier), meeting("cpu:1", leaf(), barrier)
    run((add(a, b, device="cpu:1").edge,), (1.0,), None, False, False, True)
    assert a.edge[0].thread is threading.current_thread()


def test_one_device_needs_no_other_thread():
    names = []
    out = scale(leaf(), device="gpu:0")
    out.register_hook(lambda g: names.append(threading.current_thread()))
    backward(scale(out, device="gpu:0"))
    assert names == [threading.current_thread()]


def test_modes_and_callbacks_on_workers():
    seen = []
    x = leaf()
    out = scale(x, device="cpu:1")

    def hook(g):
        engine.queue_callback(lambda: seen.append(threading.current_thread()))
        seen.append(
            (threading.current_thread().name, engine.is_grad_enabled(), modes.state.mode & engine.AUTOCAST)
        )
        assert engine.will_execute(out.edge[0])

    out.register_hook(hook)
    with engine.flag(engine.AUTOCAST), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backward(scale(out, device="cpu:0"), create_graph=True, keep_graph=True)
    backward(scale(out, device="cpu:0"))
    caller, worker = threading.current_thread(), "xtensor backward cpu:1"
    assert seen == [(worker, True, engine.AUTOCAST), caller, (worker, False, 0), caller]


def test_captures_and_inputs_across_devices():
    x, y = leaf(2.0), leaf(5.0)
    a, b = scale(x, 3.0, device="cpu:1"), scale(y, 4.0, device="cpu:2")
    out = add(a, b, device="cpu:0")
    assert grad([out], [x, a], keep_graph=True) == (3.0, 1.0)
    backward(out, inputs=[y])
    assert (x.grad, y.grad) == (None, 4.0)


def test_errors_of_workers_reach_the_caller_with_their_traceback():
    x, y = leaf(), leaf()
    bad = Var(0.0, (Fails((x._gradient_edge(),), ((1.0,),), "cpu:1"), 0))
    out = add(scale(y, device="cpu:0"), bad, device="cpu:0")
    with pytest.raises(KeyError, match="on the worker") as caught:
        backward(out)
    assert caught.traceback[-1].name == "apply"
    assert not engine.is_executing()
    backward(add(scale(y, device="cpu:0"), scale(x, device="cpu:1"), device="cpu:0"))
    assert x.grad == 2.0


def test_workers_keep_nothing_alive():
    class Grad(float):
        def __mul__(self, other):
            return Grad(float(self) * other)

    out = scale(scale(leaf(), device="cpu:1"), device="cpu:0")
    alive = [weakref.ref(out.edge[0])]
    out.edge[0].register_hook(lambda gi, go: alive.append(weakref.ref(gi[0])))
    backward(out, grads=(Grad(1.0),))
    del out
    # The worker may still be on its way back to its queue.
    pause = threading.Event()
    for _ in range(SOON * 100):
        if not any(ref() for ref in alive):
            break
        pause.wait(0.01)
    assert len(alive) == 2 and not any(ref() for ref in alive)


def test_gradients_that_meet_from_several_workers_are_all_summed():
    barrier = threading.Barrier(2)

    class Slow(float):
        def __mul__(self, other):
            return Slow(float(self) * other)

        def __add__(self, other):
            meet_if_possible(barrier)
            return Slow(float(self) + float(other))

    x = leaf()
    shared = scale(x, device="cpu:0")
    branches = [scale(shared, 1.0, device=f"cpu:{i}") for i in (1, 2, 3)]
    backward(linear(branches, (1.0, 1.0, 1.0), device="cpu:0")[0], grads=(Slow(1.0),))
    assert x.grad == 6.0


def test_a_worker_that_waits_for_a_nested_pass_serves_others_and_keeps_its_own_modes():
    x = leaf()
    events = {name: threading.Event() for name in ("outer runs", "other ran")}
    log = []

    class Acts(Linear):
        __slots__ = ("act",)

        def apply(self, grads):
            self.act()
            return super().apply(grads)

    def acting(device, act):
        node = Acts((x._gradient_edge(),), ((1.0,),), device)
        node.act = act
        return Var(0.0, (node, 0))

    def outer():
        events["outer runs"].set()
        nested = acting("cpu:2", lambda: log.append(events["other ran"].wait(SOON)))
        backward(add(nested, scale(x, device="cpu:1"), device="cpu:1"))
        log.append(getattr(modes.state, "note", None))

    def other():
        log.append(getattr(modes.state, "note", None))
        events["other ran"].set()

    def first():
        modes.state.note = "first"
        backward(scale(acting("cpu:1", outer), device="cpu:0"))

    def second():
        events["outer runs"].wait(SOON)
        backward(scale(acting("cpu:1", other), device="cpu:0"))

    threads = [threading.Thread(target=run, daemon=True) for run in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert log == [None, True, "first"]


def test_reentrant_backward_across_devices():
    x = leaf()

    class Nest(Linear):
        __slots__ = ("depth",)

        def apply(self, grads):
            if self.depth:
                backward(tower(self.depth - 1))
            return super().apply(grads)

    def tower(depth):
        """Two branches, on each device one, that both go deeper: each waits for the other's worker."""
        branches = []
        for device in ("cpu:0", "cpu:1"):
            node = Nest((x._gradient_edge(),), ((1.0,),), device)
            node.depth = depth
            branches.append(Var(0.0, (node, 0)))
        return add(*branches, device="cpu:0")

    backward(tower(6))
    assert x.grad == 2.0**8 - 2


def test_backward_across_devices_from_several_threads():
    x = leaf()
    errors = []

    def work():
        try:
            for _ in range(30):
                backward(add(scale(x, device="cpu:1"), scale(x, device="cpu:2"), device="cpu:0"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert not errors and x.grad == 4 * 30 * 4.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_forked_child_starts_its_own_workers():
    x = leaf()

    def step():
        backward(add(scale(x, device="cpu:0"), scale(x, device="cpu:1"), device="cpu:0"))

    step()
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            signal.alarm(SOON)
            step()
            code = 0 if x.grad == 8.0 else 1
        os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
