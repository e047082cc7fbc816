"""Requests that no memory can hold raise; none ends the process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import xtensor as x
from xtensor.nn import functional as F
from xtensor.xla import memory

MANY = 10**11


def wide(*sizes: int, dtype: Any = None) -> x.Tensor:
    """A tensor of these sizes that holds one element."""
    return x.ones(1, dtype=dtype).expand(*sizes)


REQUESTS: dict[str, Callable[[], Any]] = {
    "ones": lambda: x.ones(25 * 10**9),
    "zeros": lambda: x.zeros(10**6, 10**6),
    "empty": lambda: x.empty(10**12),
    "full": lambda: x.full((MANY,), 3.0),
    "bool": lambda: x.zeros(10**12, dtype=x.bool),
    "zeros_like": lambda: x.zeros_like(wide(10**12)),
    "new_zeros": lambda: x.ones(1).new_zeros(10**12),
    "overflow of zeros": lambda: x.zeros(2**62, 2**3),
    "overflow of ones": lambda: x.ones(2**61),
    "overflow of empty": lambda: x.empty(2**31, 2**31),
    "overflow of a sum": lambda: wide(2**40, 2**40) + 1,
    "overflow of a copy": lambda: wide(2**62).clone(),
    "randn": lambda: x.randn(25 * 10**9),
    "rand": lambda: x.rand(10**6, 10**5),
    "randint": lambda: x.randint(0, 9, (MANY,)),
    "randperm": lambda: x.randperm(MANY),
    "normal": lambda: x.normal(0.0, 1.0, (MANY,)),
    "bernoulli": lambda: x.bernoulli(wide(MANY) / 2),
    "arange": lambda: x.arange(MANY),
    "linspace": lambda: x.linspace(0, 1, MANY),
    "logspace": lambda: x.logspace(0, 1, MANY),
    "eye": lambda: x.eye(10**6),
    "hann_window": lambda: x.hann_window(MANY),
    "tril_indices": lambda: x.tril_indices(10**6, 10**6),
    "broadcast": lambda: x.ones(200000)[:, None] * x.ones(200000),
    "outer": lambda: x.outer(x.ones(300000), x.ones(300000)),
    "matmul": lambda: x.ones(300000, 1) @ x.ones(1, 300000),
    "einsum": lambda: x.einsum("i,j->ij", x.ones(400000), x.ones(400000)),
    "kron": lambda: x.kron(x.ones(400000), x.ones(400000)),
    "cdist": lambda: x.cdist(x.ones(400000, 2), x.ones(400000, 2)),
    "vander": lambda: x.vander(x.ones(400000), 400000),
    "diag": lambda: x.diag(x.ones(400000)),
    "expand": lambda: wide(2**40) + 1,
    "contiguous": lambda: wide(MANY).contiguous(),
    "to": lambda: wide(MANY, dtype=x.int8).to(x.float64),
    "repeat": lambda: x.ones(1000).repeat(10**9),
    "tile": lambda: x.ones(10).tile((MANY,)),
    "cat": lambda: x.cat([wide(MANY)] * 2),
    "stack": lambda: x.stack([wide(MANY)] * 3),
    "flip": lambda: wide(MANY).flip(0),
    "where": lambda: x.where(wide(MANY, dtype=x.bool), 1.0, 2.0),
    "cumsum": lambda: wide(MANY).cumsum(0),
    "sort": lambda: wide(MANY).sort(),
    "unfold": lambda: x.ones(400000).unfold(0, 200000, 1).contiguous(),
    "index_select": lambda: x.ones(10).index_select(0, x.zeros(1, dtype=x.int64).expand(MANY)),
    "cartesian_prod": lambda: x.cartesian_prod(x.arange(400000), x.arange(400000)),
    "pad": lambda: F.pad(x.ones(3), (0, MANY)),
    "interpolate": lambda: F.interpolate(x.ones(1, 1, 10, 10), size=(10**6, 10**6)),
    "one_hot": lambda: F.one_hot(x.arange(1000), 10**9),
    "conv1d": lambda: F.conv1d(x.ones(1, 1, 400000), x.ones(400000, 1, 1)),
    "Embedding": lambda: x.nn.Embedding(10**9, 1000),
    "Linear": lambda: x.nn.Linear(10**6, 10**6),
    "fft": lambda: x.fft.fft(x.ones(3), n=MANY),
    "resize_": lambda: x.ones(3).resize_(MANY),
    "temporaries": lambda: F.multilabel_margin_loss(x.ones(1000, 15000), x.ones(1000, 15000, dtype=x.int64)),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_no_memory_holds(name: str) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"you tried to allocate \d+ bytes|Storage size calculation overflowed with sizes=|overflow",
    ):
        REQUESTS[name]()
    assert (x.ones(3) + 1).tolist() == [2, 2, 2]


def test_free_memory_is_looked_at_by_large_programs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def none_left() -> int:
        asked.append(None)
        return 0

    small, large = x.ones(1031), x.ones(memory.LARGE // 4 + 1)
    assert (large + 1)[0].item() == 2
    monkeypatch.setattr(memory, "available", none_left)
    assert (small + 1)[0].item() == 2
    assert asked == []
    # Its signature has come before: the memory is asked for at every call.
    for _ in range(2):
        with pytest.raises(RuntimeError, match="0 are free"):
            large + 1
    assert len(asked) == 2
    monkeypatch.undo()
    assert (large + 1)[-1].item() == 2


def test_what_a_program_takes_beside_its_results_counts(monkeypatch: pytest.MonkeyPatch, waits: None) -> None:
    """The loss compares all classes with all targets of a row: 1,500 by 1,500 values, ten times."""
    values, targets = x.rand(10, 1500), x.randint(0, 9, (10, 1500))
    expected = F.multilabel_margin_loss(values, targets)
    taken = []
    with monkeypatch.context() as patched:
        patched.setattr(memory, "available", lambda: taken.append(None) or 0)
        for _ in range(2):
            with pytest.raises(RuntimeError, match=r"you tried to allocate \d{8,} bytes, and 0 are free"):
                F.multilabel_margin_loss(values, targets)
        assert F.multilabel_margin_loss(values[:, :9], targets[:, :9]).shape == ()
    assert len(taken) == 2
    assert F.multilabel_margin_loss(values, targets).item() == expected.item()


def test_the_processes_own_limit_counts() -> None:
    """What `ulimit -v` leaves is what there is, however much the machine has."""
    program = """
        import resource, xtensor as x
        (x.ones(1031) + 1).sum().item()
        from xtensor.xla import memory
        limit = memory.available()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
        assert memory.available() <= 1 << 30 < limit
        try:
            x.ones(1 << 29) + 1
        except RuntimeError as error:
            print("refused", (x.ones(3) + 1).tolist())
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120
    )
    assert run.stdout == "refused [2.0, 2.0, 2.0]\n", run.stderr


