"""Threads of the engine: one worker per device for graphs that span several, and fresh stacks for deep re-entry."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from .graph import Gradients, Node
from .modes import restore, snapshot
from .task import GraphTask, local

__all__ = ["ReadyQueue", "SharedTask", "drive", "in_fresh_thread"]

Work = Callable[[GraphTask, Node, Sequence[Any]], Gradients]

_ticks = itertools.count()


class SharedTask:
    """A graph task that several threads work on; `lock` guards its tables and the fields here."""

    __slots__ = (
        "depth",
        "done",
        "error",
        "lock",
        "modes",
        "outstanding",
        "queue",
        "place",
        "queue_of",
        "task",
        "work",
    )

    def __init__(
        self,
        task: GraphTask,
        queue: ReadyQueue,
        queue_of: Callable[[Any], ReadyQueue],
        work: Work,
        place: Callable[[Node, Sequence[Any]], Any],
    ):
        self.place = place
        self.task = task
        self.queue = queue
        self.queue_of = queue_of
        self.work = work
        self.depth = local.depth
        self.modes = snapshot()
        self.lock = threading.Lock()
        self.outstanding = 0
        self.done = False
        self.error: BaseException | None = None

    def push(self, node: Node, grads: Sequence[Any]) -> None:
        """Queue a ready node with its device's worker; the caller holds the lock."""
        self.outstanding += 1
        self.queue_of(self.place(node, grads)).push(self, node, grads)

    def process(self, node: Node, grads: Sequence[Any], queue: ReadyQueue) -> None:
        """Run one node on this thread in the modes of the pass, and wake the owner after the last."""
        if self.error is None:
            modes = snapshot()
            restore(self.modes)
            try:
                outputs = self.work(self.task, node, grads)
                with self.lock:
                    self.task.route(node, outputs, self.push)
            except BaseException as error:
                with self.lock:
                    self.error = self.error or error
            finally:
                restore(modes)
        with self.lock:
            self.outstanding -= 1
            self.done = not self.outstanding
        if self.done and queue is not self.queue:
            self.queue.wake()


class ReadyQueue:
    """Ready nodes of any number of passes: the deepest re-entrant pass first, then the highest sequence number."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, SharedTask | None, Any, Any]] = []
        self._guard = threading.Lock()  # see `xla/pending.py: Workers`
        self._changed = threading.Condition(self._guard)

    def push(self, shared: SharedTask, node: Node, grads: Sequence[Any]) -> None:
        """Add a ready node."""
        with self._guard:
            heappush(self._heap, (-shared.depth, -node._xt_sequence_nr, next(_ticks), shared, node, grads))
            self._changed.notify()

    def wake(self) -> None:
        """Make the serving thread look whether what it waits for is done."""
        with self._guard:
            heappush(self._heap, (1, 0, next(_ticks), None, None, None))
            self._changed.notify()

    def serve(self, until: SharedTask | None = None) -> None:
        """Run what is queued until that pass is done; a device's worker serves forever."""
        while until is None or not until.done:
            with self._guard:
                while not self._heap:
                    self._changed.wait()
                item = heappop(self._heap)
            self._run(item)
            # While waiting for the next item the frame must not keep this one's gradients alive.
            del item

    def _run(self, item: tuple[int, int, int, SharedTask | None, Any, Any]) -> None:
        shared = item[3]
        if shared is not None:
            shared.process(item[4], item[5], self)


_queues: dict[Any, ReadyQueue] = {}
_starting = threading.Lock()


def drive(
    task: GraphTask,
    root: Node,
    start: Sequence[Any],
    home: Any,
    work: Work,
    place: Callable[[Node, Sequence[Any]], Any],
) -> None:
    """Run a task whose nodes are of several devices; this thread serves `home` and nodes of no device."""
    # A worker that re-enters keeps serving its own queue, or passes that wait on each other would lock up.
    own = local.queue or ReadyQueue()

    def queue_of(device: Any) -> ReadyQueue:
        return own if device is None or device == home else _device_queue(device)

    shared = SharedTask(task, own, queue_of, work, place)
    with shared.lock:
        shared.push(root, start)
    try:
        own.serve(until=shared)
    except BaseException as error:
        with shared.lock:
            shared.error = shared.error or error
        raise
    if shared.error is not None:
        try:
            raise shared.error
        finally:
            shared.error = None


def _device_queue(device: Any) -> ReadyQueue:
    """The queue of a device's worker, which starts when a graph first needs it."""
    queue = _queues.get(device)
    if queue is None:
        with _starting:
            queue = _queues.get(device)
            if queue is None:
                queue = ReadyQueue()
                name = f"xtensor backward {device}"
                threading.Thread(target=_serve_device, args=(device, queue), name=name, daemon=True).start()
                _queues[device] = queue
    return queue


def _serve_device(device: Any, queue: ReadyQueue) -> None:
    local.device = device
    local.queue = queue
    queue.serve()


class _Fresh:
    """A pooled thread with an empty stack; it takes the modes and the place of the thread that waits for it."""

    idle: list[_Fresh] = []
    max_idle = 16

    def __init__(self) -> None:
        self.given = threading.Semaphore(0)
        self.call: Callable[[], None] | None = None
        threading.Thread(target=self._loop, name="xtensor backward, nested", daemon=True).start()

    def _loop(self) -> None:
        while True:
            self.given.acquire()
            call, self.call = self.call, None
            if call is None:
                return
            call()
            del call

    def put_back(self) -> None:
        """Wait for the next call, or end if enough threads are waiting."""
        if len(_Fresh.idle) < _Fresh.max_idle:
            _Fresh.idle.append(self)
        else:
            self.given.release()


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    global _starting
    _starting = threading.Lock()
    _queues.clear()
    _Fresh.idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def in_fresh_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call `function(*args)` on a thread whose stack is empty while this one waits; errors come back here."""
    modes = snapshot()
    place = local.task, local.node, local.depth, local.queue, local.device
    outcome: list[Any] = []
    finished = threading.Semaphore(0)

    def call() -> None:
        try:
            restore(modes)
            local.task, local.node, local.depth, local.queue, local.device = place
            outcome.append(function(*args))
        except BaseException as error:
            outcome.append(None)
            outcome.append(error)
        finally:
            local.task = local.node = local.queue = local.device = None
            local.depth = 0
            finished.release()

    try:
        thread = _Fresh.idle.pop()
    except IndexError:
        thread = _Fresh()
    thread.call = call
    thread.given.release()
    del call
    finished.acquire()
    thread.put_back()
    if len(outcome) == 2:
        try:
            raise outcome[1]
        finally:
            outcome.clear()
    return outcome[0]
