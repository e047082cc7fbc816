"""Memory shared with NumPy: a write to the one shows in the other, as PyTorch has it, for as long as both live."""

import copy
import gc
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor as xt
from xtensor import copied_storage
from xtensor.shared_storage import MOST, HostStorage, SharedStorage
from xtensor.storage import Storage

DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool", "complex64"]


def kind(tensor):
    tensor._xt_storage.array  # noqa: B018  a read notices that the last array has gone
    return type(tensor._xt_storage)


# ---- one program, on both -------------------------------------------------------------------------------------------


class Program:
    """Random reads and writes of tensors and arrays over a few memories; the same for the same seed."""

    def __init__(self, lib, seed, dtype="float64"):
        self.lib, self.rng, self.seen = lib, np.random.default_rng(seed), []
        self.source = self.rng.integers(-9, 9, 60).astype(dtype)
        base = self.source.reshape(3, 4, 5)
        forms = [
            base,
            base[:, ::2],
            base.transpose(2, 0, 1),
            base[1:, 1:3, 2],
            self.source[7:31],
            base[2, 3, 4:],
        ]
        first = forms[self.rng.integers(len(forms))]
        self.arrays = [self.source, first]
        self.tensors = [
            lib.from_numpy(first),
            lib.from_numpy(self.source[10:20]),
            lib.tensor(base[0].tolist()),
        ]
        self.tensors[2] = self.tensors[2].to(self.tensors[0].dtype)

    def pick(self, things):
        return things[self.rng.integers(len(things))]

    def run(self, steps):
        for _ in range(steps):
            step = self.pick([n for n in dir(self) if n.startswith("do_")])
            getattr(self, step)()
            self.seen.append((step, [t.tolist() for t in self.tensors], [a.tolist() for a in self.arrays]))
        return self.seen

    def some(self, shape):
        """A place that has at least one element."""
        return tuple(slice(int(self.rng.integers(n)), None, int(self.rng.integers(1, 3))) for n in shape)

    def do_export(self):
        self.arrays.append(self.pick(self.tensors).numpy())

    def do_import(self):
        self.tensors.append(self.lib.from_numpy(self.pick(self.arrays)))

    def do_as_tensor(self):
        self.tensors.append(self.lib.as_tensor(np.asarray(self.pick(self.tensors))))

    def do_view_of_tensor(self):
        t = self.pick(self.tensors)
        way = self.rng.integers(5)
        if t.dim() == 0 or way == 0:
            self.tensors.append(t.detach())
        elif way == 1:
            self.tensors.append(t.transpose(0, -1))
        elif way == 2:
            self.tensors.append(t[self.some(t.shape)])
        elif way == 3:
            self.tensors.append(t[int(self.rng.integers(t.shape[0]))])
        else:
            self.tensors.append(t.unsqueeze(0).expand(2, *t.shape)[1])

    def do_view_of_array(self):
        a = self.pick(self.arrays)
        self.arrays.append(a.T if a.ndim == 0 or self.rng.random() < 0.3 else a[self.some(a.shape)])

    def do_forget(self):
        things = self.arrays if self.rng.random() < 0.6 else self.tensors
        if len(things) > 2:
            del things[self.rng.integers(1, len(things))]

    def do_array_write(self):
        a = self.pick(self.arrays)
        if a.ndim:
            a[self.some(a.shape)] = int(self.rng.integers(100))
        else:
            a[...] = 4

    def do_array_arithmetic(self):
        a = self.pick(self.arrays)
        a += 1
        if a.dtype.kind != "b":
            np.multiply(a, 3, out=a)
            a %= 97

    def do_array_order(self):
        a = self.pick(self.arrays)
        if a.ndim:
            a.sort() if self.rng.random() < 0.5 else self.rng.shuffle(a)

    def do_tensor_write(self):
        t = self.pick(self.tensors)
        t[self.some(t.shape) if t.dim() else ...] = int(self.rng.integers(100))

    def do_tensor_arithmetic(self):
        t = self.pick(self.tensors)
        t += 2
        t.remainder_(89)

    def do_tensor_copy(self):
        t = self.pick(self.tensors)
        t.copy_(t.flip(0) * 2 if t.dim() else t * 2)

    def do_tensor_rows(self):
        t = self.pick(self.tensors)
        if t.dim():
            t.index_fill_(0, self.lib.tensor([int(self.rng.integers(t.shape[0]))]), 7)

    def do_independent(self):
        self.tensors.append(self.pick(self.tensors) + 1)


