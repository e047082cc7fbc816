"""Integers of no dimensions that are computed on the host: what a program gives, and no program."""

import copy
import operator
import os
import pickle
import subprocess
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from xtensor.host import numbers
from xtensor.host.elements import element, elements
from xtensor.host.numbers import HostNumber, exactly
from xtensor.operators.operator import REGISTRY
from xtensor.storage import HostValues
from xtensor.xla import segments
from xtensor.xla.compiles import unwatch, watch

TWO: dict[str, Any] = {
    name: getattr(operator, name)
    for name in (
        "add",
        "sub",
        "mul",
        "floordiv",
        "mod",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "and_",
        "or_",
        "xor",
    )
}
ONE: dict[str, Any] = {"neg": operator.neg, "invert": operator.inv, "logical_not": lambda x: x.logical_not()}
NAMED = ("logical_and", "logical_or")
DTYPES = ("int64", "int32", "int16", "int8", "uint8", "bool")
VALUES = [0, 1, 2, 3, 7, 100, 127, 128, 255, -1, -2, -7, -128, 2**31 - 1, 2**62, 2**63 - 1, -(2**63)]
OTHERS = [3, -3, 0, 127, True, False]


def held(tensor: Any) -> bool:
    return type(tensor._xt_storage.raw) is HostNumber


def given(lib: Any, name: str) -> Any:
    with np.errstate(all="ignore"):
        return lib.from_numpy(np.array(VALUES, np.int64).astype(name))


def told(call: Any, *args: Any) -> Any:
    """What a call gives, or the class of its error."""
    try:
        found = call(*args)
    except Exception as error:
        return type(error).__name__
    return found.item(), str(found.dtype).split(".")[1], tuple(found.shape), tuple(found.stride())


@pytest.mark.parametrize("name", DTYPES)
def test_values_are_those_of_programs(torch: Any, name: str) -> None:
    ours, theirs = given(xtensor, name), given(torch, name)
    answered = 0
    for at in range(len(VALUES)):
        x, y = ours[at], theirs[at]
        for called, f in ONE.items():
            assert told(f, x) == told(f, y), (called, VALUES[at])
        for called, f in [*TWO.items(), *((n, lambda a, b, n=n: a.__getattribute__(n)(b)) for n in NAMED)]:
            pairs = [(ours[i], theirs[i]) for i in (at, 0, 4, 10, 16)]
            pairs += [] if called in NAMED else [(o, o) for o in OTHERS]
            for other, same in pairs:
                if (
                    name != "bool"
                    and same is not other
                    and VALUES[at] == -(2**63)
                    and called in ("floordiv", "mod")
                ):
                    continue  # the least number by -1 ends a process of PyTorch's
                mine, other_way = told(f, x, other), told(f, y, same)
                assert mine == other_way, (called, VALUES[at], same)
                answered += type(mine) is tuple and held(f(x, other))
    assert answered > 100


def test_nothing_runs_and_nothing_shows() -> None:
    ix = xtensor.randint(90, (8,))
    wanted = ix.tolist()
    data = xtensor.arange(103) * 2
    assert data.tolist()[4] == 8
    names: list[str] = []

    def watcher(name: str) -> Any:
        return lambda loaded: names.append(name)

    watch(watcher)
    try:
        for i, number in zip(ix, wanted, strict=True):
            j = i + 5
            assert held(j) and j.item() == number + 5 and int(j) == number + 5 and bool(j > 3)
            assert f"{j}" == str(number + 5) and range(200)[j] == number + 5
            part = data[i:j]
            assert part.shape == (5,) and part.storage_offset() == number
            assert data[j].storage_offset() == number + 5
            assert j._version == 0 and j.is_leaf and not j._is_view() and j.device.type == "cpu"
    finally:
        unwatch(watcher)
    assert names == []


