"""Executors: whatever turns root gradients into accumulated or captured ones. Here the interpreter, node by node.

The walk: count dependencies, queue the root, then take the ready node with the highest sequence number, run its
hooks and its `apply`, send the results along its edges, and queue the nodes that now have all their gradients.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol

from . import anomaly, profiler
from .graph import EdgeTuple, Gradients, GraphRoot, Node, NodeMeta, name_of
from .handles import HookDict
from .modes import ANOMALY, NO_GRAD, PROFILING, state
from .task import GraphTask, InputBuffer, local
from .workers import drive, in_fresh_thread

__all__ = ["Executor", "Fallback", "Interpreter", "InvalidGradient", "execution_order", "running_node"]


class InvalidGradient(Exception):
    """Raised by a `validate` rule with the detail only, as in "got [3] but expected shape compatible with [2]"."""


class Fallback:
    """Returned by an executor that declines a graph, having done nothing yet; the next executor takes it."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Executor(Protocol):
    """Runs backward over a graph."""

    name: str

    def run(
        self,
        roots: tuple[EdgeTuple, ...],
        grads: Gradients,
        inputs: tuple[EdgeTuple | None, ...] | None,
        keep_graph: bool,
        create_graph: bool,
        accumulate: bool,
    ) -> Gradients | Fallback:
        """Send `grads` from `roots`; return the gradients captured at `inputs` (none where `accumulate`)."""
        ...


def _accept(node: Node, slot: int, grad: Any) -> Any:
    return grad


def _accept_hook(original: Any, result: Any, name: str) -> None:
    if original is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")


def _never(grad: Any) -> bool:
    return False


def _own_device(node: Node, grads: Sequence[Any]) -> Any:
    return node._xt_device