@pytest.mark.parametrize("part", range(8))
def test_random_programs_are_pytorchs(torch, part, full):
    for number in range(60 if full else 5):
        seed = part * 1000 + number
        dtype = ("float64", "int64", "float32")[number % 3]
        ours, theirs = Program(xt, seed, dtype).run(40), Program(torch, seed, dtype).run(40)
        for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            assert mine == other, f"seed {seed}, step {i}"


# ---- what is shared -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_ways_in_every_dtype(torch, dtype):
    for lib in (xt, torch):
        a = np.array([[1, 0, 1], [0, 1, 1]], dtype)
        t = lib.from_numpy(a)
        a[0, 1] = 1
        assert t.tolist() == [[1, 1, 1], [0, 1, 1]]
        t[1, 2] = 0
        assert a.tolist() == [[1, 1, 1], [0, 1, 0]]
        b = t.numpy()
        assert np.shares_memory(a, b) and b.dtype == a.dtype and b.flags.writeable
        b.sort(axis=1)
        assert t.tolist() == [[1, 1, 1], [0, 0, 1]] == a.tolist()


def test_numpy_can_be_written(torch):
    def program(lib):
        t = lib.arange(10.0)
        b = t.numpy()
        b += 1
        np.random.default_rng(0).shuffle(b)
        first = t.tolist()
        b[2:5].sort()
        np.negative(b, out=b)
        np.asarray(t)[0] = 100
        t.mul_(2)
        return first, t.tolist(), b.tolist(), t[3:].numpy().tolist()

    assert program(xt) == program(torch)


def test_views_have_the_strides_of_torch(torch):
    def program(lib):
        t = lib.arange(24, dtype=lib.int32).reshape(2, 3, 4)
        views = [
            t,
            t[1:],
            t.t() if t.dim() == 2 else t.mT,
            t[:, 1],
            t[..., ::2],
            t.permute(2, 0, 1),
            t[0, 0, 0],
        ]
        views += [t.view(lib.int16)[..., 1::2], t[0].expand(2, 3, 4), t.diagonal(0, 1, 2), t.unfold(2, 2, 1)]
        found = []
        for view in views:
            a = view.numpy()
            assert np.shares_memory(a, t.numpy())
            if view.shape and 0 not in a.strides:
                a[...] += 1
            found.append((a.shape, a.strides, a.dtype.str, a.tolist(), t.tolist()))
        return found

    assert program(xt) == program(torch)


def test_strides_of_arrays_are_kept(torch):
    base = np.arange(60.0).reshape(3, 4, 5)
    for a in (base.T, base[:, ::2], base[..., 1], base[1:, 1:, ::3], np.asfortranarray(base)):
        ours, theirs = xt.from_numpy(a), torch.from_numpy(a)
        assert ours.stride() == theirs.stride() and ours.tolist() == theirs.tolist()
        assert ours.numpy().strides == theirs.numpy().strides and np.shares_memory(ours.numpy(), a)
        ours.add_(1)
        assert theirs.tolist() == ours.tolist() == a.tolist()


def test_two_tensors_over_overlapping_memory(torch):
    def program(lib):
        a = np.arange(8)
        one, two = lib.from_numpy(a[:6]), lib.from_numpy(a[2:])
        rows = one.view(2, 3)[1]  # its values are kept between reads
        before = (rows + 0).tolist()
        two.mul_(10)
        return before, (rows + 0).tolist(), one.tolist(), two.tolist(), a.tolist()

    assert program(xt) == program(torch)


