"""Hooks that are not of one node: on the values saved for backward, and on several gradients together."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ..xla.signals import from_start
from .graph import AccumulateGrad, EdgeTuple, Node
from .handles import MultiHandle, RemovableHandle
from .modes import SAVED_HOOKS, state
from .task import GraphTask, local, will_execute

__all__ = [
    "HookedTensor",
    "MultiHandle",
    "RemovableHandle",
    "disable_saved_tensors_hooks",
    "register_multi_grad_hook",
    "saved_tensors_hooks",
]


class saved_tensors_hooks:
    """Inside the block, what is saved for backward is `pack_hook(tensor)`, and is read by `unpack_hook(packed)`.

    The pair of the innermost block holds. Pairs are kept in `state.saved_hooks`; the SAVED_HOOKS flag is set while
    there are any.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if not (callable(self.pack_hook) and callable(self.unpack_hook)):
            raise TypeError("saved_tensors_hooks: pack_hook and unpack_hook must be callable")
        if state.saved_hooks_disabled is not None:
            raise RuntimeError(state.saved_hooks_disabled)
        state.saved_hooks = [*state.saved_hooks, (self.pack_hook, self.unpack_hook)]
        state.mode |= SAVED_HOOKS

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            state.saved_hooks  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            state.saved_hooks = state.saved_hooks[:-1]
            state.mode = state.mode | SAVED_HOOKS if state.saved_hooks else state.mode & ~SAVED_HOOKS


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Refuse `saved_tensors_hooks` inside the block, and the block inside them, with a RuntimeError of that message."""
    if state.saved_hooks:
        raise RuntimeError(error_message)
    before = state.saved_hooks_disabled
    state.saved_hooks_disabled = error_message
    try:
        yield
    finally:
        state.saved_hooks_disabled = before


class HookedTensor(Protocol):
    """What `register_multi_grad_hook` asks of a tensor."""

    @property
    def requires_grad(self) -> bool:
        """Whether gradients arrive at it."""
        ...

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Register a tensor hook; raises where the tensor requires no gradient."""
        ...

    def _gradient_edge(self) -> EdgeTuple:
        """The edge along which the tensor's gradient arrives (a leaf's accumulator is made if need be)."""
        ...


def register_multi_grad_hook(
    tensors: Sequence[HookedTensor], fn: Callable[[Any], Any], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once per backward pass, when several tensors' gradients are known.

    With mode "all": `fn(grads)` after the last that this pass computes, None for those it does not. With mode "any":
    `fn(grad)` with the first. `fn` must not change what it is given.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        return _register_any([tensor for tensor in tensors if tensor.requires_grad], fn, lock)
    finders = [_finder(tensor._gradient_edge()[0]) for tensor in tensors]
    arrived: weakref.WeakKeyDictionary[GraphTask, tuple[list[Any], list[int]]] = weakref.WeakKeyDictionary()

    def receive(index: int, grad: Any) -> None:
        task = _current_task()
        with lock:
            if task not in arrived:
                nodes = [find() for find in finders]
                count = sum(will_execute(node) for node in nodes if node is not None)
                arrived[task] = [None] * len(nodes), [count]
            grads, missing = arrived[task]
            grads[index] = grad
            missing[0] -= 1
            complete = missing[0] == 0
            if complete:
                del arrived[task]
        if complete:
            fn(grads)

    return MultiHandle(
        tuple(tensor.register_hook(functools.partial(receive, i)) for i, tensor in enumerate(tensors))
    )


def _finder(node: Node) -> Callable[[], Node | None]:
    """Refer weakly to a node, or to whatever accumulator its leaf has by then: hooks must not keep graphs alive."""
    if not isinstance(node, AccumulateGrad):
        return weakref.ref(node)
    leaf = weakref.ref(node.leaf)

    def find() -> Node | None:
        edge = leaf()
        return None if edge is None else edge.accumulator()

    return find


def _current_task() -> GraphTask:
    if local.task is None:
        raise AssertionError("expected this hook to be called inside a backward call")
    return local.task


def _register_any(
    tensors: Sequence[HookedTensor], fn: Callable[[Any], Any], lock: threading.Lock
) -> MultiHandle:
    seen: weakref.WeakSet[GraphTask] = weakref.WeakSet()

    @functools.wraps(fn)
    def receive(grad: Any) -> None:
        task = _current_task()
        with lock:
            first = task not in seen
            seen.add(task)
        if first:
            fn(grad)

    return MultiHandle(tuple(tensor.register_hook(receive) for tensor in tensors))