class Interpreter:
    """The reference executor.

    The layer that knows what a gradient is supplies the rules: `validate(node, slot, grad)` returns the gradient fit
    for the node's incoming place (summed, cast) or raises `InvalidGradient`; `is_nan(grad)` for anomaly mode;
    `check_hook(original, result, hook_name)` raises where a hook's replacement does not fit; `place(node, grads)` is
    the device whose worker runs a node, asked where the nodes' own `device` names several. A graph of one device runs
    on the calling thread; of several, that thread serves `home` (or the first root's device) and each other device
    has a worker.
    """

    name = "interpreter"

    def __init__(
        self,
        validate: Callable[[Node, int, Any], Any] = _accept,
        is_nan: Callable[[Any], bool] = _never,
        check_hook: Callable[[Any, Any, str], None] = _accept_hook,
        home: Any = None,
        place: Callable[[Node, Sequence[Any]], Any] = _own_device,
    ) -> None:
        self.place = place
        self.validate = validate
        self.is_nan = is_nan
        self.check_hook = check_hook
        self.home = home

    def run(
        self,
        roots: tuple[EdgeTuple, ...],
        grads: Gradients,
        inputs: tuple[EdgeTuple | None, ...] | None,
        keep_graph: bool,
        create_graph: bool,
        accumulate: bool,
    ) -> Gradients:
        """Run the graph below `roots`; see `Executor.run`."""
        outer = local.task
        if outer is not None and _stack_is_deep():
            return in_fresh_thread(self.run, roots, grads, inputs, keep_graph, create_graph, accumulate)
        grads = self._validate(None, roots, grads)
        first = roots[0][0]
        if len(roots) == 1:
            root, slot = roots[0]
            start = (*(None,) * slot, grads[0], *(None,) * (root._xt_num_inputs - slot - 1))
        else:
            root = GraphRoot(roots, grads)
            start = ()
        task = GraphTask(root, keep_graph)
        if inputs is not None:
            task.restrict(inputs, accumulate)
        mode = state.mode
        state.mode = mode & ~NO_GRAD if create_graph else mode | NO_GRAD
        local.task = task
        local.depth += 1
        try:
            devices = task.devices
            if len(devices) > 1 or len(roots) > 1:
                devices = self._places(task, roots, grads)
            if len(devices) > 1:
                home = local.device if local.queue is not None else self.home
                if home is None or home not in devices:
                    home = self.place(first, grads)
                drive(task, root, start, home, self._work, self.place)
            else:
                self._walk(task, root, start)
            state.mode = mode
            task.finish()
        finally:
            state.mode = mode
            local.task = outer
            local.depth -= 1
        return tuple(task.captured)

    def _places(self, task: GraphTask, roots: tuple[EdgeTuple, ...], grads: Gradients) -> set[Any]:
        """The devices that a pass meets: those that nodes name, and those of the first gradients."""
        found = task.devices | {self.place(edge[0], (grad,)) for edge, grad in zip(roots, grads, strict=True)}
        return found - {None}

    def _walk(self, task: GraphTask, node: Node, grads: Sequence[Any]) -> None:
        """Run a task whose nodes are all of one device on this thread."""
        ready: list[tuple[int, int, Node, Sequence[Any]]] = []
        ticks = itertools.count().__next__

        def push(node: Node, grads: Sequence[Any]) -> None:
            heappush(ready, (-node._xt_sequence_nr, ticks(), node, grads))

        watched = state.mode & (ANOMALY | PROFILING)
        counts, not_ready, keep_graph = task.dependencies, task.not_ready, task.keep_graph
        needed, captures = task.needed, task.captures or {}
        while True:
            runs = needed is None or (node in needed and node not in captures)
            if runs and node._xt_meta is None and not watched:
                outputs = node.apply(grads if type(grads) is tuple else tuple(grads))
                if not node._xt_trusted:
                    outputs = self._validate(node, node._xt_edges, outputs)
                if node._xt_meta is not None:
                    outputs = self._hooked_late(node._xt_meta, outputs, len(grads))
                if not keep_graph:
                    node._xt_release()
            else:
                outputs = self._evaluate(task, node, tuple(grads))
            # The same as `task.route`, which this loop is too hot to call.
            for edge, grad in zip(node._xt_edges, outputs):
                if edge is None:
                    continue
                target, slot = edge
                try:
                    counts[target] = left = counts[target] - 1
                except KeyError:
                    raise RuntimeError(f"dependency not found for {name_of(target)}") from None
                waiting = not_ready.get(target)
                if waiting is not None:
                    waiting.add(slot, grad)
                    if not left:
                        push(target, not_ready.pop(target))
                    continue
                if needed is not None and target not in needed and target not in captures:
                    continue
                size = target._xt_num_inputs
                full = (grad,) if size == 1 else (*(None,) * slot, grad, *(None,) * (size - slot - 1))
                if left:
                    not_ready[target] = InputBuffer(full)
                else:
                    push(target, full)
            if not ready:
                return
            # What arrived must not be kept alive by this frame while the next node runs.
            outputs = grad = full = waiting = None
            _, _, node, grads = heappop(ready)

    def _work(self, task: GraphTask, node: Node, grads: Sequence[Any]) -> Gradients:
        """Run one node of a task that several threads share."""
        outer = local.task, local.node
        local.task = task
        try:
            return self._evaluate(task, node, tuple(grads))
        finally:
            local.task, local.node = outer

    def _evaluate(self, task: GraphTask, node: Node, grads: Gradients) -> Gradients:
        """Run one node with everything around it; a node that is only captured gives None along every edge."""
        mode = state.mode
        meta = node._xt_meta
        if task.needed is not None:
            needed = node in task.needed
            if not needed and meta is not None:
                grads = self._tensor_hooks(meta, grads)
            # A node that also runs is captured before its tensor hooks, which run below, as in PyTorch.
            for slot, index in task.captures.get(node, ()):  # pyright: ignore[reportOptionalMemberAccess]
                task.captured[index] = grads[slot]
            if not needed:
                return (None,) * len(node._xt_edges)
        if meta is not None:
            grads = self._tensor_hooks(meta, grads)
            if meta.pre_hooks:
                grads = self._pre_hooks(meta.pre_hooks, grads)
        token = profiler.begin(name_of(node), None, "backward") if mode & PROFILING else None
        if token is not None:
            token.sequence_nr = node._xt_sequence_nr
        try:
            outputs = anomaly.watch(node, grads) if mode & ANOMALY else node.apply(grads)
            if not node._xt_trusted:
                outputs = self._validate(node, node._xt_edges, outputs)
            if meta is not None and meta.post_hooks:
                outputs = self._post_hooks(meta.post_hooks, tuple(outputs), grads)
            elif meta is None and node._xt_meta is not None:
                outputs = self._hooked_late(node._xt_meta, outputs, len(grads))
            if not task.keep_graph:
                node._xt_release()
            if mode & ANOMALY:
                anomaly.check(node, outputs, self.is_nan)
        except BaseException:
            if mode & ANOMALY:
                anomaly.report(node)
            raise
        finally:
            if token is not None:
                profiler.end(token)
        return outputs

    def _validate(self, node: Node | None, edges: tuple[EdgeTuple | None, ...], grads: Any) -> Any:
        """Fit `grads` to the nodes that `edges` lead to; errors name `node`, the producer (None for the caller)."""
        prefix = "" if node is None else f"Function {name_of(node)} returned an "
        if len(grads) != len(edges):
            raise RuntimeError(
                f"{prefix}invalid number of gradients - expected {len(edges)}, but got {len(grads)}"
            )
        fitted = grads
        for index, edge in enumerate(edges):
            grad = grads[index]
            if edge is None or grad is None:
                continue
            try:
                fit = self.validate(edge[0], edge[1], grad)
            except InvalidGradient as error:
                raise RuntimeError(f"{prefix}invalid gradient at index {index} - {error}") from None
            if fit is not grad:
                if fitted is grads:
                    fitted = list(grads)
                fitted[index] = fit
        return fitted

    def _tensor_hooks(self, meta: NodeMeta, grads: Gradients) -> Gradients:
        """Run the hooks of the tensors this node's gradients belong to, then their `retain_grad`."""
        if meta.tensor_hooks is not None:
            values = list(grads)
            for slot, hooks in tuple(meta.tensor_hooks.items()):
                for hook in tuple(hooks.values()):
                    result = hook(values[slot])
                    if result is not None:
                        self.check_hook(values[slot], result, _name(hook))
                        values[slot] = result
            grads = tuple(values)
        if meta.retain_hooks is not None:
            for slot, retain in tuple(meta.retain_hooks.items()):
                retain(grads[slot])
        return grads

    def _pre_hooks(self, hooks: HookDict, grads: Gradients) -> Gradients:
        for hook in tuple(hooks.values()):
            result = hook(grads)
            if result is not None:
                grads = self._replaced(grads, result, hook)
        return grads

    def _post_hooks(self, hooks: HookDict, outputs: Gradients, grads: Gradients) -> Gradients:
        for hook in tuple(hooks.values()):
            result = hook(outputs, grads)
            if result is not None:
                outputs = self._replaced(outputs, result, hook)
        return outputs

    def _hooked_late(self, meta: NodeMeta, outputs: Gradients, count: int) -> Gradients:
        """Run the hooks that an unpack hook put on a node while it ran: they see no gradients, which it may have used up."""
        return (
            self._post_hooks(meta.post_hooks, tuple(outputs), (None,) * count) if meta.post_hooks else outputs
        )

    def _replaced(self, original: Gradients, result: Any, hook: Any) -> Gradients:
        """Check a node hook's replacement: a tuple of as many values, each of which fits or is None."""
        if not isinstance(result, tuple):
            raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
        if len(result) != len(original):
            raise RuntimeError(
                f"hook '{_name(hook)}' has returned an incorrect number of values "
                f"(got {len(result)}, but expected {len(original)})"
            )
        for before, after in zip(original, result, strict=True):
            if after is not None:
                self.check_hook(before, after, _name(hook))
        return result