def test_as_tensor_and_asarray(torch):
    for lib in (xt, torch):
        a = np.arange(3.0)
        shared = [
            lib.as_tensor(a),
            lib.asarray(a),
            lib.asarray(a, copy=False),
            lib.as_tensor(a, dtype=lib.float64),
        ]
        copies = [lib.tensor(a), lib.asarray(a, copy=True), lib.as_tensor(a, dtype=lib.float32)]
        a[0] = 5
        assert [t[0].item() for t in shared] == [5] * 4 and [t[0].item() for t in copies] == [0] * 3
        with pytest.raises(ValueError, match="can't alias"):
            lib.asarray(a, dtype=lib.float32, copy=False)


def test_programs_see_what_was_there_when_they_were_called():
    a = np.zeros((256, 256))
    t = xt.from_numpy(a)
    sums: list[xt.Tensor] = []
    for i in range(50):
        a[...] = i
        sums.append((t @ t).sum())  # may still run when the next values come
    assert [float(s) for s in sums] == [float(i * i) * 256**3 for i in range(50)]


def test_a_write_while_the_program_before_may_still_run():
    t = xt.ones(200, 200)
    products = []
    for i in range(30):
        products.append(t @ t)
        t.numpy()[...] = i + 2
    assert [p[0, 0].item() for p in products] == [200.0 * (i + 1) ** 2 for i in range(30)]


def test_a_parameter_and_its_optimizer(torch):
    def program(lib):
        w = lib.nn.Parameter(lib.ones(4))
        a = w.detach().numpy()
        optimizer = lib.optim.SGD([w], lr=0.5, momentum=0.5)
        seen = []
        for _ in range(3):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
            seen.append(a.tolist())
            a[0] += 1
            seen.append(w.tolist())
        w.grad.numpy()[1] = 8
        optimizer.step()
        return [*seen, a.tolist(), w._version > 0]

    assert program(xt) == program(torch)


def test_autograd_keeps_the_values_of_the_forward_pass():
    x = xt.ones(3, requires_grad=True)
    a = np.full(3, 2.0, np.float32)
    w = xt.from_numpy(a)
    y = (x * w).sum()
    version = w._version
    a[:] = 7
    assert w._version == version == 0  # PyTorch counts no writes of NumPy's either
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2] and w.tolist() == [7, 7, 7]


def test_gradients_cannot_leave_through_numpy():
    with pytest.raises(RuntimeError, match="requires grad"):
        xt.ones(2, requires_grad=True).numpy()


# ---- when it ends ---------------------------------------------------------------------------------------------------


def test_the_storage_is_plain_again_when_the_last_array_has_gone():
    t = xt.arange(6.0)
    a = t.numpy()
    rows = a.reshape(2, 3)[1]
    del a
    gc.collect()
    assert kind(t) is SharedStorage and not t._xt_storage.sole_owner()
    rows[:] = 9
    held = memoryview(rows)
    del rows
    assert kind(t) is SharedStorage
    del held
    assert kind(t) is Storage and t._xt_storage.sole_owner()
    assert t.tolist() == [0, 1, 2, 9, 9, 9]
    b = np.arange(4.0)
    u = xt.from_numpy(b[1:])
    b[2] = 8
    del b
    assert u.tolist() == [1, 8, 3] and kind(u) is Storage
    t.add_(1)
    assert t.tolist() == [1, 2, 3, 10, 10, 10]


def test_an_array_outlives_its_tensor():
    t = xt.arange(3.0)
    a = t.numpy()
    t += 1
    del t
    a += 1
    assert a.tolist() == [2, 3, 4]


def test_memory_of_others_stays_shared():
    memory = bytearray(16)
    t = xt.from_numpy(np.frombuffer(memory, np.int32))
    memory[4] = 3
    assert t.tolist() == [0, 3, 0, 0]
    t[0] = 1
    assert memory[0] == 1 and kind(t) is SharedStorage


def test_torch_and_xtensor_over_one_array(torch):
    a = np.zeros(3)
    ours, theirs = xt.from_numpy(a), torch.from_numpy(a)
    theirs.add_(2)
    ours.mul_(3)
    assert ours.tolist() == theirs.tolist() == a.tolist() == [6, 6, 6]


# ---- what is not ----------------------------------------------------------------------------------------------------


@pytest.fixture
def unsaid(monkeypatch):
    monkeypatch.setattr(copied_storage, "_said", False)


