"""Solving and measuring with matrices: determinants, inverses, linear systems, powers, matrix norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import checks, dtypes
from ..tensor import Tensor, array_of, sizes_of
from .declare import general, structure
from .decompositions import (
    LinAlgError,
    adjoint,
    batch_note,
    check_floating,
    check_matrix,
    check_square,
    dot,
    eigh,
    first_bad,
    given,
    qr_of,
    svd,
    svdvals,
)
from .derivatives import FROM_KERNEL
from .embedding import readable
from .matmul import matmul, multiply_chain
from .norms import vector_norm
from .promotion import promote
from .reductions import dtype_of
from .schema import Array

__all__ = [
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "pinverse",
    "slogdet",
]


# ---- determinants --------------------------------------------------------------------------------------------------


@general(out="exact", name="linalg_det", node="LinalgDet", method=False, derivatives=FROM_KERNEL)
def det(input: Array) -> Array:
    """The determinants of square matrices."""
    check_square("linalg.det", input)
    check_floating("linalg.det", input, "lu_cpu")
    return jnp.linalg.det(input) if input.shape[-1] else jnp.ones(input.shape[:-2], input.dtype)


def _slogdet_grad(grads: Any, results: Any, input: Array) -> Array:
    """`g * A^-H`; for complex matrices the sign turns with the imaginary part."""
    gsign, glog = grads
    n = input.shape[-1]
    g = glog.astype(input.dtype)
    if jnp.iscomplexobj(input):
        g = g - 1j * jnp.imag(jnp.conj(gsign) * results[0]).astype(input.dtype)
    eye = jnp.broadcast_to(jnp.eye(n, dtype=input.dtype), input.shape)
    return g[..., None, None] * jnp.linalg.solve(adjoint(input), eye)


@general(
    out="exact",
    name="linalg_slogdet",
    node="LinalgSlogdet",
    method=False,
    returns=("sign", "logabsdet"),
    derivatives=dict(input=_slogdet_grad),
)
def slogdet(input: Array) -> tuple[Array, ...]:
    """The signs and the logarithms of the absolute values of determinants."""
    check_square("linalg.slogdet", input)
    check_floating("linalg.slogdet", input)
    if input.shape[-1] == 0:
        lead = input.shape[:-2]
        return jnp.ones(lead, input.dtype), jnp.zeros(lead, jnp.real(input).dtype)
    sign, log = jnp.linalg.slogdet(input)
    return sign, log


def logdet(input: Tensor) -> Tensor:
    """The logarithms of determinants; NaN of negative ones."""
    sign, log = slogdet(input)
    return log + sign.log()


# ---- inverses and systems ------------------------------------------------------------------------------------------


def _inv_grad(grad: Array, result: Array) -> Array:
    turned = adjoint(result)
    return -dot(dot(turned, grad), turned)


@general(out="exact", name="linalg_inv", node="LinalgInvEx", method=False, derivatives=dict(input=_inv_grad))
def inverses(input: Array) -> Array:
    """The inverses of square matrices, not finite where there is none."""
    check_square("linalg.inv", input)
    check_floating("linalg.inv", input)
    return jnp.linalg.inv(input) if input.size else input


def inv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverses of square matrices.

    LinAlgError where one is singular; differs from PyTorch on an accelerator: infinities and NaN.
    """
    made = inverses(input, out=out)
    check_regular("linalg.inv", made, input)
    return made


inverse = inv


def check_regular(name: str, made: Tensor, input: Tensor) -> None:
    array = array_of(made)
    if array.size == 0 or not readable(array):
        return
    values = np.asarray(array)
    bad = first_bad(values)
    if bad is None:
        return
    matrix = np.asarray(array_of(input))[bad]
    if not np.isfinite(matrix).all():
        return
    note = batch_note(bad, values.shape[:-2])
    raise LinAlgError(
        f"{name}: {note}The diagonal element {zero_pivot(matrix)} is zero, the inversion could not be completed because "
        "the input matrix is singular."
    )


def zero_pivot(matrix: np.ndarray[Any, Any]) -> int:
    """The number, from 1, of the first pivot that elimination finds to be zero."""
    a = matrix.copy()
    for k in range(len(a)):
        pivot = k + int(np.abs(a[k:, k]).argmax())
        if a[pivot, k] == 0:
            return k + 1
        a[[k, pivot]] = a[[pivot, k]]
        a[k + 1 :] -= np.outer(a[k + 1 :, k] / a[k, k], a[k])
    return len(a)


def is_vector_case(a: Any, b: Any) -> bool:
    """Whether B is a batch of vectors: one dimension, or the shape of A without its last."""
    return b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])