def test_what_is_done_with_the_result() -> None:
    i = xtensor.tensor([3, 4])[0]
    j = i + 1
    other = j
    j += 2
    assert j.item() == 6 and other is j and j._version == 1
    assert (i + 1).add_(5).item() == 9 and i.item() == 3
    k = i * 2
    assert k.expand(3).tolist() == [6, 6, 6] and held(k) is False
    with pytest.raises(RuntimeError, match=r"self.dim\(\) cannot be 0 to view Long as Int"):
        (i * 2).view(xtensor.int32)
    assert (i * 2).view(xtensor.float64).item() == np.array(6).view(np.float64)
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        (i * 2).expand(2).item()
    assert (i * 2).float().item() == 6.0 and ((i * 2) * 0.5).item() == 3.0
    assert pickle.loads(pickle.dumps(i + 1)).item() == 4 and copy.deepcopy(i + 1).item() == 4
    assert (i + 1).numpy() == 4 and repr(i + 1) == "tensor(4)" and (i + 1).clone().item() == 4
    assert xtensor.stack([i + 1, i + 2]).tolist() == [4, 5]
    shared = i + 1
    again = i + 1
    shared.fill_(9)
    assert again.item() == 4 and shared.item() == 9  # they may have shared one array
    assert (i + 1).data_ptr() != 0 and (i + 1).untyped_storage().nbytes() == 8
    assert (i + 1)._neg_view().item() == -4 and int((i + 1)._neg_view()) == -4
    assert (xtensor.tensor([1.5])[0] * 2.0)._neg_view().item() == -3.0
    out = xtensor.tensor(0)
    assert xtensor.add(i, 1, out=out) is out and out.item() == 4


def test_what_is_answered_by_programs() -> None:
    i = xtensor.tensor([3, 4])[0]
    assert not held(i + 1.5) and (i + 1.5).item() == 4.5
    assert not held(i / 2) and (i / 2).item() == 1.5
    b = xtensor.tensor([True, False])[0]
    assert (b + 1).item() == 2 and (b + b).item() is True
    assert (i + xtensor.tensor([1], dtype=xtensor.int32)[0]).dtype is xtensor.int64
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        i // 0
    small = xtensor.tensor([3], dtype=xtensor.int8)[0]
    assert (small + 300).item() == 47 and (small == 300).item() is False  # as PyTorch takes the number
    with segments.paused():
        meta = xtensor.empty(3, dtype=xtensor.int64, device="meta")[0]
        assert (meta + 1).is_meta
    assert xtensor.vmap(lambda v: v + 1)(xtensor.arange(3)).tolist() == [1, 2, 3]
    compiled = xtensor.compile(lambda v: v[0] + 1)
    assert [compiled(xtensor.tensor([n, 0])).item() for n in (1, 5, 9)] == [2, 6, 10]
    count = xtensor.tensor([1, 2])

    class Kind(xtensor.Tensor):
        pass

    assert type(count.as_subclass(Kind)[0] + 1) is Kind
    with xtensor.inference_mode():
        assert (count[0] + 1).is_inference()


def test_an_array_that_another_thread_took_away() -> None:
    x = xtensor.tensor([1, 2, 3, 4])
    i, j = x[2], x[3]
    exact = REGISTRY["add"].exact
    assert exact is not None
    made = exactly(exact, (i, 1, 1))
    assert made is not None and made.item() == 4
    x._xt_storage.array.delete()
    assert exactly(exact, (j, 1, 1)) is None  # the program is asked, which takes it again
    made = exactly(exact, (i, 1, 1))
    assert made is not None and made.item() == 4  # seen before that


def test_a_number_that_was_seen_is_not_what_numpy_writes_later() -> None:
    x = xtensor.tensor([1.0, 2.0, 3.0])
    i, j = x[0], x[1]
    assert not i > j and i + j == 3
    memory = x.numpy()
    memory[0] = 7
    assert i > j and i + j == 9
    x[1] = 8
    assert not i > j and memory[1] == 8
    x.mul_(-1)
    assert i > j


