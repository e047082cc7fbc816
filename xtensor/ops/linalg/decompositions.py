"""Matrix decompositions: Cholesky, QR, LU, eigenvalues and singular values.

XLA's routines are LAPACK's on a CPU. Where a factorization fails, PyTorch raises: on a CPU so do we; on an accelerator
the result is NaN, as values are not read back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks
from ...dtypes import complex_type, dtype_of
from ...operators.declare import general
from ...operators.index_bounds import check_values
from ...operators.operator import structure
from ...operators.refusals import all_finite, passes
from ...operators.schema import Array
from ...operators.write import write_out
from ...tensor import Tensor, array_of, sizes_of

if TYPE_CHECKING:
    from ... import return_types

__all__ = ["LinAlgError"]


class LinAlgError(RuntimeError):
    """A matrix that an algorithm of linear algebra cannot deal with: singular, or not positive-definite."""


# ---- shared by all of linear algebra -------------------------------------------------------------------------------


def check_matrix(name: str, x: Any, what: str = "A") -> None:
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")


def check_floating(name: str, x: Any, kernel: str | None = None) -> None:
    """The errors for dtypes that have no kernel; `kernel` names the one PyTorch misses for short floats."""
    own = dtype_of(x)
    checks.check_floating(name, own, low_precision=kernel is not None)
    if kernel is not None and own.itemsize < 4:
        raise checks.not_implemented_for(kernel, own)


def adjoint(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def dot(a: Any, b: Any) -> Any:
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def batch_note(index: tuple[int, ...], shape: tuple[int, ...]) -> str:
    return f"(Batch element {int(np.ravel_multi_index(index, shape))}): " if shape else ""


# ---- Cholesky ------------------------------------------------------------------------------------------------------


def _cholesky_grad(grad: Array, result: Array, upper: bool) -> Array:
    """Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10, symmetrized."""
    factor = adjoint(result) if upper else result
    g = adjoint(grad) if upper else grad
    low = jnp.tril(dot(adjoint(factor), g))
    inner = (low + adjoint(jnp.tril(low, -1))) * np.asarray(0.5, jnp.real(low).dtype)
    left = lax.linalg.triangular_solve(
        factor, inner, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )
    return lax.linalg.triangular_solve(factor, left, left_side=False, lower=True)


def failing_minor(lower: Array) -> Array:
    """The order of the first leading minor that is not positive-definite, by elimination column after column."""
    n = lower.shape[-1]
    places = jnp.arange(n)

    def column(k: Any, state: Any) -> Any:
        a, info = state
        pivot = jnp.real(lax.dynamic_index_in_dim(lax.dynamic_index_in_dim(a, k, -1, False), k, -1, False))
        bad = ~(pivot > 0)
        info = jnp.where((info == 0) & bad, k + 1, info).astype(jnp.int32)
        scale = jnp.sqrt(jnp.where(bad, 1, pivot))[..., None].astype(a.dtype)
        x = jnp.where(places > k, lax.dynamic_index_in_dim(a, k, -1, False) / scale, 0)
        return a - x[..., :, None] * jnp.conj(x)[..., None, :], info

    return lax.fori_loop(0, n, column, (lower, jnp.zeros(lower.shape[:-2], jnp.int32)))[1]


@general(
    autocast=dict(cpu="float32"),
    out="exact",
    name="linalg_cholesky_ex",
    columns=(0,),
    node="LinalgCholeskyEx",
    returns=("L", "info"),
    derivatives=dict(input=lambda grads, result0, upper: _cholesky_grad(grads[0], result0, upper)),
)
def cholesky_factor(input: Array, *, upper: bool = False) -> tuple[Array, ...]:
    """The lower (or upper) Cholesky factors, and the order of the first minor that is not positive-definite (or 0).

    A factor that could not be completed is NaN.

    Raises: RuntimeError for bool and integer tensors.
    """
    checks.check_square("linalg.cholesky", input)
    check_floating("linalg.cholesky", input, "cholesky_cpu")
    if input.size == 0:
        return input, jnp.zeros(input.shape[:-2], jnp.int32)
    lower = adjoint(input) if upper else input
    factor = lax.linalg.cholesky(lower, symmetrize_input=False)
    # LAPACK's own count is not handed on: where some factor failed, it is found anew.
    failed = ~jnp.all(jnp.isfinite(factor), axis=(-1, -2))
    info = lax.cond(
        jnp.any(failed), failing_minor, lambda a: jnp.zeros(a.shape[:-2], jnp.int32), lax.stop_gradient(lower)
    )
    return (adjoint(factor) if upper else factor), jnp.where(failed, info, 0)


def check_failures(info: Tensor, error: Callable[[tuple[int, ...], int], Exception]) -> None:
    """Raise `error(index, number)` for the first matrix of a batch whose `info` is not 0, where values can be read."""

    def wrong(values: np.ndarray[Any, Any]) -> Exception | None:
        if not values.any():
            return None
        where = tuple(int(i) for i in np.argwhere(values)[0]) if values.ndim else ()
        return error(where, int(values[where]))

    check_values(array_of(info), wrong)


NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order {} "
    "is not positive-definite)."
)


def check_info(name: str, info: Tensor, reason: str) -> None:
    """LinAlgError where a matrix of the batch failed; `{}` in the reason stands for its `info`."""
    lead = tuple(sizes_of(info))
    check_failures(
        info, lambda at, number: LinAlgError(f"{name}: {batch_note(at, lead)}{reason.format(number)}")
    )


def cholesky_ex(
    input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None
) -> return_types.linalg_cholesky_ex:
    """The lower (or upper) Cholesky factors with `info`, 0 where the matrix is positive-definite.

    Shape: `input` `(*, n, n)`; factors `(*, n, n)` and `info` `(*)`.
    Without `check_errors` nothing is read back. Differs from PyTorch: a factor that could not be completed is NaN.

    Raises: RuntimeError for fewer than two dimensions.
    """
    made = cholesky_factor(input, upper=upper, out=out)
    if check_errors:
        check_info("linalg.cholesky_ex", made[1], NOT_POSITIVE)
    return CholeskyEx(*made)


def cholesky(input: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The lower (or upper) Cholesky factor of positive-definite matrices.

    Shape: `input` `(*, n, n)`, result `(*, n, n)`.
    LinAlgError where one is not positive-definite; differs from PyTorch on an accelerator: NaN.

    Raises: LinAlgError where a matrix is not positive-definite.

    >>> xtensor.linalg.cholesky(xtensor.tensor([[4.0, 0.0], [0.0, 9.0]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    factor, info = cholesky_factor(input, upper=upper)
    check_info("linalg.cholesky", info, NOT_POSITIVE)
    return given(factor, out, "general")


CholeskyEx: Any = structure("linalg_cholesky_ex", ("L", "info"))


# ---- QR ------------------------------------------------------------------------------------------------------------


def _wide_qr_grad(grads: Any, results: Any, input: Array) -> Array:
    """The gradient of `A = Q R` (Q square or tall, R possibly wide).

    For a wide A = [X | Y], X = Q U and Y = Q V: Y's gradient follows from V = Q^H Y, X's from the square factors
    (Roberts and Roberts, "QR and LQ decomposition matrix backpropagation algorithms", 2020).
    """
    gq, gr = grads
    q, r = results
    m, n = input.shape[-2:]
    k = min(m, n)
    if n <= m:
        return _tall_grad(gq, gr, q, r)
    u, gu, gv = r[..., :k], gr[..., :k], gr[..., k:]
    y = input[..., k:]
    gx = _tall_grad(gq + dot(y, adjoint(gv)), gu, q, u)
    return jnp.concatenate([gx, dot(q, gv)], axis=-1)


def _tall_grad(gq: Any, gr: Any, q: Any, r: Any) -> Any:
    inner = dot(r, adjoint(gr)) - dot(adjoint(gq), q)
    low = jnp.tril(inner, -1)
    diagonal = jnp.real(jnp.diagonal(inner, axis1=-2, axis2=-1)).astype(inner.dtype)
    n = inner.shape[-1]
    hermitian = low + adjoint(low) + jnp.where(jnp.eye(n, dtype=bool), diagonal[..., None, :], 0)
    right = gq + dot(q, hermitian)
    return adjoint(lax.linalg.triangular_solve(r, adjoint(right), left_side=True, lower=False))


@general(
    autocast=dict(cpu="float32"),
    out="exact",
    name="linalg_qr",
    columns=(0, 1),
    node="LinalgQr",
    returns=("Q", "R"),
    derivatives=dict(input=lambda grads, results, input, form: _qr_grad(grads, results, input, form)),
)
def qr_of(input: Array, form: str = "reduced") -> tuple[Array, ...]:
    """An orthonormal Q and an upper triangular R with `Q @ R == input`; form: reduced, complete or r (no Q).

    Raises: RuntimeError for bool and integer tensors.
    """
    check_matrix("linalg.qr", input)
    if form not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{form}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    check_floating("linalg.qr", input, "geqrf_cpu")
    if form == "r":
        r = jnp.linalg.qr(input, mode="r")
        return jnp.zeros((0,), input.dtype), r
    q, r = jnp.linalg.qr(input, mode=form)
    return q, r


def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> return_types.linalg_qr:
    """An orthonormal Q and an upper triangular R with `Q @ R == A`; mode: reduced, complete or r (Q left out).

    Shape: `A` `(*, n, m)`; Q `(*, n, k)`, R `(*, k, m)` with k = min(n, m), or k = n if complete.

    Raises: RuntimeError for fewer than two dimensions.

    >>> xtensor.linalg.qr(xtensor.ones(3, 2)).R.shape
    xtensor.Size([2, 2])
    """
    return qr_of(A, mode, out=out)


def _qr_grad(grads: Any, results: Any, input: Any, form: str) -> Any:
    m, n = input.shape[-2:]
    if form == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to require gradients through linalg.qr."
        )
    if form == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    return _wide_qr_grad(grads, results, input)


# ---- eigenvalues ---------------------------------------------------------------------------------------------------


def _gaps(values: Any) -> Any:
    """`1 / (l_j - l_i)`, zero on the diagonal."""
    difference = values[..., None, :] - values[..., :, None]
    n = values.shape[-1]
    same = jnp.eye(n, dtype=bool)
    return jnp.where(
        same, jnp.zeros_like(difference), 1 / jnp.where(same, jnp.ones_like(difference), difference)
    )


def _eigh_grad(grads: Any, results: Any) -> Array:
    gl, gv = grads
    values, vectors = results
    inner = dot(adjoint(vectors), gv) * _gaps(values).astype(vectors.dtype)
    n = values.shape[-1]
    inner = inner + jnp.where(jnp.eye(n, dtype=bool), gl[..., None, :].astype(vectors.dtype), 0)
    whole = dot(dot(vectors, inner), adjoint(vectors))
    return (whole + adjoint(whole)) * np.asarray(0.5, values.dtype)


@general(
    autocast=dict(cpu="float32"),
    out="exact",
    name="linalg_eigh",
    columns=(1,),
    node="LinalgEigh",
    returns=("eigenvalues", "eigenvectors"),
    derivatives=dict(input=_eigh_grad),
)
def eigh(input: Array, UPLO: str = "L") -> tuple[Array, ...]:
    """The eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read.

    Shape: `input` `(*, n, n)`; eigenvalues `(*, n)`, eigenvectors `(*, n, n)` as columns.

    Raises: NotImplementedError for bool and integer tensors.

    >>> xtensor.linalg.eigh(xtensor.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    tensor([2., 3.])
    """
    checks.check_square("linalg.eigh", input)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    own = dtype_of(input)
    if not (own.is_floating_point or own.is_complex) or own.itemsize < 4:
        raise checks.not_implemented_for("linalg_eigh_cpu", own)
    if input.size == 0:
        return jnp.zeros(input.shape[:-1], jnp.real(input).dtype), input
    vectors, values = lax.linalg.eigh(input, lower=UPLO.upper() == "L", symmetrize_input=False)
    return values, vectors


def _eig_grad(grads: Any, results: Any) -> Array:
    """Boeddeker et al., "On the computation of complex-valued gradients" (2017), equations 4.77."""
    gl, gv = grads
    values, vectors = results
    cross = dot(adjoint(vectors), gv)
    # Eigenvectors have unit norm: what a gradient would do to their length is taken out.
    length = jnp.real(jnp.diagonal(cross, axis1=-2, axis2=-1)).astype(cross.dtype)
    overlap = dot(adjoint(vectors), vectors * length[..., None, :])
    inner = (cross - overlap) * jnp.conj(_gaps(values))
    n = values.shape[-1]
    inner = inner + jnp.where(jnp.eye(n, dtype=bool), gl[..., None, :], 0)
    return jnp.linalg.solve(adjoint(vectors), dot(inner, adjoint(vectors)))


def _refuse_unbounded(input: Tensor) -> None:
    """RuntimeError where a matrix on a CPU holds NaN or infinity."""
    if not passes(all_finite, array_of(input)):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")


@general(
    refuses=_refuse_unbounded,
    autocast=dict(cpu="float32"),
    name="linalg_eig",
    columns=(1,),
    node="LinalgEig",
    out=True,
    returns=("eigenvalues", "eigenvectors"),
    derivatives=dict(input=_eig_grad),
)
def eig(input: Array) -> tuple[Array, ...]:
    """The complex eigenvalues and eigenvectors of square matrices, in no particular order.

    Shape: `input` `(*, n, n)`; eigenvalues `(*, n)`, eigenvectors `(*, n, n)` as columns.
    Differs from PyTorch: XLA has this only for CPUs.

    Raises: RuntimeError for bool and integer tensors.
    """
    checks.check_square("linalg.eig", input)
    own = dtype_of(input)
    if not (own.is_floating_point or own.is_complex):
        complex_type(own)
    if own.itemsize < 4:
        raise checks.not_implemented_for("linalg_eig_out_cpu", own)
    if input.size == 0:
        made = input.astype(complex_type(own).numpy)
        return made[..., 0] if made.shape[-1] else jnp.zeros(input.shape[:-1], made.dtype), made
    values, vectors = jnp.linalg.eig(input)
    return values, vectors


def eigvalsh(input: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of Hermitian matrices, ascending.

    Shape: `input` `(*, n, n)`, result `(*, n)`.

    Raises: RuntimeError for fewer than two dimensions.
    """
    return given(eigh(input, UPLO)[0], out, "general")


def eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex eigenvalues of square matrices.

    Shape: `input` `(*, n, n)`, result `(*, n)`.

    Raises: RuntimeError for fewer than two dimensions.
    """
    if input.dim() < 2:
        check_matrix("linalg.eigvals", array_of(input))
    return given(eig(input)[0], out, name="linalg.eigvals")


def given(
    made: Tensor, out: Tensor | None, exact: str | None = None, name: str = "linalg", place: int = 0
) -> Tensor:
    """A result, or the tensor given for it with its values; `name`, where the operator has words of its own for a wrong one."""
    if out is None:
        return made
    write_out(name, out, made, [], exact, place=place)
    return out


# ---- singular values -----------------------------------------------------------------------------------------------


def _svd_grad(grads: Any, results: Any, full_matrices: bool) -> Array:
    """Townsend, "Differentiating the singular value decomposition" (2016), with the gauge of complex factors fixed."""
    gu, gs, gvh = grads
    u, s, vh = results
    k = s.shape[-1]
    m, n = u.shape[-2], vh.shape[-1]
    u, gu, vh, gvh = u[..., :k], gu[..., :k], vh[..., :k, :], gvh[..., :k, :]
    v, gv = adjoint(vh), adjoint(gvh)
    same = jnp.eye(k, dtype=bool)
    squares = (s[..., None, :] - s[..., :, None]) * (s[..., None, :] + s[..., :, None])
    gap = jnp.where(same, jnp.zeros_like(squares), 1 / jnp.where(same, jnp.ones_like(squares), squares))
    gap = gap.astype(u.dtype)

    def skew(x: Any) -> Any:
        return (x - adjoint(x)) * np.asarray(0.5, x.dtype)

    uu, vv = skew(dot(adjoint(u), gu)), skew(dot(adjoint(v), gv))
    sc = s.astype(u.dtype)
    inner = 2 * (uu * gap) * sc[..., None, :] + 2 * sc[..., :, None] * (vv * gap)
    inner = inner + jnp.where(same, gs[..., None, :].astype(u.dtype), 0)
    if jnp.iscomplexobj(u):
        phase = jnp.diagonal(uu, axis1=-2, axis2=-1) / sc
        inner = inner + jnp.where(same, phase[..., None, :], 0)
    total = dot(dot(u, inner), vh)
    if m > k:
        rest = gu / sc[..., None, :]
        total = total + dot(rest - dot(u, dot(adjoint(u), rest)), vh)
    if n > k:
        rest = adjoint(gv) / sc[..., :, None]
        total = total + dot(u, rest - dot(dot(rest, v), vh))
    return total


@general(
    autocast=dict(cpu="float32"),
    out="exact",
    name="linalg_svd",
    columns=(0, 2),
    node="LinalgSvd",
    returns=("U", "S", "Vh"),
    derivatives=dict(input=_svd_grad),
)
def svd_full(input: Array, full_matrices: bool = True) -> tuple[Array, ...]:
    """Singular vectors and values: `U @ diag(S) @ Vh == input`, values descending.

    Raises: RuntimeError for bool and integer tensors.
    """
    check_matrix("linalg.svd", input)
    check_floating("linalg.svd", input, "linalg_svd_cpu")
    m, n = input.shape[-2:]
    if input.size == 0:
        lead, k = input.shape[:-2], min(m, n)
        rows, columns = (m, n) if full_matrices else (k, k)
        eyes = [
            jnp.broadcast_to(jnp.eye(a, b, dtype=input.dtype), (*lead, a, b))
            for a, b in ((m, rows), (columns, n))
        ]
        return eyes[0], jnp.zeros((*lead, k), jnp.real(input).dtype), eyes[1]
    return tuple(jnp.linalg.svd(input, full_matrices=full_matrices))


def svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None
) -> return_types.linalg_svd:
    """The singular value decomposition as `(U, S, Vh)`; `driver` is for CUDA only and must be None.

    Shape: `A` `(*, n, m)`; U `(*, n, n)`, S `(*, k)`, Vh `(*, m, m)` with k = min(n, m), or U `(*, n, k)` and Vh `(*, k, m)`.

    Raises: RuntimeError for fewer than two dimensions.

    >>> xtensor.linalg.svd(xtensor.tensor([[3.0, 0.0], [0.0, 2.0]])).S
    tensor([3., 2.])
    """
    if driver is not None:
        raise RuntimeError(
            "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    return svd_full(A, full_matrices, out=out)


def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values, descending.

    Shape: `A` `(*, n, m)`, result `(*, min(n, m))`.

    Raises: RuntimeError for fewer than two dimensions.
    """
    return given(svd(A, False, driver=driver)[1], out, "general")


svd_full.operator.returns = structure("linalg_svd", ("U", "S", "Vh"))
