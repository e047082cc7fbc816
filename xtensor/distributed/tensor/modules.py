"""Modules on a mesh: their parameters placed, and what their calls take and give."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import jax

from ...devices import placement
from ...nn.modules.module import Module
from ...tensor import Tensor
from ...utils.checkpoint import AROUND
from ..device_mesh import DeviceMesh
from .dtensor import DTensor, device_mesh_of_context, full_tensor, relocate
from .placement_types import Replicate

__all__ = ["distribute_module", "joined_calls", "replicate_rest"]

JOINED = "_xt_joined_calls"


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
) -> Module:
    """Place a module's parameters and buffers on a mesh: as `partition_fn(name, submodule, mesh)` does, the rest copied.

    `input_fn(module, inputs, mesh)` and `output_fn(module, outputs, mesh)` change what calls take and give.

    Differs from PyTorch: parameters are placed where they are, so that an optimizer made before keeps them.
    """
    mesh = device_mesh or device_mesh_of_context()
    if partition_fn is not None:
        for name, child in module.named_modules():
            partition_fn(name, child, mesh)
    replicate_rest(module, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda _, inputs: input_fn(module, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda _, inputs, outputs: output_fn(module, outputs, mesh))
    return module


def replicate_rest(module: Module, mesh: DeviceMesh) -> None:
    """Copy the parameters and buffers that are on a single device to all devices of a mesh."""
    for tensor in (*module.parameters(), *module.buffers()):
        if not isinstance(tensor, DTensor):
            relocate(tensor, mesh, [Replicate()] * mesh.ndim)


def joined_calls(module: Module) -> None:
    """Have plain tensors join those of the mesh within the module's calls; given plain tensors alone it gives such."""
    if JOINED in vars(module):  # the last of the hooks, also of those that came since
        vars(module)[JOINED].remove()
    else:
        module.register_forward_pre_hook(enter, prepend=True, with_kwargs=True)
    vars(module)[JOINED] = module.register_forward_hook(leave, always_call=True)


class _Calls(threading.local):
    """Of the calls that run in a thread: whether each was given plain tensors alone."""

    def __init__(self) -> None:
        self.plain: list[bool] = []


calls = _Calls()


# A checkpointed part of a call is computed again after the call has ended.
AROUND.append(lambda: placement.replicating if calls.plain else None)


def enter(module: Module, inputs: Any, named: Any) -> None:
    """The beginning of a call."""
    calls.plain.append(not any(isinstance(leaf, DTensor) for leaf in leaves((inputs, named))))
    placement.replicate(1)


def leave(module: Module, inputs: Any, outputs: Any) -> Any:
    """The end of a call."""
    placement.replicate(-1)
    return jax.tree.map(plain, outputs, is_leaf=is_tensor) if calls.plain.pop() else outputs


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value, Tensor)


def leaves(values: Any) -> list[Any]:
    """The tensors and other leaves of nested values."""
    return jax.tree.leaves(values, is_leaf=is_tensor)


def plain(value: Any) -> Any:
    """A tensor of a mesh as one of a single device."""
    return full_tensor(value) if isinstance(value, DTensor) else value
