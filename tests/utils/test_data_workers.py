"""DataLoader's worker processes: what can be sent to them, how they are seeded, and how they end."""

import collections
import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import xtensor
from xtensor.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info, transport
from xtensor.utils.data import server as servers

LIMIT = 60  # seconds for a script, which takes about 3
pytestmark = pytest.mark.timeout(2 * LIMIT)


def loaded(dataset, **options):
    """A loader over a dataset; more workers than processors are fine here."""
    options = dict(num_workers=2) | options
    with warnings_off():
        return DataLoader(dataset, **options)


@contextlib.contextmanager
def warnings_off():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create")
        yield


def pids(iterator):
    return [worker.pid for worker in iterator.pool.workers]


def alive(pid):
    """Whether a process still runs: a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Numbers(Dataset):
    def __init__(self, count=12, transform=None):
        self.count, self.transform = count, transform

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return i if self.transform is None else self.transform(i)


# ---- scripts -------------------------------------------------------------------------------------------------------

DEFINED_IN_MAIN = """
import collections, json
import numpy as np
import xtensor as torch
from xtensor.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

SCALE = 10
Batch = collections.namedtuple("Batch", "x who")

class Kind:
    def __init__(self, x):
        self.x = x
    def scaled(self):
        return helper(self.x)

def helper(x):
    return x * SCALE

class Cells(Dataset):
    def __init__(self, transform):
        super().__init__()
        self.transform = transform
    def __len__(self):
        return 6
    def __getitem__(self, i):
        return self.transform(i)

started = []
loader = DataLoader(
    Cells(lambda i: np.full(2, helper(i))),
    batch_size=3,
    num_workers=2,
    collate_fn=lambda samples: (Batch(torch.tensor(np.stack(samples)), get_worker_info().id), Kind(len(started))),
    worker_init_fn=lambda i: started.append(i),
)
seen = []
for epoch in range(2):
    for batch, kind in loader:
        assert type(batch) is Batch and type(kind) is Kind
        seen.append([batch.x[:, 0].tolist(), batch.who, kind.x])
SCALE = 100
seen.append(kind.scaled())
print(json.dumps(seen))
"""
EXPECTED = [[[0, 10, 20], 0, 1], [[30, 40, 50], 1, 1]] * 2 + [100]

# What IPython does: a `__main__` without a file, cell after cell, the lines known to linecache alone.
CELLS = """
import linecache, sys, types
main = types.ModuleType("__main__")
sys.modules["__main__"] = main
for number, cell in enumerate({cells!r}):
    name = f"<cell {{number}}>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
    exec(compile(cell, name, "exec"), main.__dict__)
"""


@pytest.fixture
def start():
    """Starts programs, each with a process group of its own; what a failed test has left of them is killed."""
    started = []
    # Where the tests run in a shell's background interrupts are ignored, and programs inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def begin(*arguments):
        command = [sys.executable, *arguments]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(subprocess.Popen(command, start_new_session=True, **pipes))
        return started[-1]

    yield begin
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def finished(process):
    """The status and output of a process. They are complete when it and all that it started have let go of them."""
    out, errors = process.communicate(timeout=LIMIT)
    return process.returncode, out, errors


@pytest.mark.parametrize("how", ["file", "cells", "command", "runner"])
def test_what_lies_in_main_needs_no_guard_and_may_be_anything(how, tmp_path, start):
    """Classes of `__main__`, lambdas and closures reach workers, and come back as the program's own classes."""
    code = DEFINED_IN_MAIN
    if how in ("file", "runner"):
        path = tmp_path / "script.py"
        if how == "runner":  # `torch` means xtensor in modules that workers import, too
            (tmp_path / "mine.py").write_text("import torch\nbase = torch.utils.data.Dataset\n")
            code = code.replace("xtensor as torch", "torch, mine").replace("xtensor", "torch")
            code = code.replace("class Cells(Dataset)", "class Cells(mine.base)")
        path.write_text(code)
        arguments = [str(path)] if how == "file" else ["-m", "xtensor", str(path)]
    else:
        cut = code.index("class Cells")
        arguments = ["-c", code if how == "command" else CELLS.format(cells=(code[:cut], code[cut:]))]
    status, out, errors = finished(start(*arguments))
    assert (status, errors) == (0, "")
    assert json.loads(out) == EXPECTED