@general(out="exact", name="linalg_solve", node="LinalgSolveEx", method=False, derivatives=FROM_KERNEL)
def solutions(A: Array, B: Array, *, left: bool = True) -> Array:
    """The X with `A @ X == B` (or `X @ A == B`), not finite where A is singular."""
    check_square("linalg.solve", A)
    check_floating("linalg.solve", A)
    a, b = dtype_of(A), dtype_of(B)
    if a is not b:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {a.scalar_name} and B of type "
            f"{b.scalar_name} instead"
        )
    vector = is_vector_case(A, B)
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    right = B[..., None] if vector else B
    n = A.shape[-1]
    if right.shape[-2 if left else -1] != n:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {equation} ({n}x{n} and "
            f"{right.shape[-2]}x{right.shape[-1]})"
        )
    lead = jnp.broadcast_shapes(A.shape[:-2], right.shape[:-2])
    left_side = jnp.broadcast_to(A, (*lead, *A.shape[-2:]))
    right = jnp.broadcast_to(right, (*lead, *right.shape[-2:]))
    if right.size == 0:
        out = jnp.zeros(right.shape, A.dtype)
    elif left:
        out = jnp.linalg.solve(left_side, right)
    else:
        out = jnp.swapaxes(
            jnp.linalg.solve(jnp.swapaxes(left_side, -1, -2), jnp.swapaxes(right, -1, -2)), -1, -2
        )
    return out[..., 0] if vector else out


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """The X with `A @ X == B` (`X @ A == B` where not `left`), for batches of square A.

    LinAlgError where A is singular; differs from PyTorch on an accelerator: infinities and NaN.
    """
    made = solutions(A, B, left=left, out=out)
    array = array_of(made)
    if array.size and readable(array) and not np.isfinite(np.asarray(array)).all():
        matrices = np.asarray(array_of(A)).reshape(-1, *sizes_of(A)[-2:])
        for i, matrix in enumerate(matrices):
            if np.isfinite(matrix).all() and np.linalg.matrix_rank(matrix) < len(matrix):
                note = f"(Batch element {i}): " if A.dim() > 2 else ""
                raise LinAlgError(
                    f"torch.linalg.solve: {note}The solver failed because the input matrix is singular."
                )
    return made