def test_a_number_is_not_kept_that_another_thread_wrote_over(monkeypatch: pytest.MonkeyPatch) -> None:
    x = xtensor.tensor([1.0, 2.0, 3.0]) + 0
    assert x.sum().item() == 6
    i, j = x[0], x[1]
    read = numbers.element

    def overtaken(array: Any, offset: int, dtype: Any) -> Any:
        found = read(array, offset, dtype)
        if offset == 0:
            x._xt_storage.replace(jnp.array([7.0, 2.0, 3.0], np.float32))
        return found

    monkeypatch.setattr(numbers, "element", overtaken)
    exact = REGISTRY["gt"].exact
    assert exact is not None
    made = exactly(exact, (i, j))
    assert made is not None and not made  # of values that a segment has given, too
    monkeypatch.setattr(numbers, "element", read)
    assert i > j


def test_lists_are_given_on_as_lists() -> None:
    seen = []

    class Kind(xtensor.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(args[1])
            return super().__torch_function__(func, types, args, kwargs)

    xtensor.ones(2, 3).as_subclass(Kind).permute([1, 0])
    assert seen == [[1, 0]]


def test_a_value_that_is_written_between() -> None:
    x = xtensor.tensor([1, 2, 3])
    i = x[1]
    assert (i + 1).item() == 3
    x[1] = 40
    assert (i + 1).item() == 41
    x += 1
    assert (i + 1).item() == 42 and (i == 41).item() is True
    i.fill_(0)
    assert x.tolist() == [2, 0, 4] and (i + 1).item() == 1


FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    1e-3,
    3e38,
    -3e38,
    1.7e308,
    1e-38,
    1e-40,
    1e-310,
    5e-324,
    np.inf,
    -np.inf,
    np.nan,
    2.0**24 + 1,
    1 / 3,
]
REALS = ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge")


def bits(tensor: Any) -> Any:
    return str(tensor.dtype), tensor.numpy().reshape(-1).tobytes()


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_floats_have_the_bits_of_programs(rng: Any, name: str) -> None:
    with np.errstate(all="ignore"):
        given = np.array([*FLOATS, *(rng.standard_normal(30) * 10.0 ** rng.integers(-30, 30, 30))]).astype(
            name
        )
    x = xtensor.tensor(given)
    answered = 0
    with segments.paused():
        for called in REALS:
            f = TWO[called]
            for i in range(len(given)):
                for j in (*range(5), 17, *rng.integers(0, len(given), 4).tolist()):
                    made = f(x[i], x[j])
                    answered += held(made)
                    assert made.item() != made.item() or bits(made) == bits(f(x[i : i + 1], x[j : j + 1])), (
                        called,
                        i,
                        j,
                    )
                for number in (2, -3, 2**24 + 1, 0.1, 1e-3, 1e300, 1e-42, float("nan")):
                    made = f(x[i], number)
                    answered += held(made)
                    assert made.item() != made.item() or bits(made) == bits(f(x[i : i + 1], number)), (
                        called,
                        i,
                        number,
                    )
        for i in range(len(given)):
            assert bits(-x[i]) == bits(-x[i : i + 1]) or given[i] != given[i]
    assert answered > 1000


def test_floats_that_gradients_follow_are_the_programs() -> None:
    w = xtensor.tensor([1.5, 2.5], requires_grad=True)
    made = w[0] * 3.0 + w[1]
    assert made.requires_grad and not held(made)
    made.backward()
    assert w.grad is not None and w.grad.tolist() == [3.0, 1.0]
    x = xtensor.tensor([1.5, 2.5])
    assert held(x[0] * 3.0) and held(x[0] > x[1]) and not held(xtensor.add(x[0], x[1], alpha=2))
    assert not held(xtensor.add(x[0], x[1], alpha=0.5)) and not held(x[0] / x[1])
    assert (x[0] * 3.0).requires_grad_().requires_grad and (x[0] < 2.0).item() is True
    with pytest.raises(TypeError, match="only integer tensors"):
        operator.index(x[0] + 1.0)