def test_large_memory_is_copied_or_read_only(monkeypatch):
    monkeypatch.setattr(copied_storage, "_said", True)
    a = np.zeros(MOST + 1, np.uint8)
    t, last = xt.from_numpy(a), xt.from_numpy(a[1:])
    a[5] = 1
    assert t[5].item() == 0 and last[4].item() == 1
    row = t[:4].numpy()
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1
    t[0] = 9
    assert row[0] == 0 and a[0] == 0
    with pytest.raises(ValueError, match="can't alias arbitrary buffer"):
        xt.asarray(a, copy=False)


SEVERAL = (600, 600)


@pytest.mark.parametrize("layout", ["C", "F"])
def test_a_change_of_large_memory_is_said_once(unsaid, layout):
    a = np.zeros(SEVERAL, order=layout)
    t, u, last = xt.from_numpy(a), xt.from_numpy(a), xt.from_numpy(a)
    assert t.sum().item() == 0 and (t + 1).sum().item() == a.size
    a += 1
    with pytest.warns(UserWarning, match="A NumPy array was written whose tensor does not see it") as told:
        assert t.sum().item() == 0
    assert told[0].filename == __file__
    assert u.sum().item() == 0  # said once
    last.add_(1)
    assert last.sum().item() == a.size
    assert type(t._xt_storage) is type(u._xt_storage) is type(last._xt_storage) is Storage


def test_a_change_of_a_large_tensor_is_said_once(unsaid):
    t = xt.zeros(SEVERAL)
    a = t.numpy()
    with pytest.warns(UserWarning, match="A tensor was written whose NumPy array does not see it") as told:
        t.add_(1)
    assert told[0].filename == __file__ and t.sum().item() == t.numel()
    t.add_(1)
    assert t.sum().item() == 2 * t.numel() and a.sum() == 0


def test_large_memory_that_nobody_holds_says_nothing(unsaid):
    t = xt.from_numpy(np.zeros(SEVERAL))
    t.add_(1)
    assert kind(t) is Storage
    before = t.numpy()
    assert before.sum() == t.sum().item()
    del before
    t.add_(1)
    assert kind(t) is Storage
    u = pickle.loads(pickle.dumps(copy.deepcopy(xt.from_numpy(np.ones(SEVERAL)))))
    assert u.sum().item() == u.numel()


def test_read_only_arrays_are_copied():
    a = np.arange(3)
    a.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t = xt.from_numpy(a)
    t[0] = 5
    assert a.tolist() == [0, 1, 2] and t.tolist() == [5, 1, 2]


def test_what_pytorch_refuses(torch):
    packed = np.zeros(4, np.dtype([("a", "i4"), ("b", "i1")]))["a"]
    swapped = np.zeros(3, np.dtype(">f8"))
    for array in (np.arange(4)[::-1], packed):
        with pytest.raises(ValueError) as theirs:
            torch.from_numpy(array)
        with pytest.raises(ValueError) as ours:
            xt.from_numpy(array)
        assert str(ours.value).split(".")[0] == str(theirs.value).split(".")[0]
    with pytest.raises((ValueError, TypeError)):
        xt.from_numpy(swapped)


def test_no_elements_and_no_dimensions(torch):
    for lib in (xt, torch):
        empty = lib.from_numpy(np.zeros((0, 3)))
        assert empty.shape == (0, 3) and empty.numpy().shape == (0, 3) and empty.numpy().flags.writeable
        number = lib.tensor(3.0)
        a = number.numpy()
        a[...] = 4
        assert number.item() == 4 and a.shape == ()
        number.add_(1)
        assert a == 5
        b = np.array(2)
        t = lib.from_numpy(b)
        b += 1
        assert t.item() == 3


def test_conjugates_and_copies_are_their_own():
    t = xt.tensor([1 + 2j])
    a = t.conj().numpy(force=True)
    t.zero_()
    assert a[0] == 1 - 2j
    b = np.array(t)
    b[0] = 3
    assert t.tolist() == [0]


# ---- everything else that touches a storage -------------------------------------------------------------------------