def test_a_traceback_of_a_worker_shows_the_lines_of_a_cell(start):
    cell = """
    from xtensor.utils.data import DataLoader, Dataset
    class Broken(Dataset):
        def __len__(self):
            return 1
        def __getitem__(self, i):
            raise ValueError("no sample here")  # this very line
    list(DataLoader(Broken(), num_workers=1))
    """
    status, _, errors = finished(start("-c", CELLS.format(cells=[textwrap.dedent(cell)])))
    assert status == 1
    assert 'File "<cell 0>", line 7, in __getitem__\n    raise ValueError("no sample here")' in errors
    assert "ValueError: Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most" in errors


WAITING = """
import os, sys, threading
from xtensor.utils.data import DataLoader, Dataset, pool

pool.PATIENCE = 0.1  # seconds

class Stuck(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        if i > 1:
            os.write(1, f"worker {os.getpid()} is busy\\n".encode())
            threading.Event().wait()
        return i

loader = DataLoader(Stuck(), num_workers=2, persistent_workers=True)
batches = iter(loader)
# In one write: what `print` writes in parts, workers write into.
os.write(1, f"{next(batches).item()} {next(batches).item()}\\n".encode())
"""


def busy(process):
    """Read until both workers of WAITING say that they will never answer; their process ids."""
    lines = sorted(process.stdout.readline() for _ in range(3))
    assert lines[0] == "0 1\n", lines
    return [int(line.split()[1]) for line in lines[1:]]


def test_an_interrupt_ends_the_program_and_its_workers(start):
    """Ctrl-C reaches the program, its server and its workers; one traceback, the program's, and nobody is left."""
    process = start("-c", WAITING + "next(batches)")
    workers = busy(process)
    os.killpg(process.pid, signal.SIGINT)
    status, out, errors = finished(process)
    assert (status, out) == (-signal.SIGINT, "")
    assert errors.count("Traceback") == 1 and errors.endswith("KeyboardInterrupt\n")
    assert not any(alive(worker) for worker in workers)


@pytest.mark.parametrize("end", ["return", "kill"])
def test_nobody_is_left_when_a_program_ends_with_a_live_iterator(end, start):
    """Workers that were never told to end do so when the program returns, or is killed."""
    # It returns once its input ends, which `finished` does: before, a worker may not have said yet that it is busy.
    process = start("-c", WAITING + ("threading.Event().wait()" if end == "kill" else "os.read(0, 1)"))
    workers = busy(process)
    if end == "kill":
        process.kill()
    status, _, errors = finished(process)
    assert (status, errors) == (-signal.SIGKILL if end == "kill" else 0, "")
    assert not any(alive(worker) for worker in workers)


# ---- what is sent --------------------------------------------------------------------------------------------------


def test_operators_run_in_workers():
    """XLA starts in a worker after the fork."""
    scale = xtensor.tensor([2.0, 3.0])
    loader = loaded(Numbers(8, lambda i: (xtensor.full((2,), float(i)) * scale).exp().sum()), batch_size=4)
    for _ in range(2):
        values = xtensor.cat(list(loader))
        expected = np.exp(np.arange(8)[:, None] * np.array([2.0, 3.0])).sum(1)
        np.testing.assert_allclose(values.numpy(), expected.astype(np.float32), rtol=1e-5)


def test_tensors_cross_in_every_form():
    base = xtensor.arange(24.0).view(4, 6)
    held = {
        "whole": base,
        "view": base.t()[1:3],
        "half": base.bfloat16(),
        "truth": base > 3,
        "long": xtensor.arange(5),
        "scalar": xtensor.tensor(2.5),
        "empty": xtensor.ones(0, 3),
        "large": xtensor.arange(100_000.0).double(),
        "leaf": xtensor.ones(2, requires_grad=True),
        "parameter": xtensor.nn.Parameter(xtensor.ones(3)),
        "meta": xtensor.ones(2, 3, device="meta"),
        "complex": xtensor.ones(2, dtype=xtensor.complex64) * 1j,
    }

    def get(name):
        value = held[name]
        assert value.is_meta or value.sum().isfinite()
        return name, value

    names = list(held)
    for name, value in loaded(Numbers(len(names), lambda i: get(names[i])), batch_size=None):
        like = held[name]
        assert type(value) is type(like) and value.dtype is like.dtype and value.shape == like.shape, name
        assert value.requires_grad == like.requires_grad and value.device == like.device, name
        if not value.is_meta:
            assert value.tolist() == like.tolist(), name
            value.detach().zero_()
            assert not value.any() and (name == "empty" or like.any())


