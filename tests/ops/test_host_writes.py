"""Writes to small tensors that NumPy makes on the host: PyTorch's values, versions and errors, and no program."""

import copy
import math
import random
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor.host import writes
from xtensor.storage import HostValues

torch: Any = pytest.importorskip("torch")

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool", "float16", "bfloat16")
NUMBERS = [0, 1, 7, 250, -3, 2.5, -0.0, 1e-3, math.inf, math.nan, 16777217, 0.1, True, False]


def on_host(tensor: Any) -> bool:
    raw = tensor._xt_storage.raw
    return type(raw) is HostValues and raw.own is not None


def views(rng: random.Random, x: Any) -> Any:
    """A view of a tensor, as an expression of both libraries."""
    for _ in range(rng.randrange(3)):
        if not x.dim():
            return x
        kind = rng.randrange(5)
        if kind == 0:
            x = x[rng.randrange(x.shape[0])]
        elif kind == 1:
            x = x[rng.randrange(x.shape[0]) :]
        elif kind == 2:
            x = x[:: rng.choice((2, 3))]
        elif kind == 3 and x.dim() > 1:
            x = x.transpose(0, 1)
        else:
            x = x[..., 0]
    return x


def stepped(rng: random.Random, lib: Any, xs: list[Any], kept: list[Any]) -> Any:
    """One statement on tensors of a library; what it shows."""
    x = rng.choice(xs)
    view = views(rng, x)
    number = rng.choice(NUMBERS)
    kind = rng.randrange(10)
    if kind == 0:
        view[...] = number
    elif kind == 1 and x.dim() == 2:
        x[rng.randrange(x.shape[0]), rng.randrange(x.shape[1])] = number
    elif kind == 2:
        view += number
    elif kind == 3 and x.dim() == 2:
        x[rng.randrange(x.shape[0]), rng.randrange(x.shape[1])] += number
    elif kind == 4:
        other = rng.choice(xs)
        view.copy_(
            views(rng, other).reshape(-1)[:1].expand(view.shape).clone() if view.dim() else other.max()
        )
    elif kind == 5 and x.dim() == 2:
        source = rng.choice(xs)[0, : x.shape[1]]
        # What a copy between elements that share memory gives is nobody's promise.
        apart = (x is xs[3]) is not (source.shape[0] == 7)
        x[rng.randrange(x.shape[0])] = source if apart else source.clone()
    elif kind == 6:
        kept.append(view.clone())
        return view.sum() if view.dtype.is_floating_point else view.clone()
    elif kind == 7 and x.dim() == 2:
        x[rng.randrange(x.shape[0]), 0] = x[rng.randrange(x.shape[0]), -1]
    elif kind == 8:
        kept.append(copy.deepcopy(x) if rng.randrange(2) else x.detach().clone())
    else:
        kept.append(view * 2 if view.dtype is not lib.bool else ~view)
    return view


def shown(value: Any) -> Any:
    return np.array(value.tolist(), np.float64)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_give_what_pytorch_gives(seed: int):
    """On pools of tensors that share storages; errors by their classes and words."""
    print("seed", seed)
    dtype = DTYPES[seed % len(DTYPES)]
    told: list[list[Any]] = []
    for lib in (xtensor, torch):
        rng = random.Random(seed)
        made = lib.arange(24).reshape(4, 6).to(getattr(lib, dtype))
        xs = [made, made[1:, ::2], made.transpose(0, 1), (lib.arange(35) % 5).reshape(5, 7).to(made.dtype)]
        kept: list[Any] = []
        found: list[Any] = []
        for _ in range(150):
            try:
                value = stepped(rng, lib, xs, kept)
                found.append(shown(value))
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                found.append((type(error), str(error).replace("xtensor", "torch")))
            found.append([x._version for x in xs])
        found += [shown(x) for x in [*xs, *kept]]
        told.append(found)
    for at, (ours, theirs) in enumerate(zip(*told, strict=True)):
        if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
            np.testing.assert_allclose(
                ours, theirs, rtol=1e-2 if dtype.endswith("float16") else 1e-6, err_msg=str(at)
            )
        else:
            assert ours == theirs, at


