"""Who holds memory, memory over time, and that what is dropped is given back at once: by the bytes of live arrays."""

from __future__ import annotations

import gc
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import xtensor
from xtensor import nn
from xtensor.memory import Held, Snapshot
from xtensor.plans.plans import executor
from xtensor.storage import HostValues
from xtensor.xla import segments, sizes

SIZE = 97  # of matrices that nobody else has
BYTES = SIZE * SIZE * 4


@pytest.fixture(autouse=True)
def nothing_else() -> Iterator[None]:
    """What earlier tests left in cycles is not freed in between, nor is what these make; no array is longer since their sizes varied."""
    gc.collect()
    gc.disable()
    with sizes.paused():
        yield
    gc.enable()


def matrix() -> xtensor.Tensor:
    return xtensor.rand(SIZE, SIZE)


def live() -> int:
    """Bytes of all arrays of these tests' sizes, the host's among them, once the calls that wait are made."""
    segments.finish()
    host = [one.memory for one in gc.get_objects() if type(one) is HostValues]
    return sum(a.nbytes for a in [*jax.live_arrays(), *host] if SIZE in a.shape)


def of_size(found: Snapshot) -> list[Held]:
    return [held for held in found.arrays if SIZE in held.shape]


def kinds(found: Snapshot) -> dict[str, int]:
    counts: dict[str, int] = {}
    for held in of_size(found):
        counts[held.kind] = counts.get(held.kind, 0) + held.nbytes
    return counts


def test_who_holds_what_of_a_training_step() -> None:
    model = nn.Sequential(nn.Linear(SIZE, SIZE, bias=False), nn.Tanh())
    optimizer = xtensor.optim.Adam(model.parameters())
    x = matrix()
    loss = model(x).sum()
    found = kinds(xtensor.memory_snapshot())
    # The weight; x, which is saved too; tanh's result, which nothing but its node holds.
    assert found == {"parameters": BYTES, "tensors": BYTES, "saved for backward": BYTES}
    loss.backward()
    assert kinds(xtensor.memory_snapshot()) == {"parameters": BYTES, "gradients": BYTES, "tensors": BYTES}
    optimizer.step()
    after = xtensor.memory_snapshot()
    assert kinds(after)["optimizer states"] == 2 * BYTES
    said = {word for held in of_size(after) for word in held.holders}
    assert {
        "Sequential.0.weight",
        "gradient of Sequential.0.weight",
        "Adam's exp_avg of Sequential.0.weight",
    } <= said
    assert of_size(after)[0].dtype is xtensor.float32


def test_what_is_saved_names_its_node() -> None:
    x = matrix().requires_grad_()
    y = x.exp()
    [held] = [h for h in of_size(xtensor.memory_snapshot()) if "ExpBackward0" in h.holders]
    assert held.kind == "tensors"
    z = y.sum()
    del y
    [held] = [h for h in of_size(xtensor.memory_snapshot()) if "ExpBackward0" in h.holders]
    assert (held.kind, z.item() > 0) == ("saved for backward", True)


def test_a_custom_functions_tensors_are_saved() -> None:
    class Square(xtensor.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: xtensor.Tensor) -> xtensor.Tensor:
            inner = x + 1
            ctx.save_for_backward(inner)
            return inner * inner

        @staticmethod
        def backward(ctx: Any, *grad_outputs: Any) -> xtensor.Tensor:
            (inner,) = ctx.saved_tensors
            return 2 * inner * grad_outputs[0]

    y = Square.apply(matrix().requires_grad_())
    assert [h for h in of_size(xtensor.memory_snapshot()) if "SquareBackward" in h.holders]
    assert y.shape == (SIZE, SIZE)


def test_readings_of_views_and_what_lies_elsewhere() -> None:
    x = matrix()
    view = x.t()
    view.softmax(0)
    array = jnp.zeros((SIZE, 2))
    found = kinds(xtensor.memory_snapshot())
    assert found == {"tensors": BYTES, "readings of views": BYTES, "elsewhere": array.nbytes}
    # The reading goes with the view.
    del view
    assert kinds(xtensor.memory_snapshot()) == {"tensors": BYTES, "elsewhere": array.nbytes}


def test_a_summary_is_a_table_and_data_is_json() -> None:
    x = matrix()
    text = xtensor.memory_summary(largest=3)
    assert text.startswith("Memory of cpu: ")
    rows = {line[:24].strip(): line[24:].split() for line in text.splitlines()[2:12]}
    assert int(rows["tensors"][0]) >= 1
    assert int(rows["programs (their code)"][0]) >= 1
    assert len(text.split("The largest:\n")[1].splitlines()) == 3
    again = json.loads(json.dumps(xtensor.memory_snapshot().as_dicts()))
    mine = {
        "nbytes": BYTES,
        "shape": [SIZE, SIZE],
        "dtype": "xtensor.float32",
        "kind": "tensors",
        "holders": [],
    }
    assert mine in again
    assert x.shape == (SIZE, SIZE)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(RuntimeError):
        xtensor.memory_snapshot("tpu:7")
    with pytest.raises(RuntimeError):
        xtensor.memory_summary("tpu:7")
    with pytest.raises(RuntimeError):
        xtensor.record_memory("tpu:7")