def test_copies_and_pickles_have_memory_of_their_own():
    a = np.arange(3.0)
    t = xt.from_numpy(a)
    twins = [
        copy.deepcopy(t),
        pickle.loads(pickle.dumps(t)),
        t.clone(),
        copy.deepcopy({"t": t})["t"],
        t.to(xt.float32),
    ]
    a[0] = 9
    assert [twin[0].item() for twin in twins] == [0] * 5
    assert pickle.loads(pickle.dumps(t)).tolist() == [9, 1, 2]
    same = copy.copy(t)
    a[1] = 8
    assert same.tolist() == [9, 8, 2]
    twins[0].add_(1)
    assert a.tolist() == [9, 8, 2]


def test_failed_writes_change_nothing():
    a = np.arange(3.0)
    t = xt.from_numpy(a)
    with pytest.raises(RuntimeError):
        t.add_(xt.ones(2))
    assert a.tolist() == t.tolist() == [0, 1, 2]


def test_a_resized_storage_has_memory_of_its_own():
    t = xt.arange(3.0)
    a = t.numpy()
    t.resize_(5)
    t.fill_(1)
    assert a.tolist() == [0, 1, 2] and t.tolist() == [1] * 5 and kind(t) is Storage


def test_batch_norm_and_masked_writes(torch):
    def program(lib):
        norm = lib.nn.BatchNorm1d(2)
        mean, count = norm.running_mean.numpy(), norm.num_batches_tracked.numpy()
        norm(lib.arange(8.0).reshape(4, 2))
        norm.running_mean[norm.running_mean > 0.35] = 0
        return mean.tolist(), count.tolist()

    ours, theirs = program(xt), program(torch)
    assert np.allclose(ours[0], theirs[0]) and ours[1] == theirs[1]


def test_threads_that_read_see_whole_values():
    a = np.zeros(64)
    t = xt.from_numpy(a)
    failures = []

    def read():
        for _ in range(200):
            values = t.clone().tolist()
            if len(set(values)) != 1:
                failures.append(values)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for thread in readers:
        thread.start()
    for i in range(200):
        t.fill_(i)
    for thread in readers:
        thread.join()
    assert not failures and a.tolist() == [199] * 64


# ---- read when a program asks --------------------------------------------------------------------------------------


def test_an_array_is_taken_in_when_a_program_first_reads_it():
    a = np.arange(6, dtype=np.float32)
    t = xt.from_numpy(a)
    rows = t.view(2, 3)[1].unsqueeze(0)
    assert type(t._xt_storage) is HostStorage
    assert (t.shape, t.dtype, t.device.type, t.stride(), rows.shape) == (
        (6,),
        xt.float32,
        "cpu",
        (1,),
        (1, 3),
    )
    assert type(t._xt_storage) is HostStorage
    a[4] = 9  # seen, as it is not read yet
    assert rows.tolist() == [[3, 9, 5]]
    assert kind(t) is SharedStorage
    t.add_(1)
    assert a.tolist() == [1, 2, 3, 4, 10, 6]


@pytest.mark.parametrize(
    "touch",
    [
        lambda lib, t: t.add_(1),
        lambda lib, t: t.__setitem__(0, 7),
        lambda lib, t: t.numpy().__setitem__(0, 5),
        lambda lib, t: t.copy_(lib.ones(4)),
        lambda lib, t: t[1:].mul_(2),
        lambda lib, t: lib.nn.Parameter(t).data.zero_(),
        lambda lib, t: t.set_(lib.zeros(4)),
        lambda lib, t: setattr(t, "data", lib.ones(4)),
        lambda lib, t: lib.add(t, 1, out=t),
        lambda lib, t: t.index_put_((lib.tensor([0, 2]),), lib.tensor([8.0, 9.0])),
    ],
)
def test_a_first_touch_that_writes(touch):
    torch = pytest.importorskip("torch")
    found = []
    for lib in (xt, torch):
        a = np.arange(4, dtype=np.float32)
        t = lib.from_numpy(a)
        touch(lib, t)
        found.append([t.tolist(), a.tolist()])
        t.add_(1)
        found[-1] += [t.tolist(), a.tolist()]
    assert found[0] == found[1]


