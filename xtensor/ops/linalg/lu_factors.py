"""LU factorizations, packed and unpacked, and the systems that they solve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks
from ...dtypes import dtype_of, int32
from ...operators.attach import attach_methods
from ...operators.autocast import cast_for
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import of_tensors
from ...operators.index_bounds import check_values
from ...operators.operator import structure
from ...operators.schema import Array
from ...tensor import Tensor, array_of, sizes_of
from .decompositions import adjoint, check_failures, check_floating, given
from .linear_algebra import check_system, solve_factored, zero_pivots
from .reflectors import check_lapack

if TYPE_CHECKING:
    from ... import return_types

__all__ = ["lu", "lu_solve", "lu_unpack"]


def check_matrices(name: str, x: Any) -> None:
    if x.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(x.shape)} instead"
        )


def check_pivoting(pivot: bool) -> None:
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


# ---- factoring -----------------------------------------------------------------------------------------------------


def unpacked(packed: Array) -> tuple[Array, Array]:
    """The unit lower and the upper triangular factor of packed ones."""
    m, n = packed.shape[-2:]
    k = min(m, n)
    lower = jnp.tril(packed[..., :k], -1) + jnp.eye(m, k, dtype=packed.dtype)
    return lower, jnp.triu(packed[..., :k, :])


def permutation_matrix(order: Array, dtype: Any) -> Array:
    """P with `P @ L @ U == A`, where row i of `L @ U` is row `order[i]` of A."""
    columns = jnp.arange(order.shape[-1], dtype=order.dtype)
    return (order[..., None, :] == columns[:, None]).astype(dtype)


@general(out="exact", name="linalg_lu", node="LinalgLu", returns=("P", "L", "U"), derivatives=FROM_KERNEL)
def lu_of(input: Array, *, pivot: bool = True) -> tuple[Array, ...]:
    """A permutation P, a unit lower triangular L and an upper triangular U with `P @ L @ U == input`.

    Raises: NotImplementedError for bool and integer tensors.
    """
    check_matrices("linalg.lu", input)
    check_lapack("lu_cpu", dtype_of(input))
    check_pivoting(pivot)
    packed, _, order = lax.linalg.lu(input)
    return lax.stop_gradient(permutation_matrix(order, input.dtype)), *unpacked(packed)


def linalg_lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> return_types.linalg_lu:
    """A permutation P, a unit lower triangular L and an upper triangular U with `P @ L @ U == A`.

    Shape: `A` `(*, n, m)`; P `(*, n, n)`, L `(*, n, k)`, U `(*, k, m)` with k = min(n, m).

    Raises: RuntimeError for fewer than two dimensions.
    """
    made = lu_of(A, pivot=pivot, out=out)
    return type(made)(made[0].detach(), *made[1:])


@general(
    out="exact",
    name="linalg_lu_factor_ex",
    columns=(0,),
    node="LinalgLuFactorEx",
    returns=("LU", "pivots", "info"),
    derivatives=FROM_KERNEL,
)
def factors(input: Array, *, pivot: bool = True) -> tuple[Array, ...]:
    """L and U packed in one matrix, the pivots (row exchanges, from 1) and the number of the one that is 0, or 0.

    Raises: NotImplementedError for bool and integer tensors.
    """
    check_matrices("torch.lu_factor", input)
    check_lapack("lu_cpu", dtype_of(input))
    check_pivoting(pivot)
    packed, pivots, _ = lax.linalg.lu(input)
    return packed, (pivots + 1).astype(jnp.int32), zero_pivots(packed)


FactorEx: Any = structure("linalg_lu_factor_ex", ("LU", "pivots", "info"))
Factor: Any = structure("linalg_lu_factor", ("LU", "pivots"))
WithInfo: Any = structure("_lu_with_info", ("LU", "pivots", "info"))
Unpacked: Any = structure("lu_unpack", ("P", "L", "U"))


def check_factors(name: str, info: Tensor) -> None:
    lead = tuple(sizes_of(info))

    def error(where: tuple[int, ...], number: int) -> RuntimeError:
        at = f"(Batch element {int(np.ravel_multi_index(where, lead))}): " if where else ""
        return RuntimeError(
            f"{name}: {at}U[{number},{number}] is zero and using it on lu_solve would result in a division by zero. "
            "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)"
        )

    check_failures(info, error)


def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None
) -> return_types.linalg_lu_factor_ex:
    """L and U packed in one matrix with the pivots and `info`: 0, or the number of the pivot that is 0.

    Shape: `A` `(*, n, m)`; LU `(*, n, m)`, pivots `(*, min(n, m))` and `info` `(*)`.

    Raises: RuntimeError for fewer than two dimensions.
    """
    made = factors(A, pivot=pivot, out=out)
    if check_errors:
        check_factors("torch.linalg.lu_factor_ex", made[2])
    return FactorEx(*made)


def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> return_types.linalg_lu_factor:
    """L and U packed in one matrix, and the pivots (row exchanges, counted from 1).

    Shape: `A` `(*, n, m)`; LU `(*, n, m)`, pivots `(*, min(n, m))`.
    RuntimeError where a pivot is 0; differs from PyTorch on an accelerator, where values are not read back.

    Raises: RuntimeError for fewer than two dimensions.
    """
    packed, pivots, info = factors(A, pivot=pivot)
    check_factors("torch.linalg.lu_factor", info)
    if out is not None:
        given(packed, out[0], "general")
        given(pivots, out[1], "general")
        return Factor(*out)
    return Factor(packed, pivots)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """The packed LU factors and the pivots, with `get_infos` also the number of the pivot that is 0; see `linalg`.

    Shape: `A` `(*, n, m)`; LU `(*, n, m)`, pivots `(*, min(n, m))`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for bool and integer tensors.
    """
    (A,) = cast_for(A, cpu="float32")
    made = factors(A, pivot=pivot)
    kept = made if get_infos else made[:2]
    if out is not None:
        if len(out) != len(kept):
            raise TypeError(f"expected tuple of {len(kept)} elements but got {len(out)}")
        # PyTorch copies, whatever the dtypes.
        kept = tuple([o.resize_(tuple(sizes_of(m))).copy_(m) for m, o in zip(kept, out, strict=True)])
    return WithInfo(*kept) if get_infos else tuple(kept)


# ---- solving -------------------------------------------------------------------------------------------------------


@general(
    out="exact",
    name="linalg_lu_solve",
    columns=lambda left, adjoint: (0,) if left else (),
    node="LinalgLuSolve",
    derivatives=FROM_KERNEL,
)
def factored_solution(
    LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False
) -> Array:
    """The X with `A @ X == B` (`X @ A == B` where not `left`; A^H where `adjoint`), given A's LU factors.

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool and integer tensors.
    """
    return solved(LU, pivots, B, left, adjoint)


def solved(LU: Array, pivots: Array, B: Array, left: bool, turned: bool) -> Array:
    checks.check_square("torch.linalg.lu_solve", LU)
    for name, x in (("input tensor B", B),):
        if x.ndim < 2:
            raise RuntimeError(f"linalg.lu_solve: The {name} must have at least 2 dimensions.")
    own, other = dtype_of(LU), dtype_of(B)
    if own is not other:
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {own.scalar_name} and B of "
            f"type {other.scalar_name} instead"
        )
    if pivots.dtype != jnp.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_system("linalg.lu_solve", LU, B, left)
    if pivots.shape[-1:] != LU.shape[-1:]:
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix"
        )
    if pivots.shape[:-1] != LU.shape[:-2]:
        raise RuntimeError("linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same")
    check_floating("linalg.lu_solve", LU)
    lead = jnp.broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    right = jnp.broadcast_to(B, (*lead, *B.shape[-2:]))
    if right.size == 0:
        return right
    packed = jnp.broadcast_to(LU, (*lead, *LU.shape[-2:]))
    order = lax.linalg.lu_pivots_to_permutation(pivots - 1, LU.shape[-1])
    order = jnp.broadcast_to(order, (*lead, LU.shape[-1]))
    if not left:
        right, turned = adjoint(right), not turned
    if turned:
        half = lax.linalg.triangular_solve(
            packed, right, left_side=True, lower=False, transpose_a=True, conjugate_a=True
        )
        rows = lax.linalg.triangular_solve(
            packed, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True, unit_diagonal=True
        )
        out = jnp.take_along_axis(rows, jnp.argsort(order, axis=-1)[..., None], axis=-2)
    else:
        out = solve_factored(packed, order, right)
    return out if left else adjoint(out)


@of_tensors()
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The X with `A @ X == input`, given the LU factors of A; see `linalg.lu_solve`.

    Shape: `input` `(*, n, k)`, `LU_data` `(*, n, n)`, `LU_pivots` `(*, n)`, result `(*, n, k)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; RuntimeError for bool
    and integer tensors.
    """
    input, LU_data = cast_for(input, LU_data, cpu="float32")
    check_pivots(LU_pivots, LU_data)
    return factored_solution(LU_data, LU_pivots, input, out=out)


