"""The workers of one DataLoader, and the batches that they were asked for and that have come."""

from __future__ import annotations

import os
import pickle
import signal
import time
import weakref
from collections.abc import Iterator
from multiprocessing import connection as connections
from typing import Any

from .server import LAST_WORD, Worker, suggest
from .transport import forget, pack_for_workers, receive
from .workers import Ended, Settings, surroundings

__all__ = ["WorkerPool"]

PATIENCE = 5.0  # seconds for a worker to finish the batch that it is at

NOT_SENT = (
    "DataLoader's worker processes are not forks of this one (XLA's threads do not survive a fork): dataset, collate_fn "
    "and worker_init_fn are sent to them by cloudpickle. What cannot be sent, such as an open file, a lock or a generator, is "
    "best made in the worker: in worker_init_fn, or when it is first used."
)


class WorkerPool:
    """Asks its workers for batches ahead, and hands them out in order."""

    def __init__(self, loader: Any, base_seed: int) -> None:
        if loader.prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        context = loader.multiprocessing_context
        method = None if context is None else context.get_start_method()
        self.ahead = loader.prefetch_factor * loader.num_workers
        self.timeout = loader.timeout
        self.in_order = loader.in_order
        self.outstanding: dict[int, int] = {}
        self.arrived: dict[int, Any] = {}
        self.number = self.next = self.first = 0
        self.indices: Iterator[Any] = iter(())
        self.workers: list[Worker] = []
        self.token: list[int] = []
        self.owner = os.getpid()
        self._finish = weakref.finalize(self, shut_down, self.workers, self.token, PATIENCE, self.owner)
        try:
            for _ in range(loader.num_workers):
                self.workers.append(Worker(method))
            self._send_settings(loader, base_seed)
        except BaseException:
            self.close(0)
            raise

    def _send_settings(self, loader: Any, base_seed: int) -> None:
        try:
            packed, token, modules = pack_for_workers(
                loader.dataset, loader.collate_fn, loader.worker_init_fn
            )
        except Exception as error:
            error.add_note(NOT_SENT)
            raise
        self.token.append(token)
        around = surroundings()
        try:
            for i, worker in enumerate(self.workers):
                settings = Settings(
                    i, loader.num_workers, base_seed, loader._auto_collation, loader.drop_last
                )
                try:
                    worker.connection.send(settings)
                    worker.connection.send(around)
                    packed.send(worker.connection)
                except (BrokenPipeError, ConnectionResetError):
                    self._gone([i])
        finally:
            packed.close()
        suggest(modules)

    def restart(self, indices: Iterator[Any]) -> None:
        """Begin a pass: what is left of the last one is thrown away."""
        self.outstanding.clear()
        self.arrived.clear()
        self.indices = indices
        self.first = self.next = self.number
        self.turn = 0
        self.live = [True] * len(self.workers)
        for i in range(len(self.workers)):
            self._tell(i, ("pass", self.first))
        for _ in range(self.ahead):
            self._ask()

    def _tell(self, i: int, task: Any) -> None:
        try:
            self.workers[i].connection.send(task)
        except (BrokenPipeError, ConnectionResetError):
            self._gone([i])

    def _ask(self) -> None:
        """Give the next index to the worker whose turn it is."""
        if not any(self.live):
            return
        try:
            index = next(self.indices)
        except StopIteration:
            return
        while not self.live[self.turn % len(self.live)]:
            self.turn += 1
        worker = self.turn % len(self.live)
        self.turn += 1
        self.outstanding[self.number] = worker
        self.number += 1
        self._tell(worker, (self.number - 1, index))

    def take(self) -> Any:
        """The next batch, or a Failure in its place; StopIteration after the last.

        They come in the order asked for, unless the loader said otherwise.
        """
        limit = time.monotonic() + self.timeout if self.timeout else None
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
                return batch
            if not self.outstanding:
                raise StopIteration
            number, batch = self._receive(limit)
            worker = self.outstanding.pop(number, None)
            if worker is None:  # of a pass that was left
                continue
            if isinstance(batch, Ended):
                self.live[worker] = False
                self._ask()
            else:
                self.arrived[number] = batch

    def _receive(self, limit: float | None) -> tuple[int, Any]:
        waiting = {self.workers[i].connection: i for i in sorted(set(self.outstanding.values()))}
        left = None if limit is None else max(0.0, limit - time.monotonic())
        ready: Any = connections.wait(list(waiting), left)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")
        try:
            data, buffers = receive(ready[0])
        except (EOFError, ConnectionResetError):
            self._gone([waiting[ready[0]]])
            raise
        return pickle.loads(data, buffers=buffers)

    def _gone(self, which: list[int]) -> None:
        """Raise what there is to say of workers that have ended without being asked to."""
        workers = [self.workers[i] for i in which]
        pids = ", ".join(str(worker.pid) for worker in workers)
        status = workers[0].end(LAST_WORD)
        message = f"DataLoader worker (pid(s) {pids}) exited unexpectedly"
        if status is None:
            raise RuntimeError(message)
        if status < 0:
            how = f"is killed by signal: {signal.strsignal(-status)}. "
        else:
            how = f"exited unexpectedly with exit code {status}. "
        raise RuntimeError(message) from RuntimeError(f"DataLoader worker (pid {pids}) {how}")

    def close(self, patience: float = PATIENCE) -> None:
        """End the workers: there are no more batches."""
        self.outstanding.clear()
        self.arrived.clear()
        self.indices = iter(())
        if self._finish.detach() is not None:
            shut_down(self.workers, self.token, patience, self.owner)


def shut_down(workers: list[Worker], token: list[int], patience: float, owner: int) -> None:
    """Ask the workers to end, and end those that do not."""
    if os.getpid() != owner:  # a fork of the program, whose workers they are not
        return
    for number in token:
        forget(number)
    for worker in workers:
        try:
            worker.connection.send(None)
        except OSError:  # it has ended
            pass
    limit = time.monotonic() + patience
    talking: dict[Any, Worker] = {worker.connection: worker for worker in workers}
    while talking and (ready := connections.wait(list(talking), max(0.0, limit - time.monotonic()))):
        for connection in ready:
            if drained(connection):
                talking.pop(connection).end(LAST_WORD)
    for worker in talking.values():
        worker.end(0)
    for worker in workers:
        worker.connection.close()
    workers.clear()


def drained(connection: Any) -> bool:
    """Read what nobody wants any more; whether that was all, since the other side has ended."""
    try:
        if os.name == "nt":
            connection.recv_bytes()
            return False
        return not os.read(connection.fileno(), 1 << 20)
    except (EOFError, OSError):
        return True