def test_the_address_is_the_arrays_own():
    a = np.arange(4.0)
    assert xt.from_numpy(a).data_ptr() == a.ctypes.data
    assert xt.from_numpy(a).untyped_storage().data_ptr() == a.ctypes.data


def test_an_optimizer_writes_into_the_memory_of_its_parameters():
    a = np.ones(3, np.float32)
    p = xt.nn.Parameter(xt.from_numpy(a))
    optimizer = xt.optim.SGD([p], lr=0.5)
    p.sum().backward()
    optimizer.step()
    assert p.tolist() == [0.5, 0.5, 0.5] and a.tolist() == [0.5, 0.5, 0.5]


def test_what_is_copied_or_pickled_has_its_values():
    a = np.arange(3.0)
    t = xt.from_numpy(a)
    made = [
        copy.deepcopy(xt.from_numpy(a)),
        pickle.loads(pickle.dumps(xt.from_numpy(a))),
        t.clone(),
        t.to(xt.float32),
    ]
    a[0] = 5
    assert [m.tolist() for m in made] == [[0, 1, 2]] * 4 and t.tolist() == [5, 1, 2]


def test_batches_of_what_no_program_has_read_are_numpys():
    memory = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    samples = [
        (xt.from_numpy(rows).unsqueeze(0), xt.from_numpy(rows.T.copy()).t(), i)
        for i, rows in enumerate(memory)
    ]
    whole, turned, numbers = xt.utils.data.default_collate(samples)
    assert (
        whole.shape == (4, 1, 2, 3)
        and (whole[:, 0].numpy() == memory).all()
        and (turned.numpy() == memory).all()
    )
    assert numbers.tolist() == [0, 1, 2, 3] and whole.is_contiguous() and turned.is_contiguous()
    assert type(samples[0][0]._xt_storage) is HostStorage
    whole.zero_()
    assert memory[0, 0, 1] == 1
    mixed = xt.utils.data.default_collate([xt.from_numpy(memory[0]), xt.ones(2, 3)])
    assert (mixed[0].numpy() == memory[0]).all() and mixed[1].tolist() == [[1, 1, 1]] * 2
    rows = [xt.from_numpy(row) for row in memory]
    for dim in (0, 1, -1):
        assert (xt.stack(rows, dim).numpy() == np.stack(list(memory), dim)).all()
        assert (
            xt.stack([*rows, xt.ones(2, 3)], dim).numpy() == np.stack([*memory, np.ones((2, 3))], dim)
        ).all()
    assert type(rows[0]._xt_storage) is HostStorage
    for wrong, error in (
        (lambda: xt.stack(rows, 4), IndexError),
        (lambda: xt.stack([rows[0], xt.ones(2)]), RuntimeError),
    ):
        with pytest.raises(error):
            wrong()
    assert xt.stack([rows[0], xt.from_numpy(np.ones((2, 3)))]).dtype is xt.float64


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda n: n + 1,
    "comparison": lambda n: n == 7,
    "product": lambda n: 2 * n,
    "negative": lambda n: -n,
    "power": lambda n: n**2,
    "of two": lambda n: n > n + 1,
    "index": lambda n: list(range(20))[n] if not n.is_floating_point() else n.item(),
    "slice": lambda n: list(range(20))[n:] if not n.is_floating_point() else float(n),
}


@pytest.mark.parametrize("dtype", ["int64", "float32"])
@pytest.mark.parametrize("name", NUMBERS)
def test_single_numbers_show_what_was_written_outside(name: str, dtype: str) -> None:
    """Known numbers are computed with on the host: what NumPy wrote is not what they were."""
    lent = xt.ones(3, 4, dtype=getattr(xt, dtype)) * 1
    memory = np.ones((3, 4), dtype)
    for tensor, outside in ((lent, lent.numpy()), (xt.from_numpy(memory), memory)):
        for value in (7, 5, 7):
            (tensor[0, 1] + 0).item()
            outside[0, 1] = value
            found, expected = NUMBERS[name](tensor[0, 1]), NUMBERS[name](xt.tensor(value, dtype=tensor.dtype))
            if isinstance(found, xt.Tensor):
                found, expected = found.tolist(), expected.tolist()
            assert found == expected
