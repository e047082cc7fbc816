"""Loops whose calls wait for a whole training step, since nobody looks at a value between the steps."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import xtensor
from xtensor.plans.plans import executor
from xtensor.xla import segments, sizes
from xtensor.xla.pending import Pending, workers
from xtensor.xla.segments import calls, running, steps, structures
from xtensor.xla.sizes.spans import Answers
from xtensor.xla.x64 import jit


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[steps.Patience]:
    """A patience that has met nothing, in a process that may compile what it wants."""
    state = structures.state
    made = steps.Patience(calls.be_patient)
    monkeypatch.setattr(calls, "patience", made)
    monkeypatch.setattr(segments, "patience", made)
    monkeypatch.setattr(running.budget, "spent", -1e9)
    monkeypatch.setattr(executor, "enabled", True)
    # Compiled at once, whatever the process's threads are busy with.
    monkeypatch.setattr(executor, "background", False)
    monkeypatch.setattr(workers, "submit", lambda work: work.begin())
    before = state.on, state.background, state.hot
    segments.enable(True)
    state.background, state.hot, state.reads = True, 4, 0
    state.tree, state.other, state.idle = structures.Tree(), structures.Tree(), 0
    # What other tests made of these operators' sizes would answer calls for a while.
    with sizes.paused():
        yield made
    if state.patient:
        calls.be_patient(False)
    state.background, state.hot = before[1:]
    segments.enable(before[0])


def net() -> Any:
    xtensor.manual_seed(0)
    return xtensor.nn.Sequential(
        xtensor.nn.Linear(64, 128), xtensor.nn.Tanh(), xtensor.nn.Linear(128, 64), xtensor.nn.Linear(64, 1)
    )


def trained(model: Any, make: Any, after: Callable[[int, Any], object]) -> list[Any]:
    """The parameters and the loss after some steps. after: what is done with each one's loss."""
    optimizer = make(model.parameters(), lr=0.01)
    x = xtensor.linspace(-1, 1, 256 * 64).view(256, 64)
    loss: Any = None
    for i in range(60):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        xtensor.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        after(i, loss)
    return [*model.parameters(), loss]


def values(tensors: list[Any]) -> list[np.ndarray[Any, Any]]:
    return [t.detach().numpy().copy() for t in tensors]


@pytest.mark.parametrize("make", [xtensor.optim.SGD, xtensor.optim.Adam])
def test_steps_that_nobody_looks_at_run_as_one_program_each(patience: steps.Patience, make: Any) -> None:
    patient: list[bool] = []

    def after(i: int, loss: Any) -> None:
        patient.append(structures.state.patient)

    before = segments.stats()
    found = trained(net(), make, after)
    later = segments.stats()
    assert not any(patient[: steps.QUIET - 1]) and all(patient[-30:])
    assert later["whole"] - before["whole"] >= 28
    assert later["calls"] - before["calls"] >= 28 * 6
    programs = [node.called.program for node in structures.state.tree.root.next.values()]
    assert max(k.whole for k in segments.known(programs)) >= 28
    calls.be_patient(False)
    assert segments.stats()["structures"] == later["structures"]
    assert (
        max(k.whole for k in segments.known(programs)) >= 28
    )  # what is told does not depend on how calls wait now
    with segments.paused():
        apart = trained(net(), make, lambda i, loss: None)
    assert all(np.array_equal(a, b) for a, b in zip(values(found), values(apart), strict=True))


def test_where_a_loss_is_read_each_step_the_device_begins_early(patience: steps.Patience) -> None:
    patient: list[bool] = []
    trained(net(), xtensor.optim.SGD, lambda i, loss: patient.append(structures.state.patient) or loss.item())
    assert not any(patient)


