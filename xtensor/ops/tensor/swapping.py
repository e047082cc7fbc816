"""Two tensors that exchange all they are but their identity: `xtensor.utils.swap_tensors`."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

from ...engine.graph import LeafEdge
from ...tensor import Tensor

__all__ = ["swap_tensors"]

# Every tensor has these; a class with more slots of its own can be exchanged with its like alone.
_OWN = ("_xt_storage", "_xt_view", "_xt_edge", "_xt_meta")


def slots_of(kind: type) -> set[str]:
    """The slots that a tensor's class adds to those of every tensor."""
    return set(copyreg._slotnames(kind)) - set(_OWN)  # pyright: ignore[reportAttributeAccessIssue]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange the contents of two tensors: values, class, attributes, `requires_grad`; each stays the object it was.

    Shape: t1 and t2 any.

    Raises: RuntimeError where their classes have other slots.

    Differs from PyTorch: weak references to the tensors do not stand in its way, nor do other holders of them.

    >>> a, b = xtensor.zeros(2), nn.Parameter(xtensor.ones(3))
    >>> xtensor.utils.swap_tensors(a, b)
    >>> a
    Parameter containing:
    tensor([1., 1., 1.], requires_grad=True)
    """
    slots = slots_of(type(t1))
    if slots != slots_of(type(t2)):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for tensor in (t1, t2):
        edge = tensor._xt_edge
        node = edge.accumulator() if isinstance(edge, LeafEdge) else None
        if node is not None:
            node.register_prehook(poisoned)
    for name in ("__class__", "__dict__", *_OWN, *sorted(slots)):
        exchange(t1, t2, name)
    settle(t1, t2)
    settle(t2, t1)


def exchange(a: Any, b: Any, name: str) -> None:
    """Swap one attribute, which either may lack."""
    absent = object()
    first, second = getattr(a, name, absent), getattr(b, name, absent)
    for holder, value in ((b, first), (a, second)):
        if value is not absent:
            setattr(holder, name, value)
        elif getattr(holder, name, absent) is not absent:
            delattr(holder, name)


def settle(tensor: Tensor, former: Tensor) -> None:
    """Let what knew `former` by its identity know `tensor`, which took its contents."""
    storage, edge = tensor._xt_storage, tensor._xt_edge
    if storage.cover is not None and storage.cover() is former:
        storage.cover = weakref.ref(tensor) if tensor._xt_view is None else None
    if isinstance(edge, LeafEdge):
        renewed = LeafEdge(tensor, edge.device)
        renewed.tensor_hooks, renewed.post_accumulate = edge.tensor_hooks, edge.post_accumulate
        tensor._xt_edge = renewed


def poisoned(grads: Any) -> None:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run "
        "backward on a tensor that was swapped. For a module m with "
        "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype of "
        "the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only "
        "change the device/dtype before running forward (or after both forward and backward)."
    )