def test_batches_may_be_written_and_share_nothing():
    large = np.ones(1 << 18, np.float32)
    batches = list(
        loaded(Numbers(4, lambda i: {"t": large * i, "a": i}), collate_fn=lambda s: (s[0], s[0]["t"]))
    )
    arrays = [batch["t"] for batch, _ in batches]
    for i, (batch, same) in enumerate(batches):
        assert same is batch["t"] and same.flags.writeable and same.sum() == i * large.size
        same += 1
    assert [array[-1] for array in arrays] == [1, 2, 3, 4]
    tensors = [batch["t"] for batch in loaded(Numbers(4, lambda i: {"t": large * i}))]
    for tensor in tensors:
        tensor.add_(1)
    del arrays, batches
    gc.collect()
    assert [tensor[0, -1].item() for tensor in tensors] == [1, 2, 3, 4]
    assert all(tensor.device == xtensor.device("cpu") for tensor in tensors)


def test_datasets_of_tensors_are_put_together_as_in_the_program():
    data = TensorDataset(xtensor.arange(40.0).view(10, 4), xtensor.arange(10), xtensor.ones(10, 3).t()[0])
    for options in (dict(batch_size=4), dict(batch_size=4, collate_fn=lambda s: s), dict(batch_size=None)):
        here, there = loaded(data, num_workers=0, **options), loaded(data, **options)
        for one, other in zip(here, there, strict=True):
            assert repr(one) == repr(other)


def test_samples_are_put_together_as_in_the_program():
    Point = collections.namedtuple("Point", "a b")
    samples = [
        lambda i: i,
        lambda i: i / 2,
        lambda i: bool(i % 2),
        lambda i: np.float32(i),
        lambda i: np.full((2, 2), i, np.int16),
        lambda i: xtensor.full((2,), float(i)),
        lambda i: xtensor.arange(6.0).view(2, 3)[:, i % 3],
        lambda i: {"x": [i, 2.0], "s": str(i)},
        lambda i: Point(i, np.ones(3)),
        lambda i: 2**62 + i,
    ]
    for sample in samples:
        here, there = (list(loaded(Numbers(5, sample), batch_size=2, num_workers=n)) for n in (0, 1))
        assert repr(here) == repr(there)


def test_a_process_without_mappings_to_spare_copies(monkeypatch):
    """Where memory cannot be mapped it is read, and where there is none without a name it goes through the pipe."""
    large = np.arange(1 << 17)
    loader = loaded(Numbers(3, lambda i: large + i), num_workers=1, batch_size=None)
    with monkeypatch.context() as patch:
        patch.setattr(transport, "_libc", SimpleNamespace(mmap=lambda *_: transport.FAILED))
        copied = list(loader)
    monkeypatch.setattr(transport, "MAPPING", False)
    sent = list(loader)
    for i in range(3):
        assert (copied[i].numpy() == large + i).all() and (sent[i].numpy() == large + i).all()


def test_functions_of_no_module():
    def doubled(i):
        return 2 * i

    doubled.__module__ = None
    assert [batch.item() for batch in loaded(Numbers(3, doubled))] == [0, 2, 4]


def test_what_multiprocessing_shares_with_spawned_processes_is_shared():
    context = multiprocessing.get_context("spawn")
    counter = context.Value("i", 0)

    def count(i):
        with counter.get_lock():
            counter.value += 1
        return i

    assert len(list(loaded(Numbers(10, count)))) == 10
    assert counter.value == 10


def test_what_cannot_be_sent_is_explained():
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"cannot pickle '_thread\.lock' object") as caught:
        iter(loaded(Numbers(2, lambda i: lock)))
    assert "worker_init_fn, or when it is first used" in caught.value.__notes__[0]
    with pytest.raises(TypeError, match="Caught TypeError in DataLoader worker process 0") as caught:
        next(iter(loaded(Numbers(2, lambda i: threading.Lock()), batch_size=None)))
    assert "cannot pickle '_thread.lock' object" in str(caught.value)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_every_start_method_starts_workers(method):
    for context in (method, multiprocessing.get_context(method)):
        loader = loaded(Numbers(3, lambda i: i + 1), num_workers=1, multiprocessing_context=context)
        assert [batch.item() for batch in loader] == [1, 2, 3]
        if method == "spawn":
            break


