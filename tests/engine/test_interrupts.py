"""Interrupts: wherever one falls, tensors have the values of before or after, and modes are those of before."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import SingleDeviceSharding

import xtensor
from tests.fuzz.interrupts import LOOPS, at_random, lost, stopped, watched
from xtensor.autograd import forward_ad
from xtensor.engine import modes
from xtensor.operators.levels.crossing import running
from xtensor.storage import births
from xtensor.transforms.tracking import Tracked
from xtensor.transforms.unwrapping import Marked
from xtensor.utils._python_dispatch import BaseTorchDispatchMode
from xtensor.xla import pending
from xtensor.xla.sizes.spans import Late

# An interrupt that falls into a finalizer is dropped there, and told so; it is none of ours.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def instructions() -> Iterator[None]:
    """`stopped` sees every instruction of what runs for the second time."""
    before = sys.gettrace()
    sys.settrace(watched)
    yield
    sys.settrace(before)


@pytest.mark.parametrize("name", LOOPS)
def test_nothing_is_lost_wherever_signals_are_handled(name: str) -> None:
    loop = LOOPS[name]()
    for _ in range(8):
        loop.body()
    stopped(loop.body, -1)
    _, total = stopped(loop.body, -1)
    tried = 0
    for at in range(1, total + 2, max(1, total // 250)):
        tried += stopped(loop.body, at)[0]
        assert lost(loop) == [], at
        assert modes.state.mode == 0, at
        loop.body()  # the exception has ended the tracing: see `watched`
    assert tried >= min(total, 100)


def test_a_value_that_comes_late_leaves_no_types_on() -> None:
    class Counted(Late):
        def values(self) -> Any:
            return np.arange(3)

        def drop(self) -> None:
            done.append(True)

    aval = jax.core.ShapedArray((3,), np.int64)
    before, done, tried, at = jax.enable_x64.get_local(), [], 0, 1
    for turn in range(400):  # what compiles does so in the first two
        late = Counted(SingleDeviceSharding(jax.devices("cpu")[0]), False)
        made = late.pending(aval)
        came, _ = stopped(late.finish, -1 if turn < 2 else at)
        assert jax.enable_x64.get_local() is before, at
        late.finish()
        assert np.asarray(made._value).tolist() == [0, 1, 2] and made._value.dtype == np.int64
        if turn > 1:
            tried, at = tried + came, at + 1
            if not came:
                break
    assert tried >= 10 and done


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_first_step_is_made_or_not(name: str) -> None:
    """Parameters, their states and the counts of steps go together."""
    for _ in range(3):  # what compiles does so in the first
        _, total = stopped(LOOPS[name]().body, -1)

    def moved_at(at: int) -> set[bool]:
        loop = LOOPS[name]()
        layer, optimizer = loop.things
        before = [p.tolist() for p in layer.parameters()]
        stopped(loop.body, at)
        moved = {p.tolist() != b for p, b in zip(layer.parameters(), before, strict=True)}
        assert len(moved) == 1, at
        states = [optimizer.state.get(p, {}) for p in layer.parameters()]
        assert {bool(s) for s in states} == moved, at
        assert {s["step"].item() == 1 for s in states if "step" in s} <= moved, at
        return moved

    points = [*range(1, total - 120, 40), *range(max(1, total - 120), total + 2)]
    # At last without an interrupt: where calls wait by then which did not when points were counted, those are all too early.
    outcomes = [moved_at(at) for at in [*points, -1]]
    assert {False} in outcomes and outcomes[-1] == {True}


@pytest.mark.parametrize("name", LOOPS)
def test_at_random_moments(name: str) -> None:
    sys.settrace(None)
    assert at_random(name, 40, 1) == (40, [])


BLOCKS: dict[str, Callable[[], Any]] = {
    "no_grad": xtensor.no_grad,
    "enable_grad": xtensor.enable_grad,
    "set_grad_enabled": lambda: xtensor.set_grad_enabled(False),
    "inference_mode": xtensor.inference_mode,
    "detect_anomaly": lambda: xtensor.autograd.detect_anomaly(check_nan=False),
    "autocast": lambda: xtensor.autocast("cpu"),
    "saved_tensors_hooks": lambda: xtensor.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "device": lambda: xtensor.device("meta"),
    "arguments not asked": xtensor.overrides.DisableTorchFunctionSubclass,
    "mode asked": xtensor.overrides.BaseTorchFunctionMode,
    "mode below autograd": BaseTorchDispatchMode,
    "nobody asked": xtensor.overrides.DisableTorchFunction,
    "dual_level": forward_ad.dual_level,
    "a batch": lambda: running("vmap", 3),
    "tangents": lambda: running("jvp"),
    "a gradient": lambda: Tracked("grad"),
    "functionalize": lambda: Marked("functionalize"),
}


def held() -> Any:
    state = modes.state
    return (
        state.mode,
        state.check_nan,
        len(state.saved_hooks),
        state.autocast_enabled,
        state.autocast_nesting,
        state.autocast_caching,
        state.overrides_off,
        state.function_modes,
        state.dispatch_modes,
        state.transforms,
        births.open,
        forward_ad._current_level,
        xtensor.get_default_device(),
    )


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("form", ["block", "decorator"])
@pytest.mark.parametrize("name", BLOCKS)
def test_modes_are_put_back(name: str, form: str) -> None:
    x = xtensor.ones(3)

    def body() -> None:
        with BLOCKS[name]():
            x.add(1)

    if form == "decorator":
        if name not in ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "autocast"):
            pytest.skip("a block only, as in PyTorch")

        def body() -> None:
            BLOCKS[name]()(lambda: x.add(1))()

    body()
    before = held()
    _, total = stopped(body, -1)
    for at in range(1, total + 2, 1 + total // 200):
        stopped(body, at)
        # `set_grad_enabled` switches when it is made, as PyTorch's does.
        if name == "set_grad_enabled" and held() != before:
            xtensor.set_grad_enabled(True)
        assert held() == before, at


def test_no_lock_is_taken_by_a_step_that_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C within `Condition.__enter__`, which is Python, left the lock of the threads that compile taken: all hung."""

    def entered(self: Any) -> None:
        raise AssertionError("a condition is entered")

    workers = pending.Workers(1)
    made: list[int] = []
    workers.submit(
        pending.Work(lambda: made.append(0))
    )  # which starts the thread, and that waits for an event
    workers.wait()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Condition, "__enter__", entered)
        workers.submit(pending.Work(lambda: made.append(1)))
        workers.wait()
    workers.end()
    assert made == [0, 1]


@pytest.mark.parametrize("call", ["begin", "result"])
def test_work_that_was_interrupted_is_done_by_who_needs_it(call: str) -> None:
    """One that was cut off after its result was there, and before that was told, had others wait for ever."""
    stopped(lambda: getattr(pending.Work(lambda: 3), call)(), -1)
    _, total = stopped(lambda: getattr(pending.Work(lambda: 3), call)(), -1)
    for at in range(1, total + 1):
        work = pending.Work(lambda: 3)
        stopped(getattr(work, call), at)
        found: list[int] = []
        thread = threading.Thread(
            target=lambda work=work, found=found: found.append(work.result()), daemon=True
        )
        thread.start()
        thread.join(60)
        assert found == [3], at
