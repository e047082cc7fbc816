"""Pseudo-inverses, ranks and least squares solutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax

from ... import checks, dtypes
from ...geometry import broadcast_shapes
from ...operators.attach import attach_methods
from ...operators.autocast import cast_for
from ...operators.declare import general
from ...operators.functions.overloads import of_tensors
from ...operators.index_bounds import readable
from ...operators.operator import structure
from ...operators.schema import Array, Operand
from ...tensor import Tensor, array_of, sizes_of
from .decompositions import adjoint, check_floating, dot, eigh, given, qr_of, svdvals
from .linear_algebra import solve_triangular
from .matmul import matmul

if TYPE_CHECKING:
    from ... import return_types

__all__ = ["pinverse"]


# ---- pseudo-inverses and ranks ----------------------------------------------------------------------------------------


def _pinv_grad(grad: Array, result: Array, input: Array) -> Array:
    """Golub and Pereyra, "The differentiation of pseudo-inverses" (1973), through the smaller of the two products."""
    turned, g = adjoint(result), adjoint(grad)
    if input.shape[-2] <= input.shape[-1]:
        k = dot(g, result)
        kp = dot(k, turned)
        first = -adjoint(dot(result, k)) + kp - dot(dot(input, result), kp)
        return first + dot(dot(turned, result), g - dot(k, input))
    k = dot(result, g)
    pk = dot(turned, k)
    first = -adjoint(dot(k, result)) + dot(dot(g - dot(input, k), result), turned)
    return first + pk - dot(dot(pk, result), input)


@general(
    autocast=dict(cpu="float32"), name="linalg_pinv", node="LinalgPinv", derivatives=dict(input=_pinv_grad)
)
def pseudo_inverses(input: Array, atol: Operand | None, rtol: Operand | None, hermitian: bool) -> Array:
    """The Moore-Penrose inverses by singular values, or by eigenvalues where the matrices are Hermitian."""
    m, n = input.shape[-2:]
    if input.size == 0:
        return jnp.zeros((*input.shape[:-2], n, m), input.dtype)
    if hermitian:
        vectors, values = lax.linalg.eigh(input, lower=True, symmetrize_input=False)
        left, right = vectors, adjoint(vectors)
    else:
        u, values, vh = jnp.linalg.svd(input, full_matrices=False)
        left, right = adjoint(vh), adjoint(u)
    size = jnp.abs(values)
    largest = jnp.max(size, -1, keepdims=True)
    eps = float(jnp.finfo(values.dtype).eps)

    def column(x: Any) -> Any:
        x = jnp.asarray(x).astype(values.dtype)
        return x[..., None] if x.ndim else x

    relative = max(m, n) * eps if rtol is None and atol is None else 0.0 if rtol is None else column(rtol)
    cutoff = largest * jnp.asarray(relative, values.dtype)
    if atol is not None:
        cutoff = jnp.maximum(cutoff, column(atol))
    big = size > cutoff
    inverse = jnp.where(big, 1 / jnp.where(big, values, 1), 0).astype(input.dtype)
    return dot(left * inverse[..., None, :], right)


def pinv(
    input: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The Moore-Penrose inverses; singular values up to `max(atol, rtol * largest)` count as zero.

    Shape: `input` `(*, n, m)`, result `(*, m, n)`.
    rcond: the older name of `rtol`.

    Raises: RuntimeError for fewer than two dimensions.
    """
    own = input.dtype
    if input.dim() < 2 or not (own.is_floating_point or own.is_complex) or own.itemsize < 4:
        raise RuntimeError(
            f"linalg.pinv({own.scalar_name}{{{list(sizes_of(input))}}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    for name, tolerance in (("atol", atol), ("rtol", rtol), ("rcond", rcond)):
        if isinstance(tolerance, Tensor) and tolerance.dtype.is_complex:
            raise RuntimeError(
                f"torch.linalg.pinv: {name} tensor of complex type is not supported. Got {tolerance.dtype.scalar_name}"
            )
    if hermitian:
        checks.check_square("linalg.pinv", array_of(input))
    return given(
        pseudo_inverses(input, atol, rtol if rcond is None else rcond, hermitian), out, name="linalg.pinv"
    )


@of_tensors()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The Moore-Penrose inverses; singular values up to `rcond * largest` count as zero. See `linalg.pinv`.

    Shape: `input` `(*, n, m)`, result `(*, m, n)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool and integer tensors.
    """
    (input,) = cast_for(input, cpu="float32")
    return pinv(input, rcond)


def _tolerance(size: Tensor, atol: Any, rtol: Any, m: int, n: int) -> Tensor:
    """What counts as zero among the sizes in the last dimension, which it keeps."""
    if rtol is None:
        relative: Any = max(m, n) * dtypes.finfo(size.dtype).eps if atol is None else 0.0
    else:
        relative = rtol.unsqueeze(-1) if isinstance(rtol, Tensor) else rtol
    largest = size.detach().amax(-1, keepdim=True)
    by_size = largest * relative
    if atol is None:
        return by_size
    absolute = atol.unsqueeze(-1) if isinstance(atol, Tensor) else by_size.new_full((), float(atol))
    return by_size.maximum(absolute)


def matrix_rank(
    input: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The numbers of singular values above a tolerance.

    Shape: `input` `(*, n, m)`, result `(*)`.

    Raises: RuntimeError for fewer than two dimensions.
    """
    if input.dim() < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if input.dtype not in (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128):
        raise RuntimeError("This function doesn't handle types other than float and double")
    if input.numel() == 0:
        return given(
            input.new_zeros(tuple(sizes_of(input)[:-2]), dtype=dtypes.int64), out, name="linalg.matrix_rank"
        )
    m, n = sizes_of(input)[-2:]
    size = eigh(input.detach())[0].abs() if hermitian else svdvals(input.detach())
    zero = _tolerance(size, tol if tol is not None else atol, 0.0 if tol is not None else rtol, m, n)
    return given((size > zero).sum(-1), out, name="linalg.matrix_rank")


# ---- least squares -----------------------------------------------------------------------------------------------------

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None, out: Any = None
) -> return_types.linalg_lstsq:
    """Least squares solutions of `input @ X == b`, as `(solution, residuals, rank, singular_values)`.

    Shape: `input` `(*, n, m)`, `b` `(*, n, k)` or `(*, n)`; solution `(*, m, k)` or `(*, m)`.
    driver: "gels" takes input to be of full rank and leaves the rank out; only "gelsd" and "gelss" give singular values, and
    only these three residuals, where input is tall and of full rank (which is seen only where values can be read).

    Raises: RuntimeError where sizes do not fit.
    """
    name = "torch.linalg.lstsq"
    if input.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.dim() < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if not 0 <= input.dim() - b.dim() <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    if driver is not None and driver not in DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    m, n = tuple(sizes_of(input))[-2:]
    vector = b.dim() == 1 or (
        input.dim() - b.dim() == 1 and tuple(sizes_of(input))[:-1] == tuple(sizes_of(b))
    )
    right = b.unsqueeze(-1) if vector else b
    if sizes_of(right)[-2] != m:
        at = f"input.size(-2) should match other.size({-1 if vector else -2})"
        raise RuntimeError(f"{name}: {at}")
    batch = input.dim() - 2
    broadcast_shapes(tuple(sizes_of(input))[:batch], tuple(sizes_of(right))[:batch])
    if input.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {input.dtype.scalar_name} and "
            f"other's dtype {b.dtype.scalar_name}"
        )
    check_floating("linalg.lstsq", array_of(input))
    chosen = driver or "gelsy"
    if rcond is not None and (rcond < 0 or (chosen == "gelsd" and not 0 < rcond < 1)):
        rcond = dtypes.finfo(input.dtype).eps  # as LAPACK takes what is no fraction
    if chosen == "gels" and m >= n:
        q, r = qr_of(input)
        solution = solve_triangular(r, matmul(q.mH, right), upper=True)
    else:
        solution = matmul(pinv(input, rtol=rcond), right)
    rank = matrix_rank(input, rtol=rcond) if chosen != "gels" else input.new_empty((0,), dtype=dtypes.int64)
    full = chosen == "gels" or not readable(array_of(rank)) or bool((rank == n).all())
    if m > n and chosen != "gelsy" and full:
        difference = (matmul(input, solution) - right).abs()
        residuals = (difference * difference).sum(-2)
    else:
        residuals = solution.reshape((-1,)).narrow(0, 0, 0).abs()
    if chosen in ("gelsd", "gelss"):
        values = svdvals(input.detach())
    else:
        values = input.new_empty((0,), dtype=input.dtype.to_real())
    solution = solution.mT.contiguous().mT  # by columns, as LAPACK gives it
    if vector:
        solution = solution.squeeze(-1)
    made = LstsqResult(solution, residuals, rank, values)
    if out is None:
        return made
    return LstsqResult(
        *[given(m, o, None, "linalg.lstsq", i) for i, (m, o) in enumerate(zip(made, out, strict=True))]
    )


LstsqResult: Any = structure("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))
attach_methods(pinverse)