def test_new_tensors_of_numbers() -> None:
    for value, dtype in (
        (3, None),
        (2.5, None),
        (True, None),
        (7, xtensor.uint8),
        (0.1, xtensor.float64),
        (4, xtensor.float32),
    ):
        made = xtensor.tensor(value, dtype=dtype)
        assert (
            held(made) and made.item() == pytest.approx(value) and made.is_contiguous() and made.shape == ()
        )
        assert (
            made.clone().dtype is made.dtype
            and made.numpy() == pytest.approx(value)
            and made._xt_view is None
        )
    w = xtensor.tensor(0.5, requires_grad=True)
    (w * w).backward()
    assert w.grad is not None and w.grad.item() == 1.0
    p = xtensor.nn.Parameter(xtensor.tensor(2.0))
    optimizer = xtensor.optim.SGD([p], 0.5)
    (p * 3.0).backward()
    optimizer.step()
    assert p.item() == 0.5
    count = xtensor.tensor(0)
    for _ in range(3):
        count += 1
    assert count.item() == 3
    with pytest.raises(RuntimeError, match="without overflow"):
        xtensor.tensor(300, dtype=xtensor.int8)
    assert not held(xtensor.tensor(float("nan"))) and xtensor.tensor(float("inf")).item() == float("inf")
    assert xtensor.vmap(lambda v: v + xtensor.tensor(1.0))(xtensor.zeros(3)).tolist() == [1.0, 1.0, 1.0]
    with xtensor.inference_mode():
        assert xtensor.tensor(1.0).is_inference()
    assert xtensor.tensor(1.0, device="meta").is_meta


def test_writes_of_numbers_by_several_indices(torch: Any) -> None:
    found = []
    for lib in (torch, xtensor):
        x, y = lib.zeros(3, 4), lib.arange(12.0).reshape(3, 4)
        i = np.int64(2)
        x[1, 2] = y[1, 3] + y[i, 0]
        x[i, -1] = y[i, np.int32(1)] * 2
        x[0, 0] = lib.tensor(7.0)
        n = lib.zeros(3, 4, dtype=lib.int64)
        n[i, 1] += 5
        n[0, 0] = lib.arange(4)[3] + 1
        n[0, 1] = lib.tensor(2.75)  # of another dtype
        rows = [x.tolist(), n.tolist(), x._version, n._version]
        for wrong in ((3, 0), (0, np.int64(4))):
            for call in (lambda: x[wrong], lambda: x.__setitem__(wrong, 1.0)):  # noqa: B023
                with pytest.raises(IndexError) as error:
                    call()
                rows.append(str(error.value))
        w = lib.zeros(2, 2, requires_grad=True)
        v = w * 1
        v[0, 1] = y[0, 1] + y[0, 2]
        v[1, 1] = 4.0
        v.sum().backward()
        rows += [v.tolist(), w.grad.tolist()]
        found.append(rows)
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_a_number_that_is_added_up_stays_on_the_host(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    names: list[str] = []

    def watcher(name: str) -> Any:
        return lambda loaded: names.append(name)

    for lib in (xtensor, torch):
        values = lib.tensor(np.linspace(1, 9, 20).astype(dtype))
        assert values.tolist()
        total = lib.tensor(0, dtype=values.dtype)
        other, part = total, total.view(())
        watch(watcher)
        try:
            for i in range(20):
                total += values[i] * 2
                total.mul_(3).sub_(1)
        finally:
            unwatch(watcher)
        assert other is total
        found.append((total.item(), part.item(), total._version, str(total.dtype).split(".")[1]))
        with pytest.raises(RuntimeError):
            lib.tensor(2, dtype=lib.int64).div_(lib.tensor(3, dtype=lib.int64))
    assert found[0] == found[1] and names == []
    leaf = xtensor.tensor(1.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf += 1
    part = (leaf * 2).detach()
    part += 1
    assert part.item() == 3


def placed(tensor: Any) -> bool:
    return type(tensor._xt_storage.raw) is not HostValues


def test_lists_wait_in_the_hosts_memory() -> None:
    x = xtensor.tensor([[1, 2, 3], [4, 5, 6]])
    assert not placed(x) and x.shape == (2, 3) and x.dtype is xtensor.int64 and str(x.device) == "cpu"
    assert x.stride() == (3, 1) and x._version == 0 and x.is_leaf and x.untyped_storage().nbytes() == 48
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]] and x[1].tolist() == [4, 5, 6] and x[:, 1].tolist() == [2, 5]
    assert (
        x[1, 2].item() == 6
        and int(x[0, 0]) == 1
        and (x[0, 1] + 1).item() == 3
        and x.t()[2].tolist() == [3, 6]
    )
    assert [int(i) for i in x[0]] == [1, 2, 3] and xtensor.tensor([7]).item() == 7
    assert x.view(xtensor.int32)[0, 0].item() == 1 and x.float()[0, 0].item() == 1.0
    y = xtensor.tensor([1.5, 2.5])
    assert not placed(y) and (y + 1).tolist() == [2.5, 3.5] and placed(y)
    assert y._neg_view().tolist() == [-1.5, -2.5] and xtensor.tensor([1.5])._neg_view().tolist() == [-1.5]
    assert xtensor.tensor([1j]).conj().tolist() == [-1j] and xtensor.tensor([1j]).conj()[0].item() == -1j
    z = xtensor.tensor([1, 2])
    part = z[1:]
    z += 1
    z[0] = 9
    assert z.tolist() == [9, 3] and part.tolist() == [3] and z._version == 2
    values = xtensor.tensor([1.0, 2.0])
    shared = values.numpy()
    shared[0] = 7
    assert values.tolist() == [7, 2] and int(values[0]) == 7
    w = xtensor.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2, 4]
    u = xtensor.tensor([3, 4])
    twin, again = copy.deepcopy(u), pickle.loads(pickle.dumps(u))
    u.fill_(0)
    assert twin.tolist() == again.tolist() == [3, 4] and u.data_ptr() != 0
    assert xtensor.tensor([1, 2], device="meta").is_meta and xtensor.tensor([]).shape == (0,)
    with xtensor.inference_mode():
        assert xtensor.tensor([1, 2]).is_inference()
    compiled = xtensor.compile(lambda v: v + xtensor.tensor([1, 2]))
    assert [compiled(xtensor.tensor([n, 0])).tolist() for n in (1, 5, 9)] == [[n + 1, 2] for n in (1, 5, 9)]
    assert xtensor.vmap(lambda v: v + xtensor.tensor([1, 2]))(xtensor.zeros(3, 2)).shape == (3, 2)
    assert placed(xtensor.tensor([0] * 4096))


