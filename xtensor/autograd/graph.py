"""The graph by hand: edges and nodes, hooks on what is saved, versions, and `draw`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..devices import device
from ..engine import (
    Node,
    disable_saved_tensors_hooks,
    modes,
    register_multi_grad_hook,
    saved_tensors_hooks,
)
from ..gradients import GradientEdge, gradient_edge
from ..operators.write import bump
from ..tensor import Tensor

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


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[None]:
    """Inside the block, tensors saved for backward may be written: backward uses the values that were saved.

    It costs nothing, since saved values are immutable arrays.
    """
    if modes.state.mutation_allowed:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    modes.state.mutation_allowed = True
    try:
        yield
    finally:
        modes.state.mutation_allowed = False