def test_memory_over_time(tmp_path: pathlib.Path) -> None:
    x = matrix()
    with xtensor.record_memory() as record:
        a = x * 2
        b = a.tanh()
        del a
        c = b.sum()
    sizes = [sample.nbytes - record.samples[0].nbytes for sample in record.samples]
    assert [sample.name for sample in record.samples] == ["start", "mul", "tanh", "sum"]
    assert sizes[:3] == [0, BYTES, 2 * BYTES]
    assert sizes[3] < 2 * BYTES
    assert record.peak.name == "tanh"
    assert json.loads(json.dumps(record.as_dicts()))[2]["nbytes"] == record.peak.nbytes
    record.plot(tmp_path / "memory.png")
    assert (tmp_path / "memory.png").stat().st_size > 5000
    assert c.item()


def test_memory_over_time_by_kind(tmp_path: pathlib.Path) -> None:
    x = matrix().requires_grad_()
    with xtensor.record_memory(kinds=True) as record:
        x.exp().sum().backward()
    named = [(s.name, s.kinds["saved for backward"] >= BYTES) for s in record.samples if s.kinds]
    assert named[:3] == [("start", False), ("exp", False), ("sum", False)]
    assert ("SumBackward0", True) in named
    assert record.samples[-1].kinds is not None
    assert record.samples[-1].kinds["gradients"] >= BYTES
    assert len(record.plot().axes) == 1


def test_a_record_is_not_made_within_a_profile() -> None:
    with xtensor.autograd.profiler.profile(), pytest.raises(RuntimeError, match="already enabled"):  # noqa: SIM117
        with xtensor.record_memory():
            pass
    with xtensor.record_memory() as record:
        matrix()
    assert len(record.samples) == 2


def test_cuda_has_a_summary_with_and_without_a_device() -> None:
    assert "allocated_bytes.all.current: " in xtensor.cuda.memory_summary()
    assert "held by" not in xtensor.cuda.memory_summary(abbreviated=True)
    if not xtensor.cuda.is_available():
        assert xtensor.cuda.memory_snapshot() == []


# -- given back at once

CHAINS: dict[str, Callable[[xtensor.Tensor], Any]] = {
    "in place": lambda x: x.mul_(2).add_(1).tanh_().clamp_(0, 1),
    "rows": lambda x: [x[i].add_(1) for i in range(4)],
    "out": lambda x: xtensor.add(x, 1, out=x),
    "set": lambda x: x.__setitem__((slice(None), 1), 2.5),
    "copy": lambda x: x.copy_(x * 2),
    "augmented": lambda x: x.__iadd__(x),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_in_place_holds_one_array(name: str) -> None:
    x = matrix()
    for _ in range(2):
        before = live()
        CHAINS[name](x)
        assert live() == before == BYTES


def test_an_operator_in_place_holds_no_second_array_meanwhile() -> None:
    x = matrix()
    x.mul_(2).add_(1)
    with xtensor.record_memory() as record:
        x.mul_(2).add_(1)
        x[2] = 1.0
    assert max(s.nbytes for s in record.samples) - record.samples[0].nbytes < BYTES


def test_del_gives_back() -> None:
    x = matrix()
    y = x + 1
    assert live() == 2 * BYTES
    del y
    assert live() == BYTES
    view = x.t()[1:]
    view.softmax(0)
    del x
    assert live() > BYTES  # the view has the base, and what it read
    del view
    assert live() == 0


def test_a_graph_that_is_dropped_gives_back_what_it_saved() -> None:
    x = matrix().requires_grad_()
    loss = x.exp().tanh().sigmoid().sum()
    assert live() == 4 * BYTES
    del loss
    assert live() == BYTES


def test_backward_gives_back_what_was_saved() -> None:
    x = matrix().requires_grad_()
    for _ in range(5):  # by the interpreter, then by the plan
        x.grad = None
        loss = x.exp().tanh().sigmoid().sum()
        loss.backward()
        executor.wait()
        assert live() == 2 * BYTES  # x and its gradient


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_an_optimizers_steps_hold_no_more_each_time(kind: str) -> None:
    x = nn.Parameter(matrix())
    optimizer = getattr(xtensor.optim, kind)([x], lr=0.1)
    held = []
    for _ in range(4):
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()
        held.append(live())
    optimizer.zero_grad()
    states = {"SGD": 0, "Adam": 2, "AdamW": 2, "RMSprop": 1}[kind]
    assert held == [(2 + states) * BYTES] * 4
    assert live() == (1 + states) * BYTES


def test_what_the_host_holds_of_a_tensor_is_told() -> None:
    x = matrix()
    x[0].sum().item()
    x[0] = 2.0
    assert type(x._xt_storage.raw) is HostValues
    assert [(held.kind, held.nbytes) for held in of_size(xtensor.memory_snapshot())] == [("tensors", BYTES)]