def test_a_loop_over_numbers_knows_them_until_they_are_written() -> None:
    memory = np.arange(4)
    for x in (
        xtensor.arange(4),
        xtensor.tensor([0, 1, 2, 3]),
        xtensor.arange(8)[::2] // 2,
        xtensor.from_numpy(memory),
    ):
        numbers = list(x)
        assert [int(i) for i in numbers] == [i.item() for i in x.unbind()] == [0, 1, 2, 3]
        assert (numbers[1] + 1).item() == 2 and bool(numbers[1] < numbers[2]) and "abc"[numbers[2]] == "c"
        assert numbers[1]._base is x and numbers[2].storage_offset() == x[2].storage_offset()
        x[1] = 7
        assert int(numbers[1]) == 7 and (numbers[1] + numbers[2]).item() == 9 and numbers[1].item() == 7
        x += 1
        assert [int(i) for i in numbers] == [1, 8, 3, 4] and bool(numbers[1] == 8)
        x.data[2] = 0
        assert not numbers[2] and numbers[2].detach().item() == 0
    shared = xtensor.from_numpy(memory)
    numbers = list(shared)
    memory[3] = 40
    assert int(numbers[3]) == 40 and (numbers[3] + 1).item() == 41
    floats = list(xtensor.tensor([0.5, -1.5]))
    assert [float(f) for f in floats] == [0.5, -1.5] and (floats[0] + floats[1]).item() == -1.0
    assert list(xtensor.tensor([1.5, 2.5])._neg_view())[1].item() == -2.5
    followed = list(xtensor.tensor([2.0, 3.0], requires_grad=True))
    (followed[0] * followed[1]).backward()
    with pytest.warns(UserWarning, match="requires_grad=True"):
        assert float(followed[0]) == 2.0
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        followed[0].add_(1)
    loop = xtensor.compile(lambda v: sum(i * 2 for i in v))
    assert [loop(xtensor.tensor([n, 1])).item() for n in (1, 5, 9)] == [2 * n + 2 for n in (1, 5, 9)]
    base = xtensor.arange(3)
    outside = list(base)
    add = xtensor.compile(lambda v: v + outside[2])
    assert add(xtensor.zeros(2)).tolist() == [2, 2]
    base.fill_(5)
    assert add(xtensor.zeros(2)).tolist() == [5, 5] and int(outside[2]) == 5
    with pytest.raises(TypeError):
        range(3)[next(iter(xtensor.tensor([1.5, 2.0])))]  # type: ignore[call-overload]


