"""Tensors as JAX pytrees: `jax.jit`, `jax.vmap`, `jax.tree_util` and `jax.device_put` take them, alone or in states.

A tensor is a node with one leaf, its values. What comes back is a leaf of autograd over the new values; memory that
tensors shared they no longer share.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from .. import devices, dtypes
from ..engine import LeafEdge
from ..nn.parameter import Parameter
from ..storage import MetaArray, Storage
from ..tensor import Tensor, array_of, edge_of, tensor_over

__all__ = ["register"]

VALUES = jax.tree_util.GetAttrKey("values")


def children_of(tensor: Tensor) -> tuple[tuple[Any], bool]:
    """The values, and whether the new tensor is to want a gradient.

    Raises RuntimeError for a tensor with a history, which would be lost; inside a traced function it may be.
    """
    edge = edge_of(tensor)
    array = array_of(tensor)
    traced = isinstance(array, Tracer)
    if type(edge) is tuple and not traced:
        raise RuntimeError(
            "Can't use a Tensor that has a grad_fn as a JAX pytree: its history would be lost. Use tensor.detach() "
            "instead."
        )
    if type(array) is MetaArray:
        array = jax.ShapeDtypeStruct(array.shape, array.dtype)
    elif not traced:
        tensor._xt_storage.shared = True
    return (array,), edge is not None and type(edge) is not tuple


def register(kind: type[Tensor]) -> None:
    """Make tensors of a class pytrees as well; Tensor and Parameter are so already."""

    def flatten(tensor: Any) -> tuple[tuple[Any], bool]:
        return children_of(tensor)

    def flatten_with_keys(tensor: Any) -> tuple[tuple[tuple[Any, Any]], bool]:
        (array,), wants = children_of(tensor)
        return ((VALUES, array),), wants

    def unflatten(wants: bool, children: Any) -> Any:
        (values,) = children
        return rebuilt(kind, values, wants)

    jax.tree_util.register_pytree_with_keys(kind, flatten_with_keys, unflatten, flatten)


def rebuilt(kind: type[Tensor], values: Any, wants: bool) -> Any:
    """A tensor over new values; what is no array (JAX's placeholders, a function's odd results) is kept as it is."""
    if isinstance(values, jax.ShapeDtypeStruct):
        values = MetaArray(values.shape, values.dtype)
    elif isinstance(values, (np.ndarray, np.generic)) and values.dtype in dtypes.FROM_NUMPY:
        values = devices.put(np.asarray(values), devices.device("cpu"))
    made = tensor_over(Storage(values, shared=True), kind=kind)
    if wants:
        dtype = dtypes.FROM_NUMPY.get(getattr(values, "dtype", None))  # type: ignore[arg-type]
        if dtype is not None and (dtype.is_floating_point or dtype.is_complex):
            made._xt_edge = LeafEdge(made)
    return made


register(Tensor)
register(Parameter)
