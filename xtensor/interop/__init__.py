"""Tensors to and from other libraries: NumPy, JAX, DLPack, PyTorch.

JAX arrays are shared, since neither side can change them. What others may write to is copied.
"""

from __future__ import annotations

from typing import Any

import jax

from .. import checks
from ..ops.create.ingest import from_array, from_numpy
from ..ops.tensor.export import from_dlpack, jax_array, numpy, to_dlpack
from ..tensor import Tensor
from . import einops, notebooks, pytrees
from .alias import install, installed, is_installed, uninstall
from .torch import from_torch, to_torch

__all__ = [
    "einops",
    "from_dlpack",
    "from_jax",
    "from_numpy",
    "from_torch",
    "install",
    "installed",
    "is_installed",
    "notebooks",
    "pytrees",
    "to_dlpack",
    "to_jax",
    "to_numpy",
    "to_torch",
    "uninstall",
]


def from_jax(array: Any) -> Tensor:
    """A tensor over a JAX array, without a copy: writes to the tensor leave the array as it is."""
    if not isinstance(array, jax.Array):
        raise TypeError(f"expected jax.Array (got {checks.type_name(array)})")
    return from_array(array, None, None)


def to_jax(tensor: Tensor) -> jax.Array:
    """The values of a tensor as a JAX array, without a copy: it stays as it is when the tensor is written.

    Its dtype is the tensor's, 64-bit types too; operations on it follow the user's own `jax_enable_x64`.
    """
    return jax_array(tensor)


def to_numpy(tensor: Tensor, *, force: bool = False) -> Any:
    """The values of a tensor as a NumPy array, as `Tensor.numpy` gives it."""
    return numpy(tensor, force=force)
