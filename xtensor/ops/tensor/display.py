"""Tensors as text: fetches what is printed to the host and leaves the wording to `printing`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ... import printing
from ...engine import modes
from ...engine.graph import name_of
from ...operators.attach import attach_methods
from ...storage import WrapperArray
from ...tensor import Tensor, array_of, wrap
from ...xla.cache import bounded
from ...xla.levels import KINDS, Batched, Dual, Leveled
from ...xla.x64 import call, jit

__all__: list[str] = []


def text_of(tensor: Tensor, contents: str | None = None) -> str:
    """A tensor as PyTorch prints it; of a long one only the edges come to the host. `contents` stand for its values."""
    kind = type(tensor)
    text, around = plain_text_of(tensor, contents), getattr(kind, "_prints_within", None)
    return text if around is None or "_prints_as" in kind.__dict__ else f"{around}({text})"


def plain_text_of(tensor: Tensor, contents: str | None) -> str:
    """The text without what its class has around it."""
    leveled = array_of(tensor) if type(tensor._xt_storage.raw) in KINDS else None
    if isinstance(leveled, Leveled) and leveled.level.open:
        return leveled_text(leveled)
    # A subclass prints under its own name; one that is a tensor to the eye (Parameter) sets `_prints_as`.
    kind = type(tensor)
    name = "tensor" if kind is Tensor else kind.__dict__.get("_prints_as", kind.__name__)
    shape, dtype, device = tuple(tensor.shape), tensor.dtype, tensor.device
    # Of a tensor that lies in several processes none prints the values: that would take all of them.
    meta = (
        device.type == "meta"
        or type(tensor._xt_storage.raw) is WrapperArray
        or (
            device.sharding is not None
            and not (device.sharding.is_fully_addressable or is_replicated(tensor))
        )
    )
    edge = grad_fn_name(tensor)
    suffixes = printing.suffixes(
        dtype,
        shape,
        None if str(device) == "cpu" else device,
        tensor.requires_grad,
        edge,
        meta=meta,
    )
    if contents is not None:
        return printing.add_suffixes(f"{name}({contents}", suffixes, len(name) + 1)
    if meta:
        return printing.format_tensor(None, suffixes=suffixes, prefix=f"{name}(", shape=shape)
    values = shown_values(tensor, printing.summary_indices(shape))
    return printing.format_tensor(values, suffixes=suffixes, prefix=f"{name}(", shape=shape)


def is_replicated(tensor: Tensor) -> bool:
    """Whether every device of a mesh has all of a tensor."""
    return tensor._xt_storage.array.is_fully_replicated


def leveled_text(array: Leveled) -> str:
    """A tensor inside of a transform: what lies beneath, and the place of the transform in their order."""
    level, inner = array.level, text_of(wrap(array.inner))
    if level.name == "forward_ad.dual_level":
        if not isinstance(array, Dual) or array.tangent is None:
            return inner
        return f"{inner[:-1]}, tangent={text_of(wrap(array.tangent))})"
    stack = modes.state.transforms
    number = 1 + (stack.index(level) if level in stack else 0)
    lines = inner.replace("\n", "\n    ")
    if isinstance(array, Batched):
        place = "bdim=0, " if array.mapped else ""
        return f"BatchedTensor(lvl={number}, {place}value=\n    {lines}\n)"
    return f"GradTrackingTensor(lvl={number}, value=\n    {lines}\n)"


def shown_values(tensor: Tensor, indices: tuple[np.ndarray[Any, Any], ...] | None) -> np.ndarray[Any, Any]:
    """The values at `indices` (of each dimension; None: all), on the host; nothing else is read or computed."""
    storage, view = tensor._xt_storage, tensor._xt_view
    array = storage.array
    if indices is None:
        with modes.no_grad():
            return np.asarray(array_of(tensor))
    on_cpu = tensor.device.type == "cpu"
    if view is None:
        counts = tuple([len(i) for i in indices])
        return np.asarray(array)[np.ix_(*indices)] if on_cpu else np.asarray(call(_edges(counts), array))
    same_dtype = view.dtype.numpy == array.dtype
    if not (on_cpu or same_dtype):
        with modes.no_grad():
            return np.asarray(array_of(tensor))[np.ix_(*indices)]
    # What a view shows is found from its strides: the whole of an expanded one may not fit anywhere.
    where = sum(
        (i * stride for i, stride in zip(np.ix_(*indices), view.strides, strict=True)), start=view.offset
    )
    if on_cpu:
        flat = np.asarray(array).reshape(-1)
        values = (flat if same_dtype else flat.view(view.dtype.numpy))[where]
    else:
        values = np.asarray(call(_picked, array, where))
    values = np.conj(values) if view.conj else values
    return -values if view.neg else values


@jit
def _picked(array: Any, where: Any) -> Any:
    return array.reshape(-1)[where]


def grad_fn_name(tensor: Tensor) -> str | None:
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view made without a graph, whose base was written with one
        return "Invalid"
    return None if node is None else name_of(node).rpartition("::")[2]


@bounded(256)
def _edges(counts: tuple[int, ...]) -> Any:
    """A program that takes the first and last indices of each dimension, `counts` in all."""

    def edges(array: Any) -> Any:
        for axis, count in enumerate(counts):
            size = array.shape[axis]
            if count < size:
                half = count // 2
                first = jax.lax.slice_in_dim(array, 0, half, axis=axis)
                last = jax.lax.slice_in_dim(array, size - half, size, axis=axis)
                array = jax.lax.concatenate([first, last], axis)
        return array

    return jit(edges)


def represent(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """The tensor as text."""
    return text_of(self, tensor_contents)


attach_methods(__repr__=represent)
