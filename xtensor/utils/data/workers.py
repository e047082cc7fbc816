"""The life of a worker process of a DataLoader: indices in, batches out, until the program says so or is gone."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import random
import sys
import threading
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ... import dtypes
from ...interop.alias import install, is_installed, uninstall
from ...operators.generator import manual_seed
from .fetch import Fetcher, fetcher_for
from .late import in_worker
from .transport import pack, send, unpack_in_worker

__all__ = ["Ended", "Failure", "Settings", "WorkerInfo", "get_worker_info", "surroundings", "work"]


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker process knows of itself; `dataset` is its own copy."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here:
    info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process of a DataLoader, its number and its copy of the dataset; None elsewhere."""
    return _Here.info


@dataclass(frozen=True)
class Settings:
    """What a worker is, beside the dataset and the functions of its loader."""

    id: int
    num_workers: int
    base_seed: int
    together: bool
    drop_last: bool


@dataclass(frozen=True)
class Failure:
    """An exception in a worker, which the loader raises again with the worker's traceback."""

    kind: type[BaseException]
    text: str
    where: str

    def error(self) -> BaseException:
        """The exception to raise in the program."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if issubclass(self.kind, KeyError):
            message = Lines(message)
        try:
            return self.kind(message)
        except Exception:  # exceptions that take other arguments
            return RuntimeError(message)


class Lines(str):
    """A message that a KeyError, which shows the `repr` of what it is given, shows as it is."""

    def __repr__(self) -> str:
        return str(self)


class Ended:
    """Stands for the batch of a stream that has ended."""


def failure(settings: Settings, error: BaseException) -> Failure:
    text = "".join(traceback.format_exception(error))
    return Failure(type(error), text, f"in DataLoader worker process {settings.id}")


# ---- what a worker has of the program's surroundings ---------------------------------------------------------------


def surroundings() -> dict[str, Any]:
    """What of this process a worker needs before anything of the program's can be imported there."""
    process: Any = multiprocessing.current_process()
    return {
        "path": sys.path,
        "argv": sys.argv,
        "folder": _folder(),
        "environment": dict(os.environ),
        "authkey": bytes(process.authkey),
        "torch": is_installed(),
        "dtype": str(dtypes.get_default_dtype()).rpartition(".")[2],
    }


def _folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def settle(found: dict[str, Any]) -> None:
    """Be in the surroundings of the program. Workers make batches on the CPU and leave accelerators to it."""
    sys.path[:] = found["path"]
    sys.argv[:] = found["argv"]
    if found["folder"] is not None:
        with contextlib.suppress(OSError):  # it has been removed
            os.chdir(found["folder"])
    environment = found["environment"] | {"JAX_PLATFORMS": "cpu"}
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)
    process: Any = multiprocessing.current_process()
    process.authkey = found["authkey"]
    dtypes.set_default_dtype(getattr(dtypes, found["dtype"]))
    if found["torch"]:
        install()
    else:
        uninstall()


def seed_everything(settings: Settings) -> int:
    """Seed what datasets draw from, each worker's stream its own, and give the seed."""
    seed = settings.base_seed + settings.id
    random.seed(seed)
    manual_seed(seed)
    words = [settings.id, settings.base_seed % 2**32, settings.base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))  # noqa: NPY002  # what datasets draw from
    return seed


# ---- work ----------------------------------------------------------------------------------------------------------


class Tasks:
    """What the program asks for, read by a thread: the program never waits, and a worker that it leaves ends at once."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.oldest = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        while True:
            try:
                task = self.connection.recv()
            except (EOFError, OSError):
                os._exit(1)
            if task is None:
                self.oldest = sys.maxsize
            elif task[0] == "pass":
                self.oldest = task[1]
            self.queue.put(task)


def work(connection: Connection) -> None:
    """Answer `(number, index)` with `(number, batch)` until None comes; `("pass", number)` begins another pass."""
    in_worker()
    settings: Settings = connection.recv()
    settle(connection.recv())
    problem: Failure | None = None
    dataset: Any = None
    collate_fn: Any = None
    fetcher: Fetcher | None = None
    known: dict[type, tuple[int, int]] = {}
    try:
        (dataset, collate_fn, init_fn), known = unpack_in_worker(connection)
        seed = seed_everything(settings)
        _Here.info = WorkerInfo(settings.id, settings.num_workers, seed, dataset)
        if init_fn is not None:
            init_fn(settings.id)
    except Exception as error:
        problem = failure(settings, error)
    tasks = Tasks(connection)
    while (task := tasks.queue.get()) is not None:
        if task[0] == "pass":
            fetcher = None
            continue
        number, index = task
        if number < tasks.oldest:  # asked for by a pass that was left
            continue
        result: Any = problem
        if problem is None:
            try:
                if fetcher is None:
                    fetcher = fetcher_for(dataset, settings.together, collate_fn, settings.drop_last)
                result = fetcher.fetch(index)
            except StopIteration:
                result = Ended()
            except Exception as error:
                result = failure(settings, error)
        if number >= tasks.oldest:
            answer(connection, settings, known, number, result)
        result = None


def answer(connection: Connection, settings: Settings, known: Any, number: int, result: Any) -> None:
    """Send a batch, or why it cannot be sent."""
    try:
        packed = pack((number, result), known)
    except Exception as error:
        packed = pack((number, failure(settings, error)), known)
    try:
        send(connection, packed)
    except (BrokenPipeError, ConnectionResetError):
        os._exit(1)


def live(connection: Connection) -> int:
    """A worker's life in this process, and its exit status."""
    try:
        work(connection)
        status = 0
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the program is gone
        status = 1
    except SystemExit as leaving:
        code = leaving.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
        status = code if isinstance(code, int) else int(code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    return status