def check_pivots(pivots: Tensor, LU: Tensor) -> None:
    """RuntimeError where pivots on a CPU are no rows of the factors."""
    rows = tuple(sizes_of(LU))[-2:-1]

    def wrong(values: np.ndarray[Any, Any]) -> Exception | None:
        for bad, what in (
            (values < 1, "greater or equal to 1"),
            (values > rows[0], "smaller or equal to LU.size(-2)"),
        ):
            if bad.any():
                return RuntimeError(
                    f"Pivots given to lu_solve must all be {what}. Did you properly pass the result of lu_factor?"
                )
        return None

    if rows and pivots.dtype is int32:
        check_values(array_of(pivots), wrong)


def linalg_lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The X with `A @ X == B` (`X @ A == B` where not `left`; A^H where `adjoint`), given A's LU factors.

    Shape: `LU` `(*, n, n)`, `pivots` `(*, n)`, `B` `(*, n, k)` (`(*, k, n)` where not `left`); result as `B`.

    Raises: RuntimeError where sizes do not fit.
    """
    check_pivots(pivots, LU)
    return factored_solution(LU, pivots, B, left=left, adjoint=adjoint, out=out)


# ---- unpacking -----------------------------------------------------------------------------------------------------


@general(out="exact", name="lu_unpack_factors", node="LuUnpack", derivatives=dict(LU_data=FROM_KERNEL))
def matrices_of(LU_data: Array, LU_pivots: Array, data: bool, pivots: bool) -> tuple[Array, ...]:
    """P, L and U of packed factors; empty what is not asked for."""
    if LU_pivots.dtype != jnp.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. Note: this function "
            "is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    nothing = jnp.zeros((0,), LU_data.dtype)
    lower, upper = unpacked(LU_data) if data else (nothing, nothing)
    if not pivots:
        return nothing, lower, upper
    m = LU_data.shape[-2]
    if LU_data.size == 0:
        return jnp.broadcast_to(jnp.eye(m, dtype=LU_data.dtype), (*LU_data.shape[:-1], m)), lower, upper
    order = lax.linalg.lu_pivots_to_permutation(LU_pivots - 1, m)
    return lax.stop_gradient(permutation_matrix(order, LU_data.dtype)), lower, upper


@of_tensors()
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Any = None,
) -> return_types.lu_unpack:
    """The matrices P, L and U of packed LU factors; what is not asked for is empty.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.
    """
    check_matrices("torch.lu_unpack", LU_data)
    array = array_of(LU_pivots)
    rows, columns = tuple(sizes_of(LU_data))[-2:]
    if unpack_pivots and array.dtype == np.int32:
        error = RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?"
        )
        if tuple(sizes_of(LU_pivots)) != (*tuple(sizes_of(LU_data))[:-2], min(rows, columns)):
            raise error
        if array.size:
            check_values(array, lambda values: error if values.min() < 1 or values.max() > rows else None)
    p, lower, upper = matrices_of(LU_data, LU_pivots, unpack_data, unpack_pivots)
    made = Unpacked(
        p.detach(), lower if unpack_data else lower.detach(), upper if unpack_data else upper.detach()
    )
    if out is None:
        return made
    return Unpacked(*[given(m, o, "general") for m, o in zip(made, out, strict=True)])


attach_methods(lu, lu_solve)
