"""Hashes of tensors: the exclusive or of their elements' bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks
from ...dtypes import dtype_of
from ...operators.declare import reduction
from ...operators.schema import Array

__all__ = ["hash_tensor"]


@reduction(out="exact", derivatives=None)
def hash_tensor(
    input: Array, dim: int | Sequence[int] | None = None, *, keepdim: bool = False, mode: int = 0
) -> Array:
    """The exclusive or, over `dim`, of the elements as int64 or as the bits of a float64: uint64.

    Shape: `input` `(*)`, result without the dimensions `dim`, or with size 1 there if `keepdim`.

    Raises: NotImplementedError for complex tensors.
    """
    own = dtype_of(input)
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input.size == 0 and (dim is None or dim == ()):
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    if own.is_complex and input.size:
        raise checks.not_implemented_for("xor_sum_cpu", own)
    real: Any = input.real if own.is_complex else input
    wide: Any = real.astype(jnp.float64 if own.is_floating_point else jnp.int64)
    bits = lax.bitcast_convert_type(wide, jnp.uint64)
    given = () if dim is None else (dim,) if isinstance(dim, int) else dim
    axes = checks.wrap_dims(given, input.ndim) or tuple(range(input.ndim))
    axes = tuple([a for a in axes if a < input.ndim])
    for a in axes:
        if input.shape[a] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {a} to have non-zero size.")
    found = lax.reduce(bits, np.uint64(0), lax.bitwise_xor, axes)
    return jnp.expand_dims(found, axes) if keepdim else found