def test_modules_that_others_wrote_are_imported_once_for_all_workers(tmp_path, monkeypatch):
    """By the server, after the first pass; not the user's own, which may change, and none that starts XLA."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "starts_nothing.py").write_text("x = 1")
    (folder / "starts_xla.py").write_text("import jax.numpy as jnp\nx = int(jnp.ones(3).sum())")
    (tmp_path / "my_own.py").write_text("x = 5")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(tmp_path)
    names = ["starts_nothing", "starts_xla", "my_own"]
    modules = {name: importlib.import_module(name) for name in names}
    loader = loaded(Numbers(3, lambda i: modules[names[i]].x))
    for _ in range(2):
        assert [batch.item() for batch in loader] == [1, 3, 5]
        others = loaded(Numbers(3, lambda i: names[i] in sys.modules), num_workers=1)
        assert [batch.item() for batch in others] == [True, False, False]
    for name in names:
        monkeypatch.delitem(sys.modules, name)


# ---- seeds, streams, order -----------------------------------------------------------------------------------------


def drawn(i):
    return get_worker_info().seed, random.random(), np.random.rand(), xtensor.rand(()).item()  # noqa: NPY002


def test_seeds_of_workers(torch):
    """The seed is the base seed plus the number; Python's and NumPy's streams are those that PyTorch's workers have."""
    state = torch.utils.data._utils.worker._generate_state

    def rows():
        loader = loaded(Numbers(4, drawn), batch_size=None, generator=xtensor.Generator().manual_seed(5))
        return list(loader), list(loader)

    first, second = rows()
    assert rows() == (first, second)
    base = first[0][0]
    assert first[1][0] == base + 1 and second[0][0] not in (base, base + 1)
    for worker in range(2):
        seed, mine, numpys, _ = first[worker]
        assert mine == random.Random(seed).random()
        assert numpys == np.random.RandomState(state(base, worker)).rand()
    assert len({row[3] for row in first + second}) == 8


def test_the_order_does_not_depend_on_how_many_workers_there_are():
    orders = []
    for workers in (0, 1, 2):
        xtensor.manual_seed(3)
        loader = loaded(Numbers(), shuffle=True, batch_size=5, num_workers=workers)
        orders.append([[batch.tolist() for batch in loader] for _ in range(2)])
    assert orders[0] == orders[1] == orders[2]


def test_worker_info_and_init_function():
    seen = []

    def begin(i):
        info = get_worker_info()
        seen.append((i, info.id, info.num_workers))
        info.dataset.count = 100 + i

    class Told(Numbers):
        def __getitem__(self, i):
            return seen, self.count

    rows = list(loaded(Told(2), worker_init_fn=begin, collate_fn=lambda samples: samples[0]))
    assert rows == [([(0, 0, 2)], 100), ([(1, 1, 2)], 101)]
    assert seen == [] and get_worker_info() is None