def running_node() -> Node | None:
    """The node that this thread is running, read from the interpreter's own frames; None outside, and within a plan."""
    codes = (Interpreter._walk.__code__, Interpreter._evaluate.__code__)
    frame = sys._getframe(1)
    while frame is not None and frame.f_code not in codes:
        frame = frame.f_back
    return None if frame is None else frame.f_locals["node"]


def execution_order(task: GraphTask) -> list[Node]:
    """The nodes that a pass runs or captures, in the order in which one thread takes them."""
    counts: dict[Node, int] = dict.fromkeys(task.dependencies, 0)
    for node in counts:
        for edge in node._xt_edges:
            if edge is not None:
                counts[edge[0]] += 1
    found: list[Node] = []
    ready = [(-task.root._xt_sequence_nr, 0, task.root)]
    while ready:
        _, _, node = heappop(ready)
        if not isinstance(node, GraphRoot):
            found.append(node)
        for edge in node._xt_edges:
            if edge is not None and task.should_execute(edge[0]):
                target = edge[0]
                counts[target] -= 1
                if not counts[target]:
                    heappush(ready, (-target._xt_sequence_nr, len(found), target))
    return found


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", "<unknown>")


def _stack_is_deep() -> bool:
    """Whether a nested pass had better continue on a fresh thread: a third of the recursion limit is in use."""
    limit = min(sys.getrecursionlimit() // 3, 400)
    frame = sys._getframe()
    depth = 0
    while frame is not None:
        depth += 1
        if depth > limit:
            return True
        frame = frame.f_back
    return False
