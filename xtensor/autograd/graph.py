"""The graph by hand: edges and nodes, hooks on what is saved, versions, and `draw`."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import engine
from ..devices import device
from ..engine import (
    disable_saved_tensors_hooks,
    modes,
    register_multi_grad_hook,
    saved_tensors_hooks,
)
from ..gradients import GradientEdge, gradient_edge
from ..operators.write import bump
from ..tensor import Tensor, array_of, counter_of, sizes_of, strides_of, wrap

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class _Interface(type):
    """The class of a class whose instances are the engine's nodes, which do not inherit from it."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, engine.Node)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, engine.Node) or type.__subclasscheck__(cls, subclass)


if TYPE_CHECKING:
    Node = engine.Node
else:

    class Node(metaclass=_Interface):
        """What every node of the graph is (`isinstance`), with what can be asked of it."""

        name = engine.Node.name
        next_functions = engine.Node.next_functions
        metadata = engine.Node.metadata
        register_hook = engine.Node.register_hook
        register_prehook = engine.Node.register_prehook


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The gradient edge of a tensor; a leaf's is its gradient accumulator."""
    edge = gradient_edge(tensor)
    if edge is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    return GradientEdge(*edge)


def increment_version(tensor: Any) -> None:
    """Tell autograd that tensors were written in ways it did not see."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump(t, "increment_version")


class save_on_cpu(saved_tensors_hooks):
    """Inside the block, what is saved for backward waits on the CPU; `pin_memory` is accepted and has no effect."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[device, Tensor]:
            return tensor.device, tensor.to("cpu")

        def unpack(packed: tuple[device, Tensor]) -> Tensor:
            where, tensor = packed
            return tensor.to(where)

        super().__init__(pack, unpack)


class Kept:
    """The values of a saved tensor, and the version that they had."""

    __slots__ = ("__weakref__", "array", "counter", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.counter = counter_of(tensor)
        self.version = self.counter.version
        self.array = array_of(tensor)


class MutationState:
    """What `allow_mutation_on_saved_tensors` gives: the saved tensors of its block that graphs still hold."""

    def __init__(self) -> None:
        self.tid_to_weakhandle: weakref.WeakValueDictionary[Any, Kept] = weakref.WeakValueDictionary()

    @property
    def cloned(self) -> dict[Any, Tensor]:
        """The values of those that were written since they were saved."""
        kept = list(self.tid_to_weakhandle.items())
        return {tid: wrap(k.array, shared=True) for tid, k in kept if k.counter.version != k.version}

    def clear(self) -> None:
        """Forget them all."""
        self.tid_to_weakhandle.clear()

    def pack(self, tensor: Tensor) -> Kept:
        counter = counter_of(tensor)
        place = sizes_of(tensor), strides_of(tensor), tensor.storage_offset(), tensor.dtype
        # No other counter has this address as long as the values are kept, since they keep it.
        tid = (id(counter), counter.version, place)
        kept = self.tid_to_weakhandle.get(tid)
        if kept is None:
            kept = self.tid_to_weakhandle[tid] = Kept(tensor)
        return kept

    def unpack(self, kept: Kept) -> Tensor:
        if modes.state.mutation is not self:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return wrap(kept.array, shared=True)


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[MutationState]:
    """Inside the block, tensors saved for backward may be written: backward, in it too, uses the values that were saved.

    Nothing is copied, since saved values are immutable arrays.
    """
    if modes.state.mutation is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    made = MutationState()
    with saved_tensors_hooks(made.pack, made.unpack):
        modes.state.mutation = made
        try:
            yield made
        finally:
            made.clear()
            modes.state.mutation = None