def test_streams_end_one_by_one():
    """Workers take turns; one whose stream has ended is passed over."""

    class Uneven(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            yield from [range(5), range(10, 12)][info.id]

    loader = loaded(Uneven(), batch_size=2, persistent_workers=True)
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [[0, 1], [10, 11], [2, 3], [4]]


def test_persistent_workers_stay_and_others_go():
    staying = loaded(Numbers(6, lambda i: os.getpid()), persistent_workers=True)
    epochs = [{batch.item() for batch in staying} for _ in range(3)]
    assert epochs[0] == epochs[1] == epochs[2] and len(epochs[0]) == 2
    half = iter(staying)
    next(half)
    assert [batch.item() for batch in staying] == [batch.item() for batch in staying]
    workers = pids(staying._iterator)
    del staying, half
    gc.collect()
    assert not any(alive(pid) for pid in workers)
    going = loaded(Numbers(6, lambda i: os.getpid()))
    ids = [{batch.item() for batch in going} for _ in range(2)]
    assert not ids[0] & ids[1] and not any(alive(pid) for epoch in ids for pid in epoch)


def test_loaders_side_by_side_and_passes_within_passes():
    one, other = loaded(Numbers(4)), loaded(Numbers(4, lambda i: -i), prefetch_factor=1)
    assert [(a.item(), b.item()) for a, b in zip(one, other)] == [(i, -i) for i in range(4)]
    assert [(a.item(), b.item()) for a in one for b in one] == [(i, k) for i in range(4) for k in range(4)]
    results = []
    threads = [threading.Thread(target=lambda: results.append(len(list(one)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [4, 4, 4]


def test_batches_are_asked_for_ahead():
    """`prefetch_factor` batches a worker, no more; large indices do not block either side."""
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(loaded(Numbers(), prefetch_factor=0))
    context = multiprocessing.get_context("spawn")
    asked, gate = context.Value("i", 0), context.Semaphore(0)

    def get(i):
        with asked.get_lock():
            asked.value += 1
        if asked.value == 6:
            gate.release()
        return i

    batches = iter(loaded(Numbers(20, get), prefetch_factor=3, batch_size=None))
    assert gate.acquire(timeout=LIMIT) and asked.value == 6
    assert next(batches) == 0
    big = loaded(
        Numbers(10**6), batch_sampler=[list(range(100_000))] * 6, collate_fn=lambda s: np.array(s) + 0.5
    )
    assert [batch[-1] for batch in big] == [99_999.5] * 6


def test_whoever_is_first_where_order_does_not_matter():
    gate = multiprocessing.get_context("spawn").Semaphore(0)

    def get(i):
        if i == 0:
            gate.acquire()
        return i

    seen = []
    for batch in loaded(Numbers(4, get), in_order=False):
        seen.append(batch.item())
        if seen == [1]:
            gate.release()
    assert sorted(seen) == [0, 1, 2, 3] and seen[0] == 1


@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_fork_of_the_program_has_a_server_of_its_own():
    """It neither takes the program's workers with it when it ends nor waits for its server."""
    loader = loaded(Numbers(6, lambda i: os.getppid()), num_workers=1)
    batches = iter(loader)
    parent = next(batches).item()
    child = os.fork()
    if child == 0:
        os._exit(servers._Shared.server is not None or batches.pool.close() is not None)
    assert os.waitpid(child, 0)[1] == 0
    assert [batch.item() for batch in batches] == [parent] * 5
    assert [batch.item() for batch in loader] == [parent] * 6


# ---- errors and ends -----------------------------------------------------------------------------------------------


def test_errors_are_raised_with_the_workers_traceback(torch):
    class Own(Exception):
        pass

    class Awkward(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)

    def get(i):
        raise [ValueError("bad value"), KeyError("bad key"), Own("own"), Awkward(1, 2)][i]

    batches = iter(loaded(Numbers(4, get), num_workers=1))
    for kind, name, last in (
        (ValueError, "ValueError", "ValueError: bad value"),
        (KeyError, "KeyError", "KeyError: 'bad key'"),
        (Own, "Own", "Own: own"),
        (RuntimeError, "Awkward", "Awkward: (1, 2)"),
    ):
        with pytest.raises(kind) as caught:
            next(batches)
        text = str(caught.value)
        start = f"Caught {name} in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  File "
        assert text.startswith(start) and text.rstrip().endswith(last), text
        assert "in get\n    raise [ValueError" in text
    with pytest.raises(StopIteration):
        next(batches)
    with pytest.raises(ZeroDivisionError, match="Caught ZeroDivisionError in DataLoader worker process 1"):
        list(loaded(Numbers(), worker_init_fn=lambda i: 1 // (1 - i)))


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "is killed by signal: Killed. "),
        (lambda: os._exit(7), "exited unexpectedly with exit code 7. "),
        (lambda: sys.exit(3), "exited unexpectedly with exit code 3. "),
    ],
)
def test_a_worker_that_dies_is_an_error(end, why):
    def get(i):
        if i == 5:
            end()
        return i

    loader = loaded(Numbers(12, get), persistent_workers=True)
    for _ in range(2):
        batches = iter(loader)
        workers = pids(batches)
        with pytest.raises(
            RuntimeError, match=r"^DataLoader worker \(pid\(s\) \d+\) exited unexpectedly$"
        ) as caught:
            while True:
                next(batches)
        assert str(caught.value.__cause__) == f"DataLoader worker (pid {workers[1]}) {why}"
        assert not any(alive(pid) for pid in workers)
        with pytest.raises(StopIteration):
            next(batches)


def test_a_worker_killed_between_batches_and_a_killed_server():
    large = np.ones(1 << 20, np.float32)
    loader = loaded(Numbers(40, lambda i: large))
    before = set(os.listdir("/dev/shm"))
    batches = iter(loader)
    next(batches)
    os.kill(pids(batches)[0], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(batches)
    assert set(os.listdir("/dev/shm")) <= before
    batches = iter(loader)
    workers = pids(batches)
    servers.server().process.kill()
    assert len(list(batches)) == 40  # workers do not need it
    assert len(list(loaded(Numbers(4)))) == 4
    assert not any(alive(pid) for pid in workers)


def test_a_late_worker():
    loader = loaded(Numbers(2, lambda i: threading.Event().wait()), timeout=0.1)
    batches = iter(loader)
    workers = pids(batches)
    with pytest.raises(RuntimeError, match=r"^DataLoader timed out after 0\.1 seconds$"):
        next(batches)
    assert not any(alive(pid) for pid in workers)


def test_descriptors_and_mappings_are_given_back():
    large = np.ones(1 << 16, np.float32)
    loader = loaded(Numbers(30, lambda i: large))
    list(loader)
    gc.collect()

    def held():
        with open("/proc/self/maps") as file:
            return len(os.listdir("/proc/self/fd")), sum("memfd:xtensor" in line for line in file)

    before = held()
    batches = list(loader)
    assert held() == (before[0], before[1] + 30)
    del batches
    gc.collect()
    assert held() == before
