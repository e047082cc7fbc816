"""What a captured function takes for granted of its arguments, and what tells them apart."""

from __future__ import annotations

from typing import Any

from jax.core import Tracer

from .. import devices, geometry
from ..operators.write import covers
from ..storage import MetaArray, Storage
from ..tensor import Tensor, asks_grad

__all__ = ["Form", "aliases", "capturable", "exchanged", "plain_skeleton", "skeleton_of"]


class Form:
    """Of a tensor among the arguments: what a program takes for granted."""

    __slots__ = ("aval", "by_value", "inference", "kind", "leaf", "sharding", "view")

    def __init__(self, tensor: Tensor) -> None:
        array = tensor._xt_storage.array
        view = tensor._xt_view
        self.kind = type(tensor)
        self.by_value = view is not None and is_by_value(tensor)
        self.aval = array.aval
        self.sharding = getattr(array, "sharding", None)
        self.view = view_form(view)
        self.leaf = edge_kind(tensor)
        meta = tensor._xt_meta
        self.inference = meta is not None and meta.inference

    def fits(self, tensor: Tensor) -> bool:
        """Whether a tensor is of this form."""
        array = tensor._xt_storage.array
        if type(tensor) is not self.kind:
            return False
        if array.sharding is not self.sharding and array.sharding != self.sharding:
            return False
        if self.by_value:
            now, was = tensor._xt_view, self.view
            return now is not None and now.sizes == was[0] and now.dtype is was[3] and is_by_value(tensor)
        if array.aval is not self.aval and array.aval != self.aval:
            return False
        view = tensor._xt_view
        if (view is not None or self.view is not None) and view_form(view) != self.view:
            return False
        if tensor._xt_edge is None and self.leaf is None and view is None:
            return tensor._xt_meta is None or tensor._xt_meta.inference is self.inference
        meta = tensor._xt_meta
        return edge_kind(tensor) == self.leaf and (meta is not None and meta.inference) == self.inference

    def __repr__(self) -> str:
        return f"{self.aval.str_short()}{'' if self.view is None else ' strided'}{'' if self.leaf is None else ' grad'}"


def is_by_value(tensor: Tensor) -> bool:
    """Whether an argument is a view whose values may stand for it: it is contiguous, and autograd has no part in it."""
    view: Any = tensor._xt_view
    meta = tensor._xt_meta
    plain = type(tensor) is Tensor and not tensor.__dict__ and (meta is None or not meta.inference)
    return (
        plain
        and not (view.conj or view.neg)
        and 0 not in view.sizes
        and not asks_grad(tensor)
        and geometry.is_contiguous(view.sizes, view.strides)
        and not covers(tensor)
    )


def view_form(view: Any) -> Any:
    """The geometry of a view, and whether its versions are its storage's."""
    if view is None:
        return None
    own = isinstance(view.counter, Storage)
    return (view.sizes, view.strides, view.offset, view.dtype, view.conj, view.neg, own, view.base is None)


def edge_kind(tensor: Tensor) -> Any:
    """Whether autograd follows a tensor: None, as a leaf (with hooks or not), or as a result."""
    edge = tensor._xt_edge
    view = tensor._xt_view
    if view is not None and view.base is not None and edge is None:
        edge = view.base._xt_edge
        return None if edge is None else "base"
    if edge is None:
        return None
    if type(edge) is tuple:
        return "result"
    return ("leaf", bool(getattr(edge, "tensor_hooks", None)), bool(getattr(edge, "post_accumulate", None)))


SCALARS = (bool, int, float, complex, str, bytes, type(None))


def skeleton_of(value: Any, tensors: list[Tensor]) -> Any:
    """The arguments without their tensors, which go to the list; comparable."""
    kind = type(value)
    if isinstance(value, Tensor):
        tensors.append(value)
        return Tensor
    if kind in SCALARS:
        return (kind, repr(value)) if kind is float else (kind, value)
    if kind is tuple or kind is list:
        return (kind, *[skeleton_of(v, tensors) for v in value])
    if isinstance(value, dict) and kind.__module__ in ("builtins", "collections"):
        return (kind, *[(k, skeleton_of(v, tensors)) for k, v in value.items()])
    if isinstance(value, tuple):
        return (kind, *[skeleton_of(v, tensors) for v in value])
    return (kind, Same(value))


class Same:
    """An object among the arguments: equal to itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    __hash__ = None  # type: ignore[assignment]


JUST_TENSORS = {Tensor}
PLAIN: dict[int, Any] = {}
"""The skeletons of calls with so many tensors and nothing else."""


def plain_skeleton(args: tuple[Any, ...], tensors: list[Tensor]) -> Any:
    """`skeleton_of` positional arguments that are all tensors, without a walk; None for others."""
    if {*map(type, args)} != JUST_TENSORS:
        return None
    tensors += args
    found = PLAIN.get(len(args))
    return found or PLAIN.setdefault(len(args), skeleton_of((args, {}), []))


def aliases(tensors: list[Tensor], memory: list[int]) -> tuple[int, ...]:
    """Of every tensor, which is the first that is the same one, and that has the same memory; memory: the ids of their storages."""
    ids = [*map(id, tensors)]
    return (*map(ids.index, ids), *map(memory.index, memory))


def exchanged(value: Any, others: dict[int, Tensor]) -> Any:
    """Arguments with other tensors in the places of some."""
    kind = type(value)
    if isinstance(value, Tensor):
        return others.get(id(value), value)
    if isinstance(value, dict) and kind.__module__ in ("builtins", "collections"):
        made = value.copy()
        made.update({k: exchanged(v, others) for k, v in value.items()})
        return made
    if kind in (list, tuple):
        return kind([exchanged(v, others) for v in value])
    if isinstance(value, tuple):
        return kind(*[exchanged(v, others) for v in value])
    return value


def capturable(tensor: Tensor) -> bool:
    """Whether a tensor has values of its own."""
    array = tensor._xt_storage.array
    if isinstance(array, (Tracer, MetaArray)):
        return False
    return len(array.sharding.device_set) == 1 or devices.of_array(array).sharding is not None
