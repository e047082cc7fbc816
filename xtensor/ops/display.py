"""Tensors as text: fetches what is printed to the host and leaves the wording to `printing`."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from .. import printing
from ..engine import modes
from ..tensor import Tensor, array_of
from ..x64 import call

__all__: list[str] = []


def text_of(tensor: Tensor) -> str:
    """A tensor as PyTorch prints it; of a long one only the edges come to the host."""
    # A subclass prints under its own name; one that is a tensor to the eye (Parameter) sets `_prints_as`.
    kind = type(tensor)
    name = "tensor" if kind is Tensor else kind.__dict__.get("_prints_as", kind.__name__)
    shape, dtype, device = tuple(tensor.shape), tensor.dtype, tensor.device
    meta = device.type == "meta"
    edge = grad_fn_name(tensor)
    suffixes = printing.suffixes(
        dtype,
        shape,
        None if str(device) == "cpu" else device,
        tensor.requires_grad,
        edge,
        meta=meta,
    )
    if meta:
        return printing.format_tensor(None, suffixes=suffixes, prefix=f"{name}(", shape=shape)
    indices = printing.summary_indices(shape)
    with modes.no_grad():
        array = array_of(tensor)
    if indices is not None and device.type != "cpu":
        array = call(_edges(tuple([len(i) for i in indices])), array)
    values = np.asarray(array)
    if indices is not None and device.type == "cpu":
        values = values[np.ix_(*indices)]
    return printing.format_tensor(values, suffixes=suffixes, prefix=f"{name}(", shape=shape)


def grad_fn_name(tensor: Tensor) -> str | None:
    node = tensor.grad_fn
    return None if node is None else node.name()


@functools.lru_cache(maxsize=256)
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

    return jax.jit(edges)


def represent(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """The tensor as text."""
    return text_of(self)


METHODS: dict[str, Any] = {"__repr__": represent, "__str__": represent}