def test_a_view_that_is_folded_again() -> None:
    x = xtensor.arange(12.0).reshape(3, 4)
    for _ in range(3):
        assert [row.sum().item() for row in x] == [6, 22, 38] and [c.mean().item() for c in x.t()] == [
            4,
            5,
            6,
            7,
        ]
        assert x[1:].sum(0).tolist() == [12, 14, 16, 18] and x[1].sum(0, keepdim=True).tolist() == [22]
        with pytest.raises(TypeError):
            x[1].sum(True)
    x[1] = 0
    assert [row.sum().item() for row in x] == [6, 0, 38]
    w = x.clone().requires_grad_()
    w[2].sum().backward()
    assert w.grad is not None and w.grad[2].tolist() == [1, 1, 1, 1] and w.grad[0].sum().item() == 0
    with xtensor.no_grad():
        assert not w[2].sum().requires_grad
    assert x[2].sum(dtype=xtensor.float64).dtype is xtensor.float64 and x[2].sum().dtype is xtensor.float32
    assert xtensor.vmap(lambda row: row.sum())(x).tolist() == [6, 0, 38]
    y = xtensor.from_numpy(np.ones((2, 2), np.float32))
    assert y[1].sum().item() == 2


@pytest.mark.parametrize("dtype", ("bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"))
def test_an_element_is_the_number_that_numpy_shows(dtype: str) -> None:
    info = np.finfo(dtype) if dtype[0] == "f" else None
    ends = (
        [0, 1]
        if dtype == "bool"
        else [np.iinfo(dtype).min, np.iinfo(dtype).max]
        if info is None
        else [info.tiny, np.nan]
    )
    values = np.array([*ends, 1, 0] * 258, dtype)[:1031]
    array = xtensor.from_numpy(values.copy()).clone()._xt_storage.array
    for at in (0, 1, 2, 1030):
        found, expected = element(array, at, array.dtype), values.item(at)
        assert type(found) is type(expected)
        assert repr(found) == repr(expected)
    for at, count in ((0, 1), (1, 31), (1027, 4), (5, 257), (0, 0), (1031, 0)):
        found = xtensor.from_numpy(values.copy()).clone()[at : at + count].tolist()
        expected = values[at : at + count].tolist()
        assert list(map(type, found)) == list(map(type, expected))
        assert repr(found) == repr(expected)


def test_an_element_that_is_not_to_be_had() -> None:
    for dtype in (xtensor.bfloat16, xtensor.complex64):
        array = xtensor.ones(3, dtype=dtype)._xt_storage.array
        assert element(array, 1, array.dtype) is elements(array, 1, 2, array.dtype) is None
        assert xtensor.ones(3, dtype=dtype)[1].item() == 1
    taken = (xtensor.ones(1031) * 2)._xt_storage.array
    assert element(taken, 5, taken.dtype) == 2.0
    taken.delete()
    assert element(taken, 5, taken.dtype) is elements(taken, 5, 2, taken.dtype) is None


def test_elements_of_an_array_on_several_devices() -> None:
    script = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
import xtensor
from xtensor.host.elements import element
mesh = Mesh(np.array(jax.devices()), ("a",))
values = np.arange(8.0, dtype=np.float32)
for spec, expected in ((PartitionSpec("a"), {None}), (PartitionSpec(), {None, 5.0})):
    array = jax.device_put(values, NamedSharding(mesh, spec))
    assert element(array, 5, array.dtype) in expected
assert element(jax.device_put(values, jax.devices()[1]), 5, values.dtype) == 5.0
"""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, **flags})