def test_a_loss_that_is_read_now_and_then_changes_nothing(patience: steps.Patience) -> None:
    patient: list[bool] = []

    def after(i: int, loss: Any) -> None:
        patient.append(structures.state.patient)
        if i == 30:
            float(loss.detach())

    trained(net(), xtensor.optim.SGD, after)
    assert all(patient[-30:])


def test_who_looks_at_values_for_long_is_no_longer_patient(patience: steps.Patience) -> None:
    model = net()
    trained(model, xtensor.optim.SGD, lambda i, loss: None)
    assert structures.state.patient
    x = xtensor.ones(256, 64)
    with xtensor.no_grad():
        y = model(x)
        raw = y._xt_storage.raw
        assert type(raw) is Pending and raw.call is not None
        for _ in range(steps.QUIET + 2):
            model(x).sum().item()
    assert not structures.state.patient
    assert y.shape == (256, 1)


def test_steps_that_never_come_again_end_it(patience: steps.Patience) -> None:
    model = net()
    optimizer = xtensor.optim.SGD(model.parameters(), lr=0.01)
    whole = segments.stats()["whole"]
    patience.quiet = steps.QUIET
    for _ in range(3 * steps.UNSERVED):
        structures.state.tree = structures.Tree()
        optimizer.zero_grad()
        model(xtensor.ones(256, 64)).square().mean().backward()
        optimizer.step()
        if patience.needed > steps.QUIET:
            break
    assert patience.needed > steps.QUIET
    assert segments.stats()["whole"] == whole


def test_calls_that_something_else_answers_wait_when_it_no_longer_does(patience: steps.Patience) -> None:
    class First(Answers):
        left = 9

        def answer(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
            self.left -= 1
            return (jax.numpy.negative(args[0]), False) if self.left >= 0 else (None, False)

    def negated(x: Any) -> Any:
        return -x

    negated.sized = First()  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    negate = segments.waiter(jit(negated), 1, segments.SINGLE)
    x = jax.numpy.arange(1031.0)
    assert type(negate(x)) is not Pending
    pended: list[bool] = []
    for on in (False, True):
        calls.be_patient(on)
        for _ in range(6):
            found = negate(x)
            pended.append(type(found) is Pending)
            assert np.array_equal(np.asarray(found), -np.arange(1031.0))
    assert not any(pended[:8]) and pended[-1]


def test_a_step_takes_over_the_buffers_that_nobody_else_sees(
    patience: steps.Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none that somebody does: who holds an old value goes on to see it."""
    model = net()
    optimizer = xtensor.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = xtensor.linspace(-1, 1, 256 * 64).view(256, 64)
    ran: list[bool] = []
    monkeypatch.setattr(running, "watchers", [lambda names, whole, why: ran.append(whole)])

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    def held() -> Any:
        """The array of a weight, once it is there."""
        segments.finish()
        return model[0].weight._xt_storage.array

    def taken() -> set[int]:
        """Of programs for steps, how many buffers they take over."""
        nodes, found = [structures.state.tree.root], set()
        while nodes:
            at = nodes.pop()
            nodes += {id(n): n for n in at.next.values()}.values()
            if at.structure is not None:
                found |= {len(made.taken) for made in at.structure.programs.values()}
        return found

    for _ in range(40):
        step()
    assert taken() == {4}  # the large weights and their momenta
    before = weakref.ref(held())
    step()
    step()
    segments.finish()
    assert before() is None and ran[-1]
    del ran[:]
    old = held()
    kept = np.array(old)
    arrays = []
    for _ in range(running.REFUSED):
        arrays.append(held())
        step()
        segments.finish()
    assert ran == [False] * running.REFUSED and taken() == set()
    assert not any(array.is_deleted() for array in arrays)
    assert len({np.array(array).tobytes() for array in arrays}) == running.REFUSED
    np.testing.assert_array_equal(np.array(old), kept)
    for _ in range(8):
        arrays.append(held())
        step()
        segments.finish()
    assert ran[-1] and taken() == {0}  # it was in vain, so nothing is taken any more