def test_a_table_is_filled_without_a_program():
    counts = xtensor.zeros((27, 27), dtype=xtensor.int32)
    rows = xtensor.arange(12.0).reshape(4, 3)
    best = xtensor.zeros(4)
    counts[0, 0].item()  # until then it may be pending
    best[0].item()
    for i in range(4):
        counts[i, 3] += 1
        counts[i, 4] = 7
        counts[i, 5] -= 2
        best[i] = rows[i, 2]
        best[i] = best[i] + 1
    counts[1, 3] += 1
    assert on_host(counts) and on_host(best)
    assert counts.sum().item() == 25 and best.tolist() == [3, 6, 9, 12]
    assert not on_host(counts)  # whose array there is now


def test_who_reads_what_was_written_each_time_stays_with_programs():
    x = xtensor.zeros(1031)
    x[0].item()
    came = []
    for i in range(60):
        x[i] = 1.0
        came.append(on_host(x))
        assert x.sum().item() == i + 1
    assert [i for i, on in enumerate(came) if on] == [0, 6, 17, 38]  # half as often each time
    for i in range(60):
        x[i] = 2.0
    assert on_host(x)
    assert x.sum().item() == 120
    x[0] = 1.0
    assert on_host(x)


def test_what_was_taken_of_a_tensor_stays():
    x = xtensor.zeros(1031)
    x[3].item()
    x[3] = 1.0
    assert on_host(x)
    listed, array = x.clone(), np.array(x)
    x[3] = 2.0
    y = x * 1
    x[3] = 3.0
    shared = x.numpy()
    x[3] = 4.0
    assert (listed[3].item(), array[3], y[3].item(), shared[3], x[3].item()) == (1, 1, 2, 4, 4)


def test_values_saved_for_backward_are_those_of_then():
    x, w = xtensor.ones(5), xtensor.ones(5, requires_grad=True)
    x[0] = 2.0
    y = (x * w).sum()
    x[0] = 3.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    z = (x * w).sum()
    z.backward()
    assert w.grad.tolist() == [3, 1, 1, 1, 1]


def test_a_write_that_a_gradient_follows_is_recorded():
    x, w = xtensor.zeros(3), xtensor.tensor(2.0, requires_grad=True)
    x[0] = 1.0
    x[1] = w * 3
    x[2] = 5.0
    assert x.tolist() == [1, 6, 5]
    x.sum().backward()
    assert w.grad.item() == 3


def test_a_leaf_refuses_writes_on_the_host_too():
    w = xtensor.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        w[0] = 2.0
    with xtensor.no_grad():
        w[0] = 2.0
    assert on_host(w) and w._version == 1 and w.tolist() == [2, 1, 1]


def test_large_tensors_are_taken_after_as_many_writes_as_pay():
    x = xtensor.zeros(writes.SMALL)  # four times as many bytes
    x[0].item()
    held = []
    for i in range(5):
        x[i] = 1.0
        held.append(on_host(x))
    assert held == [False, False, False, True, True]
    assert x.sum().item() == 5


def test_parts_of_the_host_may_not_overlap_in_the_wrong_way():
    x = xtensor.arange(6.0)
    x[0] = 0.0
    x[:3] = x[3:]
    assert x.tolist() == [3, 4, 5, 3, 4, 5]
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[:3].copy_(x[1:4])
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x[:1].expand(3)[...] = 1.0


def test_a_copy_has_what_was_written_until_then():
    x = xtensor.zeros(4)
    x[1] = 3.0
    there = x.to("cpu", copy=True)
    x[1] = 4.0
    assert (there[1].item(), x[1].item()) == (3, 4)