@general(
    out="exact",
    name="linalg_solve_triangular",
    node="LinalgSolveTriangular",
    method=False,
    derivatives=FROM_KERNEL,
)
def solve_triangular(
    input: Array, B: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    """The X with `input @ X == B` (or `X @ input == B`) for triangular matrices."""
    check_square("linalg.solve_triangular", input)
    check_matrix("linalg.solve_triangular", B, "B")
    a, b = dtype_of(input), dtype_of(B)
    if a is not b:
        raise RuntimeError(
            f"linalg.solve_triangular: Expected A and B to have the same dtype, but found A of type {a.scalar_name} and B "
            f"of type {b.scalar_name} instead"
        )
    n = input.shape[-1]
    if B.shape[-2 if left else -1] != n:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.solve_triangular: Incompatible shapes of A and B for the equation {equation} ({n}x{n} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )
    lead = jnp.broadcast_shapes(input.shape[:-2], B.shape[:-2])
    return lax.linalg.triangular_solve(
        jnp.broadcast_to(input, (*lead, n, n)),
        jnp.broadcast_to(B, (*lead, *B.shape[-2:])),
        left_side=left,
        lower=not upper,
        unit_diagonal=unitriangular,
    )


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The X with `A @ X == input`, given the Cholesky factor L of A."""
    if upper:
        half = solve_triangular(L.mH, input, upper=False)
        return given(solve_triangular(L, half, upper=True), out)
    half = solve_triangular(L, input, upper=False)
    return given(solve_triangular(L.mH, half, upper=True), out)


def cholesky_inverse(L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverses of matrices given by their Cholesky factors."""
    if L.dim() < 2:
        raise RuntimeError("cholesky_inverse: The input tensor A must have at least 2 dimensions.")
    n = sizes_of(L)[-1]
    eye = (L.new_ones((n,))).diag().expand(tuple(sizes_of(L)))
    return cholesky_solve(eye, L, upper, out=out)


# ---- pseudo-inverses and ranks -------------------------------------------------------------------------------------


def pinv(
    input: Tensor,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The Moore-Penrose inverses; singular values up to `max(atol, rtol * largest)` count as zero."""
    own = input.dtype
    if input.dim() < 2 or not (own.is_floating_point or own.is_complex) or own.itemsize < 4:
        raise RuntimeError(
            f"linalg.pinv({own.scalar_name}{{{list(sizes_of(input))}}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    m, n = sizes_of(input)[-2:]
    if input.numel() == 0:
        return given(input.new_empty((*sizes_of(input)[:-2], n, m)), out)
    if hermitian:
        values, vectors = eigh(input)
        size = values.abs()
        kept = size > _tolerance(size, atol, rtol, m, n)
        scaled = values.new_zeros(()).where(~kept, values.where(kept, values.new_ones(())).reciprocal())
        return given((vectors * scaled.unsqueeze(-2).to(own)).matmul(vectors.mH), out)
    u, s, vh = svd(input, False)
    kept = s > _tolerance(s, atol, rtol, m, n)
    scaled = s.new_zeros(()).where(~kept, s.where(kept, s.new_ones(())).reciprocal())
    return given((vh.mH * scaled.unsqueeze(-2).to(own)).matmul(u.mH), out)


pinverse = pinv


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
    """The numbers of singular values above a tolerance."""
    if input.dim() < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if input.numel() == 0:
        return given(input.new_zeros(tuple(sizes_of(input)[:-2]), dtype=dtypes.int64), out)
    m, n = sizes_of(input)[-2:]
    size = eigh(input.detach())[0].abs() if hermitian else svdvals(input.detach())
    zero = _tolerance(size, tol if tol is not None else atol, 0.0 if tol is not None else rtol, m, n)
    return given((size > zero).sum(-1), out)


# ---- powers and exponentials ---------------------------------------------------------------------------------------


def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """The n-th powers of square matrices, by repeated squaring; negative ones of the inverses."""
    check_square("linalg.matrix_power", array_of(input))
    if n == 0:
        size = sizes_of(input)[-1]
        eye = input.new_ones((size,)).diag().expand(tuple(sizes_of(input)))
        return given(eye.clone(), out, "general")
    x = inv(input) if n < 0 else input
    n = abs(n)
    result: Tensor | None = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    assert result is not None
    return given(result.clone() if result is input else result, out, "general")


@jax.custom_vjp
def exponential(x: Any) -> Any:
    """The matrix exponential: a Taylor polynomial of the scaled matrix, squared back as often as the largest needs."""
    norm = jnp.max(jnp.sum(jnp.abs(x), axis=-2), axis=-1)
    needed = jnp.ceil(jnp.log2(jnp.maximum(norm, np.asarray(1e-30, norm.dtype)))) + 1
    needed = jnp.clip(jnp.where(jnp.isfinite(needed), needed, 0), 0, 1000)
    scaled = x / jnp.exp2(needed)[..., None, None].astype(x.dtype)
    eye = jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    total = eye
    for k in range(18 if jnp.real(x).dtype == jnp.float64 else 10, 0, -1):
        total = eye + dot(scaled, total) / np.asarray(k, x.dtype)
    steps = needed[..., None, None]
    return lax.fori_loop(
        0, jnp.max(needed).astype(jnp.int32), lambda i, v: jnp.where(i < steps, dot(v, v), v), total
    )


def _exponential_forward(x: Any) -> Any:
    return exponential(x), x


def _exponential_backward(x: Any, grad: Any) -> Any:
    """Najfeld and Havel, "Derivatives of the matrix exponential and their computation" (1995): a block exponential."""
    turned = jnp.swapaxes(x, -1, -2)
    above = jnp.concatenate([turned, grad], axis=-1)
    below = jnp.concatenate([jnp.zeros_like(x), turned], axis=-1)
    n = x.shape[-1]
    return (exponential(jnp.concatenate([above, below], axis=-2))[..., :n, n:],)


exponential.defvjp(_exponential_forward, _exponential_backward)


@general(name="matrix_exp", node="LinalgMatrixExp", out=False, derivatives=FROM_KERNEL)
def matrix_exp(input: Array) -> Array:
    """The exponentials of square matrices."""
    check_square("linalg.matrix_exp", input)
    own = dtype_of(input)
    if not (own.is_floating_point or own.is_complex):
        raise RuntimeError(
            f"linalg.matrix_exp: Expected a floating point or complex tensor as input. Got {own.scalar_name}"
        )
    if input.size == 0:
        return input
    return exponential(input.astype(dtypes.compute_type(own).numpy)).astype(input.dtype)


# ---- norms of matrices ---------------------------------------------------------------------------------------------


def matrix_norm(
    input: Tensor,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: dtypes.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The matrix norm over two dimensions: fro, nuc, or of order 1, -1, 2, -2, inf, -inf."""
    name = "linalg.matrix_norm"
    own = input.dtype
    if not (own.is_floating_point or own.is_complex):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {own.scalar_name}"
        )
    check_matrix(name, array_of(input))
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    dims = tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {', '.join(map(str, dims))}")
    a, b = (checks.wrap_dim(d, input.dim()) for d in dims)
    if a == b:
        raise RuntimeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    if ord == "fro":
        return vector_norm(input, 2, (a, b), keepdim, dtype=dtype, out=out)
    x = input if dtype is None else input.to(dtype)
    if ord == "nuc" or (not isinstance(ord, str) and abs(ord) == 2):
        values = svdvals(x.movedim((a, b), (-2, -1)))
        made = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
        if keepdim:
            for d in sorted((a, b)):
                made = made.unsqueeze(d)
        return given(made, out)
    if isinstance(ord, str) or abs(ord) not in (1, float("inf")):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    summed, kept = (a, b) if abs(ord) == 1 else (b, a)
    totals = vector_norm(x, 1, summed, True)
    made = totals.amax(kept, keepdim=True) if ord > 0 else totals.amin(kept, keepdim=True)
    if not keepdim:
        for d in sorted((a, b), reverse=True):
            made = made.squeeze(d)
    return given(made, out)


def linalg_norm(
    input: Tensor,
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
) -> Tensor:
    """A vector norm (one dimension, or all for `ord=None`) or a matrix norm (two dimensions)."""
    if isinstance(dim, int):
        dim = (dim,)
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and ord is not None and input.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.dim()}D."
        )
    if ord is not None and ((dim is not None and len(dim) == 2) or (dim is None and input.dim() == 2)):
        return matrix_norm(input, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    return vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


def cond(input: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition numbers of matrices: the norm times the norm of the inverse."""
    if input.dim() < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        values = svdvals(input)
        if input.numel() == 0:
            return given(values.new_zeros(tuple(sizes_of(input)[:-2])), out)
        top, low = values.select(-1, 0), values.select(-1, sizes_of(values)[-1] - 1)
        return given(low / top if p == -2 else top / low, out)
    check_square("linalg.cond", array_of(input))
    made = matrix_norm(input, p) * matrix_norm(inverses(input), p)
    return given(made.nan_to_num(nan=float("inf")), out)


# ---- products ------------------------------------------------------------------------------------------------------


def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices (the first and last may be vectors) by the cheapest bracketing."""
    matrices = list(tensors)
    if len(matrices) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(matrices)}")
    first, last = matrices[0].dim() == 1, matrices[-1].dim() == 1
    for i, m in enumerate(matrices):
        ends = i in (0, len(matrices) - 1)
        if not (m.dim() == 2 or (ends and m.dim() == 1)):
            where = (
                "the first tensor must be 1D or 2D"
                if i == 0
                else "the last tensor must be 1D or 2D"
                if ends
                else f"tensor {i} must be 2D"
            )
            raise RuntimeError(f"multi_dot(): {where} but got {m.dim()}D")
    if first:
        matrices[0] = matrices[0].unsqueeze(0)
    if last:
        matrices[-1] = matrices[-1].unsqueeze(-1)
    for i in range(len(matrices) - 1):
        if sizes_of(matrices[i])[1] != sizes_of(matrices[i + 1])[0]:
            shapes = [list(sizes_of(t)) for t in (tensors[i], tensors[i + 1])]
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {shapes[0]} and {shapes[1]} cannot be multiplied"
            )
    made = multiply_chain(matrices)
    if first:
        made = made.squeeze(0)
    if last:
        made = made.squeeze(-1)
    return given(made, out)


