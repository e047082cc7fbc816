"""First calls whose programs are compiled beside the program: what is known at once, who waits, and that nothing shows."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import xtensor
from xtensor import nn
from xtensor.storage import LazyStorage, Storage
from xtensor.xla import pending, sizes, store
from xtensor.xla.pending import Work, workers

SIZES = iter(range(2, 1_000))


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers that do nothing: who needs a value compiles what it takes."""
    gc.collect()  # a level of a transform that failed in another test, while one is alive nothing pends
    monkeypatch.setattr(workers, "submit", lambda work: None)
    monkeypatch.setattr(workers, "count", 1)
    # A size like those of other tests would be answered by a program for several.
    before = sizes.enabled()
    sizes.enable(False)
    yield
    sizes.enable(before)


def new_size() -> int:
    """A size that no test has had, so that its programs are new."""
    return 1031 + 7 * next(SIZES)


def pends(tensor: Any) -> bool:
    """Whether a tensor's values are still to come."""
    storage = tensor._xt_storage
    return type(storage) is LazyStorage and storage.raw.call is not None


def test_what_is_known_of_a_pending_result(idle: None) -> None:
    n = new_size()
    x = xtensor.arange(n, dtype=xtensor.float32)
    y = x.sinh()
    assert pends(y)
    assert (y.shape, y.dtype, y.stride(), y.device) == ((n,), xtensor.float32, (1,), x.device)
    assert y.is_contiguous() and not y._is_view() and y._version == 0 and y.numel() == n
    assert pends(y)
    assert y[0].item() == 0
    assert type(y._xt_storage) is Storage and y._xt_view is None


def test_a_chain_runs_when_its_end_is_needed(idle: None) -> None:
    n = new_size()
    x = xtensor.linspace(-1, 1, n)
    y = x.cosh()
    z = (y * y - x.sinh() ** 2).view(1, n).expand(2, n).sum(1)
    assert pends(y) and pends(z)
    assert xtensor.allclose(z, xtensor.full((2,), float(n)))
    assert not pends(y)


def test_errors_are_raised_by_their_call(idle: None) -> None:
    n = new_size()
    x = xtensor.ones(n).cosh()
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        _ = x + xtensor.ones(n + 1)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.sum(2)
    assert pends(x)


def test_gradients(idle: None) -> None:
    n = new_size()
    x = xtensor.linspace(-1, 1, n).requires_grad_()
    y = (x.sinh() * x).sum()
    assert pends(y) and y.requires_grad and y.grad_fn is not None and y.grad_fn.name() == "SumBackward0"
    y.backward()
    assert x.grad is not None
    with xtensor.no_grad():
        assert xtensor.allclose(x.grad, x.cosh() * x + x.sinh(), atol=1e-6)


def test_writes_in_place(idle: None) -> None:
    n = new_size()
    x = xtensor.linspace(-1, 1, n)
    y = x.sinh()
    alias = y.view(n, 1)
    y.relu_()
    assert pends(y) and y._version == 1 and alias._version == 1
    y[3] = 7.0
    assert y[3].item() == 7.0 and alias[3, 0].item() == 7.0 and y[0].item() == 0.0


def test_a_saved_value_that_was_written_is_refused(idle: None) -> None:
    n = new_size()
    x = xtensor.linspace(0, 1, n).requires_grad_()
    y = x.exp()
    z = y.sin().sum()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("inplace", [False, True])
def test_a_network_gives_the_same(idle: None, inplace: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 5 + next(SIZES)

    def trained(count: int) -> list[Any]:
        xtensor.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=inplace), nn.Flatten(), nn.LazyLinear(3)
        )
        images, labels = xtensor.randn(4, 2, 5, n), xtensor.tensor([0, 2, 1, 1])
        with monkeypatch.context() as patch:
            patch.setattr(workers, "submit", lambda work: None)
            patch.setattr(workers, "count", count)
            model(images)
            loss = nn.functional.cross_entropy(model(images), labels)
            assert pends(loss) == (count > 0)
            loss.backward()
        found = [loss, *model.state_dict().values(), *[p.grad for p in model.parameters()]]
        return [t.tolist() for t in found if t is not None]

    assert trained(1) == trained(0)


def test_threads_compile_what_a_step_takes() -> None:
    n = new_size()

    def step() -> list[Any]:
        xtensor.manual_seed(0)
        x, w = xtensor.randn(3, n), xtensor.randn(n, 2, requires_grad=True)
        loss = ((x @ w).tanh().cumsum(0) ** 2).softmax(1).log().mean()
        loss.backward()
        assert w.grad is not None
        return [loss.item(), w.grad.tolist()]

    before = pending.threads(2)
    try:
        made = step()
    finally:
        pending.threads(before)
    assert made == step()


def test_without_threads_nothing_pends() -> None:
    before = pending.threads(0)
    try:
        assert not pends(xtensor.ones(new_size()).sinh())
    finally:
        pending.threads(before)


def test_synchronize_waits(idle: None) -> None:
    y = xtensor.ones(new_size()).sinh()
    assert pends(y)
    xtensor.devices.synchronize("cpu")
    assert not pends(y)


def test_a_failed_compile_is_raised_where_the_value_is_needed(
    idle: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = xtensor.ones(new_size()).sinh()

    def fails(*args: Any) -> Any:
        raise RuntimeError("no code for this")

    monkeypatch.setattr(store.Program, "_compiled", fails)
    with pytest.raises(RuntimeError, match="no code for this"):
        y.sum().item()
    del y


def test_a_known_program_pends_for_its_operand_only(idle: None) -> None:
    n = new_size()
    known = xtensor.ones(n).floor()
    known = known.floor()
    assert known[0].item() == 1.0
    y = xtensor.full((n,), 0.5).sinh()
    z = y.floor()
    assert pends(y) and pends(z)
    assert z[0].item() == 0.0


def test_work_is_done_once_and_again_after_an_interrupt() -> None:
    done: list[int] = []

    def interrupted() -> int:
        done.append(1)
        if len(done) == 1:
            raise KeyboardInterrupt
        return 3

    work = Work(interrupted)
    with pytest.raises(KeyboardInterrupt):
        work.result()
    assert not work.done and work.result() == 3 and work.result() == 3 and len(done) == 2


def test_a_dropped_result_computes_nothing(idle: None) -> None:
    gc.collect()
    before = len(pending.waiting)
    y = xtensor.ones(new_size()).sinh()
    assert len(pending.waiting) == before + 1 and pends(y)
    del y
    assert len(pending.waiting) == before


def test_a_long_chain_needs_no_deep_stack(idle: None) -> None:
    x = xtensor.zeros(3 * new_size())
    for _ in range(3 * sys.getrecursionlimit() // 10):
        x = x.cosh() - 1
    assert pends(x)
    assert x.sum().item() == 0.0


def test_a_program_that_ends_early_ends_well() -> None:
    code = "import xtensor as x\nfor n in range(3, 9): x.ones(n, n).sinh().softmax(1)\nprint('end')"
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "XTENSOR_COMPILE_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert found.stdout == "end\n" and found.stderr == ""
