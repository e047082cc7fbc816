"""One backward pass: what is to run, how many gradients each node still waits for, and what has arrived."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from .graph import EdgeTuple, Node, name_of

__all__ = [
    "GraphTask",
    "InputBuffer",
    "current_task_id",
    "is_complete",
    "is_executing",
    "local",
    "queue_callback",
    "should_compute",
    "will_execute",
]

_task_ids = itertools.count()


class InputBuffer(list[Any]):
    """A node's incoming gradients, one place per output of its operator; None until the first arrives."""

    __slots__ = ()

    def add(self, slot: int, grad: Any) -> None:
        """Sum `grad` into a place, in the order of arrival."""
        if grad is not None:
            before = self[slot]
            self[slot] = grad if before is None else before + grad


class GraphTask:
    """The state of one call of the engine.

    `needed` is None when the whole graph runs; else it holds the nodes to run, and `captures` names the incoming
    gradients to hand back: `{node: [(slot, index of the result)]}`.
    """

    __slots__ = (
        "__weakref__",
        "callbacks",
        "captured",
        "captures",
        "dependencies",
        "devices",
        "id",
        "keep_graph",
        "needed",
        "not_ready",
        "root",
    )

    def __init__(self, root: Node, keep_graph: bool) -> None:
        self.id = next(_task_ids)
        self.root = root
        self.keep_graph = keep_graph
        self.not_ready: dict[Node, InputBuffer] = {}
        self.needed: set[Node] | None = None
        self.captures: dict[Node, list[tuple[int, int]]] | None = None
        self.captured: list[Any] = []
        self.callbacks: list[Callable[[], None]] | None = None
        self.dependencies: dict[Node, int]
        self.devices: set[Any]
        self._scan(root)

    def _scan(self, root: Node) -> None:
        """Count for every node below `root` the edges that lead to it; nodes stay in the table at zero."""
        self.dependencies = counts = {root: 0}
        self.devices = devices = {root._xt_device}
        stack = [root]
        while stack:
            for edge in stack.pop()._xt_edges:
                if edge is not None:
                    node = edge[0]
                    if node in counts:
                        counts[node] += 1
                    else:
                        counts[node] = 1
                        devices.add(node._xt_device)
                        stack.append(node)

    def restrict(self, outputs: tuple[EdgeTuple | None, ...], accumulate: bool) -> None:
        """Run only what leads to `outputs`; None stands for an edge that no graph reaches.

        With `accumulate` the nodes of the outputs run themselves; without, their incoming gradients are captured.
        """
        self.captures = captures = {}
        self.captured = [None] * len(outputs)
        wanted: set[Node] = set()
        for index, edge in enumerate(outputs):
            if edge is not None:
                wanted.add(edge[0])
                if not accumulate:
                    captures.setdefault(edge[0], []).append((edge[1], index))
        self.needed = needed = set(wanted) if accumulate else set()
        seen = {self.root}
        stack = [(self.root, iter(self.root._xt_edges))]
        while stack:
            node, rest = stack[-1]
            for edge in rest:
                if edge is None:
                    continue
                child = edge[0]
                if child not in seen:
                    seen.add(child)
                    stack.append((child, iter(child._xt_edges)))
                    break
                if child in needed or child in wanted:
                    needed.add(node)
            else:
                stack.pop()
                if stack and (node in needed or node in wanted):
                    needed.add(stack[-1][0])

    def route(self, node: Node, outputs: Any, push: Callable[[Node, Sequence[Any]], None]) -> None:
        """Send a node's results along its edges, and `push` each node that now has all it waits for."""
        counts = self.dependencies
        not_ready = self.not_ready
        whole = self.needed is None
        for edge, grad in zip(node._xt_edges, outputs):
            if edge is None:
                continue
            target, slot = edge
            try:
                counts[target] = left = counts[target] - 1
            except KeyError:
                raise RuntimeError(f"dependency not found for {name_of(target)}") from None
            if target in not_ready:
                not_ready[target].add(slot, grad)
                if not left:
                    push(target, not_ready.pop(target))
            elif whole or self.should_execute(target):
                size = target._xt_num_inputs
                grads = (grad,) if size == 1 else (*(None,) * slot, grad, *(None,) * (size - slot - 1))
                if left:
                    not_ready[target] = InputBuffer(grads)
                else:
                    push(target, grads)

    def should_execute(self, node: Node) -> bool:
        """Whether the node runs, or its incoming gradient is captured."""
        needed = self.needed
        return needed is None or node in needed or node in self.captures  # pyright: ignore[reportOperatorIssue]

    def finish(self) -> None:
        """Run the final callbacks, which may queue more."""
        if self.not_ready:
            raise RuntimeError("could not compute gradients for some functions")
        if self.callbacks is not None:
            for callback in self.callbacks:
                callback()


class _Local(threading.local):
    """What a thread is running: its graph task, node (anomaly mode), depth, and queue where it is a worker."""

    task: GraphTask | None = None
    node: Node | None = None
    depth: int = 0
    queue: Any = None
    device: Any = None


local = _Local()


def current_task_id() -> int:
    """The number of the backward pass this thread works for, or -1."""
    return -1 if local.task is None else local.task.id


def is_executing() -> bool:
    """Whether this thread is inside a backward pass."""
    return local.task is not None


def will_execute(node: Node) -> bool:
    """Whether the current backward pass runs `node` or captures its gradient."""
    task = local.task
    if task is None:
        raise RuntimeError("will_execute can only be called during the backward pass.")
    return node in task.dependencies and task.should_execute(node)


def is_complete() -> bool:
    """Whether no backward pass runs, or one that runs its whole graph."""
    return local.task is None or local.task.needed is None


def should_compute(node: Node, index: int) -> bool:
    """Whether the current backward pass has a use for what `node` sends along its edge `index`."""
    edge = node._xt_edges[index]
    if edge is None:
        return False
    return local.task is None or local.task.should_execute(edge[0])


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback()` when the current backward pass has finished, in the thread that started it."""
    task = local.task
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if task.callbacks is None:
        task.callbacks = []
    task.callbacks.append(callback)
