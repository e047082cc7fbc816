"""Worker processes of a DataLoader: each takes indices from its queue, and puts batches into a common one."""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
import threading
import traceback
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...operators.generator import manual_seed
from .dataset import IterableDataset
from .fetch import fetcher_for

__all__ = ["WorkerInfo", "WorkerPool", "get_worker_info"]

STATUS_INTERVAL = 5.0  # seconds between looks at whether the other side is alive


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
    """What a worker is started with."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    together: bool
    collate_fn: Any
    drop_last: bool
    init_fn: Any


@dataclass(frozen=True)
class Failure:
    """An exception in a worker, which the loader raises again with the worker's traceback."""

    kind: type[BaseException]
    text: str
    where: str

    def error(self) -> BaseException:
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            return KeyError(message)
        try:
            return self.kind(message)
        except Exception:  # exceptions that take other arguments
            return RuntimeError(message)


class Ended:
    """Stands for the batch of a stream that has ended."""


def failure(where: str, error: BaseException) -> Failure:
    return Failure(type(error), "".join(traceback.format_exception(error)), where)


def work(settings: Settings, indices: Any, batches: Any) -> None:
    """The life of a worker process: `(number, index)` in, `(number, worker, batch)` out, until None comes."""
    where = f"in DataLoader worker process {settings.id}"
    problem = None
    fetcher = None
    try:
        random.seed(settings.seed)
        np.random.seed(settings.seed % 2**32)  # noqa: NPY002  # what datasets draw from
        manual_seed(settings.seed)
        _Here.info = WorkerInfo(settings.id, settings.num_workers, settings.seed, settings.dataset)
        if settings.init_fn is not None:
            settings.init_fn(settings.id)
    except Exception as error:
        problem = failure(where, error)
    parent = os.getppid()
    while os.getppid() == parent:
        try:
            task = indices.get(timeout=STATUS_INTERVAL)
        except queue.Empty:
            continue
        if task is None:
            break
        number, index = task
        if number < 0:  # a new pass
            fetcher = None
            continue
        result: Any = problem
        if problem is None:
            try:
                if fetcher is None:
                    fetcher = fetcher_for(
                        settings.dataset, settings.together, settings.collate_fn, settings.drop_last
                    )
                result = fetcher.fetch(index)
            except StopIteration:
                result = Ended()
            except Exception as error:
                result = failure(where, error)
        batches.put((number, settings.id, result))


_starting = threading.Lock()


def start_on_cpu(process: Any) -> None:
    """Start a worker that leaves accelerators to the program."""
    with _starting:
        before = os.environ.get("JAX_PLATFORMS")
        os.environ["JAX_PLATFORMS"] = "cpu"
        try:
            process.start()
        finally:
            if before is None:
                del os.environ["JAX_PLATFORMS"]
            else:
                os.environ["JAX_PLATFORMS"] = before


class WorkerPool:
    """The workers of one loader, and the batches that they were asked for and that have come."""

    def __init__(self, loader: Any, seed: int) -> None:
        context = loader.multiprocessing_context or multiprocessing.get_context("spawn")
        self.ahead = loader.prefetch_factor * loader.num_workers
        self.timeout = loader.timeout
        self.in_order = loader.in_order
        self.stream = isinstance(loader.dataset, IterableDataset)
        self.batches = context.Queue()
        self.queues = []
        self.workers = []
        for i in range(loader.num_workers):
            settings = Settings(
                i,
                loader.num_workers,
                seed + i,
                loader.dataset,
                loader._auto_collation,
                loader.collate_fn,
                loader.drop_last,
                loader.worker_init_fn,
            )
            indices = context.Queue()
            process = context.Process(target=work, args=(settings, indices, self.batches), daemon=True)
            start_on_cpu(process)
            self.queues.append(indices)
            self.workers.append(process)
        self.close = weakref.finalize(self, shut_down, self.workers, self.queues, self.batches)
        self.outstanding: dict[int, int] = {}
        self.arrived: dict[int, Any] = {}
        self.number = self.next = 0
        self.indices: Iterator[Any] = iter(())

    def restart(self, indices: Iterator[Any]) -> None:
        """Begin a pass: what is left of the last one is thrown away."""
        while self.outstanding:
            number, _, _ = self._receive()
            self.outstanding.pop(number, None)
        self.arrived.clear()
        self.indices = indices
        self.next = self.number
        self.turn = 0
        self.live = list(range(len(self.workers)))
        for q in self.queues:
            q.put((-1, None))
        for _ in range(self.ahead):
            self._ask()

    def _ask(self) -> None:
        """Give the next index to the worker whose turn it is."""
        if not self.live:
            return
        try:
            index = next(self.indices)
        except StopIteration:
            return
        worker = self.live[self.turn % len(self.live)]
        self.turn += 1
        self.outstanding[self.number] = worker
        self.queues[worker].put((self.number, index))
        self.number += 1

    def take(self) -> Any:
        """The next batch, in the order asked for unless the loader said otherwise; StopIteration after the last."""
        while True:
            if self.in_order:
                while (
                    self.next < self.number
                    and self.next not in self.outstanding
                    and self.next not in self.arrived
                ):
                    self.next += 1  # the place of a stream that had ended
                number = self.next
            else:
                number = next(iter(self.arrived), self.next)
            if number in self.arrived:
                batch = self.arrived.pop(number)
                self.next += self.in_order
                self._ask()
                if isinstance(batch, Failure):
                    raise batch.error()
                return batch
            if not self.outstanding:
                raise StopIteration
            number, worker, batch = self._receive()
            del self.outstanding[number]
            if isinstance(batch, Ended):
                if worker in self.live:
                    self.live.remove(worker)
                self._ask()
            else:
                self.arrived[number] = batch

    def _receive(self) -> tuple[int, int, Any]:
        waited = 0.0
        while True:
            step = min(STATUS_INTERVAL, self.timeout) if self.timeout else STATUS_INTERVAL
            try:
                return self.batches.get(timeout=step)
            except queue.Empty:
                waited += step
            dead = [str(w.pid) for w in self.workers if not w.is_alive()]
            if dead:
                self.close()
                raise RuntimeError(f"DataLoader worker (pid(s) {', '.join(dead)}) exited unexpectedly")
            if self.timeout and waited >= self.timeout:
                raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")


def shut_down(workers: list[Any], queues: list[Any], batches: Any) -> None:
    """Ask the workers to end, and end those that do not."""
    for q in queues:
        try:
            q.put(None)
        except (OSError, ValueError):  # closed already
            pass
    for worker in workers:
        worker.join(timeout=1.0)
        if worker.is_alive():
            worker.terminate()
            worker.join()
    for q in (*queues, batches):
        q.cancel_join_thread()
        q.close()