LARGER = (memory.LARGE // 4 + 1031,)
"""Elements of float32 that are looked at at every call."""


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.__setitem__(7, 2.5),
        lambda t: t.__setitem__(slice(3, 1034), 2.5),
        lambda t: t.add_(1),
        lambda t: t.view(-1)[5:1036].mul_(2),
    ],
    ids=["element", "slice", "whole", "view"],
)
def test_large_tensors_are_written_in_place(write: Callable[[x.Tensor], Any]) -> None:
    t = x.zeros(LARGER) + 1
    write(t)  # compiles, on a copy
    places = set()
    for _ in range(3):
        write(t)
        places.add(t._xt_storage.array.unsafe_buffer_pointer())
    assert len(places) == 1


def test_a_first_write_needs_no_room_for_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    t = x.zeros(LARGER[0] + 1) + 1
    place = t._xt_storage.array.unsafe_buffer_pointer()
    monkeypatch.setattr(memory, "available", lambda: 1 << 20)
    t[7] = 2.5
    assert t[6:9].tolist() == [1, 2.5, 1]
    assert t._xt_storage.array.unsafe_buffer_pointer() == place
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        t + 1


def test_large_parameters_are_updated_in_place() -> None:
    weight = x.nn.Parameter(x.ones(LARGER))
    optimizer = x.optim.SGD([weight], lr=0.5, momentum=0.9)
    weight.grad = x.ones(LARGER)
    places = set()
    for i in range(5):
        optimizer.step()
        if i > 1:
            places.add(weight._xt_storage.array.unsafe_buffer_pointer())
    assert len(places) == 1
    assert weight[1030].item() == pytest.approx(-5.5721, abs=1e-4)