@general(out="exact", name="linalg_vecdot", node="LinalgVecdot", method=False, derivatives=FROM_KERNEL)
def vecdot(x: Array, y: Array, *, dim: int = -1) -> Array:
    """The dot products of vectors along `dim`, the first conjugated."""
    a, b = promote(x, y)
    a, b = jnp.broadcast_arrays(a, b)
    return jnp.sum(jnp.conj(a) * b, axis=checks.wrap_dim(dim, a.ndim)).astype(a.dtype)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Least squares solutions of `A @ X == B`, as `(solution, residuals, rank, singular_values)`."""
    m, n = sizes_of(A)[-2:]
    vector = B.dim() == 1 or (B.dim() == A.dim() - 1)
    right = B.unsqueeze(-1) if vector else B
    if driver in (None, "gelsy", "gelsd", "gelss") or m < n:
        solution = matmul(pinv(A, rtol=rcond), right)
    else:
        q, r = qr_of(A)
        solution = solve_triangular(r, matmul(q.mH, right), upper=True)
    rank = matrix_rank(A, rtol=rcond)
    difference = (matmul(A, solution) - right).abs()
    residuals = (difference * difference).sum(-2) if m > n else A.new_empty((0,))
    if vector:
        solution = solution.squeeze(-1)
    values = svdvals(A.detach()) if driver in ("gelsd", "gelss") else A.new_empty((0,))
    return LstsqResult(solution, residuals, rank, values)


LstsqResult: Any = structure("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))
METHODS: dict[str, Any] = {
    "cholesky_inverse": cholesky_inverse,
    "cholesky_solve": cholesky_solve,
    "det": det,
    "inverse": inv,
    "logdet": logdet,
    "matrix_power": matrix_power,
    "pinverse": pinv,
    "slogdet": slogdet,
}
