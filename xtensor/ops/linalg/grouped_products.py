"""Matrix products of groups of rows, and of 8-bit floats with scales beside them."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.schema import Array, Arrays
from ...tensor import Tensor
from .matmul import product

__all__ = ["ScalingType", "SwizzleType", "grouped_mm", "scaled_grouped_mm", "scaled_mm"]


class ScalingType(enum.Enum):
    """What one scale of a scaled matrix covers."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """How scales are shuffled in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


# ---- groups --------------------------------------------------------------------------------------------------------


def check_groups(a: Any, b: Any, offs: Any) -> None:
    """PyTorch's errors for the shapes and dtypes of `grouped_mm`."""
    if a.ndim not in (2, 3) or b.ndim not in (2, 3):
        raise RuntimeError(f"mat_{'a' if a.ndim not in (2, 3) else 'b'} has to be 2 or 3d")
    if not (a.ndim == 2 and b.ndim == 2) and a.shape[-1] != b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if a.ndim == 2 and b.ndim == 2 and a.shape[1] != b.shape[0]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is None) != (a.ndim == 3 and b.ndim == 3):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if offs is not None:
        if offs.ndim != 1:
            raise RuntimeError("offs has to be 1D")
        if offs.dtype != jnp.int32:
            raise RuntimeError("Offsets have to be int32")
    own, other = dtype_of(a), dtype_of(b)
    known = (dtypes.float32, dtypes.bfloat16, dtypes.float16)
    if own not in known or other not in known:
        raise RuntimeError(f"Expected mat_a to be Float32, BFloat16 or Float16 matrix, got {own.scalar_name}")
    if own is not other:
        raise RuntimeError("Expected mat_a and mat_b to have the same dtype")


def members(offs: Any, count: int, dtype: Any) -> Any:
    """Ones where an element of the divided dimension belongs to a group: `(groups, count)`."""
    place = jnp.arange(count, dtype=offs.dtype)
    begin = jnp.concatenate([jnp.zeros((1,), offs.dtype), offs[:-1]])
    return ((place >= begin[:, None]) & (place < offs[:, None])).astype(dtype)


@general(name="grouped_mm", node="GroupedMm", derivatives=FROM_KERNEL)
def grouped_product(mat_a: Array, mat_b: Array, offs: Array | None) -> Array:
    """`grouped_mm` without the options that PyTorch does not implement."""
    check_groups(mat_a, mat_b, offs)
    wide = np.float32
    a, b = mat_a.astype(wide), mat_b.astype(wide)
    if mat_a.ndim == 3 and mat_b.ndim == 3:
        return product(a, b).astype(mat_a.dtype)
    assert offs is not None
    exact = lax.Precision.HIGHEST
    if mat_a.ndim == 2 and mat_b.ndim == 3:
        sizes = jnp.diff(offs, prepend=jnp.zeros((1,), offs.dtype))
        found = lax.ragged_dot(a, b, sizes, precision=exact)
    elif mat_a.ndim == 3:
        mask = members(offs, mat_b.shape[1], wide)
        found = jnp.einsum("gmk,kn,gn->mn", a, b, mask, precision=exact)
    else:
        mask = members(offs, mat_a.shape[1], wide)
        found = jnp.einsum("mk,gk,kn->gmn", a, mask, b, precision=exact)
    return found.astype(mat_a.dtype)


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtypes.dtype | None = None,
) -> Tensor:
    """Matrix products of groups: `offs` (int32) says where each ends in the divided dimension of a 2-d operand.

    Shape: `mat_a` `(n, k)` or `(G, n, k)`, `mat_b` `(k, m)` or `(G, k, m)`; result `(n, m)`, or `(G, n, m)`
    where both or neither have G.
    Rows of no group give zeros, which PyTorch leaves unset.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; RuntimeError for
    complex, bool and integer tensors.
    """
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    return grouped_product(mat_a, mat_b, offs)


# ---- scales --------------------------------------------------------------------------------------------------------


BLOCKS = {2: (1, 16), 3: (1, 32), 4: (1, 128), 5: (128, 128)}


def scaled(x: Any, scale: Any, recipe: int, transposed: bool) -> Any:
    """A matrix times its scales; those of blocks lie as in the matrix `(rows, K)`, transposed for the right operand."""
    x = x.astype(jnp.float32)
    if recipe == 0:
        if scale.size != 1:
            raise ValueError("For TensorWise scaling, scales should be float and singletons")
        return x * scale.astype(jnp.float32).reshape(())
    if recipe == 1:
        rows = x.shape[1] if transposed else x.shape[0]
        shape = (1, rows) if transposed else (rows, 1)
        if scale.shape != shape:
            raise ValueError(
                f"For RowWise scaling, the scale should be {shape}, but got {tuple(scale.shape)}"
            )
        return x * scale.astype(jnp.float32)
    block = BLOCKS[recipe]
    lines = x.T if transposed else x
    shape = tuple(-(-n // b) for n, b in zip(lines.shape, block, strict=True))
    if scale.shape not in (shape, shape[::-1]):
        raise ValueError(f"the scale of blocks of {block} should be {shape}, but got {tuple(scale.shape)}")
    scale = (scale if scale.shape == shape else scale.T).astype(jnp.float32)
    for axis in range(2):
        scale = jnp.repeat(scale, block[axis], axis=axis)[: lines.shape[0]]
    lines = lines * scale[:, : lines.shape[1]]
    return lines.T if transposed else lines


@general(name="scaled_mm", derivatives=None)
def scaled_product(
    mat_a: Array,
    mat_b: Array,
    scale_a: Arrays,
    scale_b: Arrays,
    bias: Array | None,
    recipes_a: Sequence[int],
    recipes_b: Sequence[int],
    output_dtype: Any,
) -> Array:
    """The product of two scaled matrices, in float32."""
    for x, name in ((mat_a, "mat_a"), (mat_b, "mat_b")):
        if x.ndim != 2:
            raise ValueError(f"{name} must be a matrix")
        if not dtype_of(x).name.startswith("float8"):
            raise ValueError(f"Invalid scaling configuration. Got {name}.dtype()={dtype_of(x).scalar_name}")
    if mat_a.shape[1] != mat_b.shape[0]:
        raise ValueError(
            f"mat_a and mat_b shapes cannot be multiplied ({mat_a.shape[0]}x{mat_a.shape[1]} and {mat_b.shape[0]}x"
            f"{mat_b.shape[1]})"
        )
    a, b = mat_a, mat_b
    for scale, recipe in zip(scale_a, recipes_a, strict=True):
        a = scaled(a, scale, recipe, False)
    for scale, recipe in zip(scale_b, recipes_b, strict=True):
        b = scaled(b, scale, recipe, True)
    found = jnp.matmul(a, b, precision=lax.Precision.HIGHEST)
    if bias is not None:
        found = found + bias.astype(jnp.float32)
    return found.astype(output_dtype.numpy)


def several(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    output_dtype: dtypes.dtype | None = dtypes.bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of two matrices of 8-bit floats with scales for all, for rows, or for blocks of elements.

    Shape: `mat_a` `(n, k)`, `mat_b` `(k, m)`, result `(n, m)`.
    Differs from PyTorch: every recipe runs on every device, in float32; swizzled scales raise NotImplementedError.

    Raises: TypeError for arguments of other kinds; ValueError where sizes do not fit; ValueError for complex,
    bool and integer tensors.
    """
    if any(s.value != 0 for s in (*several(swizzle_a), *several(swizzle_b))):
        raise NotImplementedError("scaled_mm: swizzled scales are not supported")
    return scaled_product(
        mat_a,
        mat_b,
        several(scale_a),
        several(scale_b),
        bias,
        tuple([r.value for r in several(scale_recipe_a)]),
        tuple([r.value for r in several(scale_recipe_b)]),
        output_dtype or dtypes.bfloat16,
    )


def scaled_grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    offs: Tensor | None = None,
    output_dtype: dtypes.dtype | None = dtypes.bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """Grouped products of scaled matrices, which PyTorch has for CUDA devices alone: NotImplementedError.

    Shape: `mat_a` `(n, k)` or `(G, n, k)`, `mat_b` `(k, m)` or `(G, k, m)`; result `(n, m)`, or `(G, n, m)`
    where both or neither have G.

    Raises: NotImplementedError whatever is given.
    """
    raise NotImplementedError("scaled_grouped_mm is not implemented: scale the operands and call grouped_mm")
