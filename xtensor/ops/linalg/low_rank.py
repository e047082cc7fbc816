"""Approximations of low rank, and a few extreme eigenvalues, of large matrices.

Halko, Martinsson and Tropp, "Finding structure with randomness" (2009), algorithms 4.4 and 5.1; Knyazev, "Toward the
optimal preconditioned eigensolver" (2001).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...engine import is_grad_enabled, no_grad
from ...tensor import Tensor, sizes_of
from ..create.random import randn
from ..shape.joining import cat
from .decompositions import cholesky, eigh, qr_of, svd
from .linear_algebra import solve_triangular
from .matmul import matmul

__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]


def orthonormal_range(A: Tensor, q: int, niter: int) -> Tensor:
    """An orthonormal basis of what A makes of q random vectors, refined by `niter` subspace iterations."""
    # Of integers too the vectors are floats, which the product then refuses.
    dtype = A.dtype if A.dtype.is_floating_point or A.dtype.is_complex else dtypes.float32
    basis = qr_of(matmul(A, randn(sizes_of(A)[-1], q, dtype=dtype, device=A.device)))[0]
    for _ in range(niter):
        basis = qr_of(matmul(A.mH, basis))[0]
        basis = qr_of(matmul(A, basis))[0]
    return basis


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The q largest singular values of `A - M` and their vectors, as `(U, S, V)`, about; q random vectors are drawn.

    Raises: RuntimeError for bool and integer tensors.
    """
    q = 6 if q is None else q
    m, n = tuple(sizes_of(A))[-2:]
    if q < 0 or q > min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if M is not None:
        M = M.expand(tuple(sizes_of(A)))
    difference = A if M is None else A - M
    wide = m < n
    tall = difference.mH if wide else difference
    basis = orthonormal_range(tall, q, 2 if niter is None else niter)
    small = matmul(basis.mH, tall)
    u, s, vh = svd(small, False)
    u, v = matmul(basis, u), vh.mH
    return (v, s, u) if wide else (u, s, v)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """The q (6) principal components of the rows of A, about, as `(U, S, V)`; with `center` the columns' means are taken off.

    Raises: RuntimeError for bool and integer tensors.
    """
    m, n = tuple(sizes_of(A))[-2:]
    if q is None:
        q = min(6, m, n)
    elif not (0 <= q <= min(m, n)):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


def decomposed(A: Tensor, found: Tensor, top: bool) -> tuple[Tensor, Tensor]:
    """The eigenvalues and vectors of symmetric A of which `found` are the vectors, by all of them: what gradients follow."""
    values, vectors = eigh((A + A.mT) / 2)
    if top:
        values, vectors = values.flip(-1), vectors.flip(-1)
    count = sizes_of(found)[-1]
    values, vectors = values.narrow(-1, 0, count), vectors.narrow(-1, 0, count)
    with no_grad():
        sides = (vectors * found).sum(-2, keepdim=True).sign()
    return values, vectors * sides


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[Any], None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The k (1) largest (or smallest) eigenvalues, and vectors, of `A x = e B x` for symmetric A and positive-definite B.

    X: first guesses; iK: a preconditioner; tol: the relative residual that is enough, tested on the host. `method` is
    "ortho" or "basic". Gradients are those of the eigenvectors' own decomposition. Differs from PyTorch: both run the one
    orthonormalizing method.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    rows = sizes_of(A)[-2]
    if A.dim() < 2 or sizes_of(A)[-1] != rows:
        raise RuntimeError("lobpcg: A must be batches of square matrices")
    if is_grad_enabled() and (A.requires_grad or (B is not None and B.requires_grad)):
        if B is not None:
            raise ValueError(
                "lobpcg.backward does not support derivatives when B is given. Only the case B=I is implemented."
            )
        with no_grad():
            found = lobpcg(
                A,
                k,
                None,
                X,
                n,
                iK,
                niter,
                tol,
                largest,
                method,
                tracker,
                ortho_iparams,
                ortho_fparams,
                ortho_bparams,
            )
        return decomposed(A, found[1], largest is None or largest)
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"lobpcg: unknown method {method!r}")
    count = (1 if X is None else sizes_of(X)[-1]) if k is None else k
    width = count if n is None else n
    width = sizes_of(X)[-1] if X is not None else width
    if rows < 3 * width:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller than 3 x the number of "
            f"requested eigenpairs (={width})"
        )
    lead = tuple(sizes_of(A))[:-2]
    limit = 1000 if niter is None or niter < 0 else niter
    enough = (1e-5 if A.dtype.itemsize == 4 else 1e-10) if tol is None else tol
    top = largest is None or largest

    def image(x: Tensor) -> Tensor:
        return x if B is None else matmul(B, x)

    def orthonormal(x: Tensor) -> Tensor:
        """Orthonormal with respect to B: by QR, and where there is a B by the Cholesky factor of the products."""
        x = qr_of(x)[0]
        if B is None:
            return x
        factor = cholesky(matmul(x.mH, image(x)))
        return solve_triangular(factor.mH, x, upper=True, left=False)

    def ritz(basis: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = eigh(matmul(basis.mH, matmul(A, basis)))
        if top:
            values, vectors = values.flip(-1), vectors.flip(-1)
        return values.narrow(-1, 0, width), vectors.narrow(-1, 0, width)

    x = orthonormal(randn(*lead, rows, width, dtype=A.dtype, device=A.device) if X is None else X)
    values, vectors = ritz(x)
    x = matmul(x, vectors)
    direction: Tensor | None = None
    size = A.abs().sum((-2, -1)).sqrt()
    for step in range(limit + 1):
        residual = matmul(A, x) - image(x) * values.unsqueeze(-2)
        error = (residual * residual).sum(-2).sqrt() / (size.unsqueeze(-1) * (values.abs() + 1))
        if tracker is not None:
            tracker(dict(istep=step, X=x, E=values, R=residual, rerr=error))
        if step == limit or bool((error.narrow(-1, 0, count) <= enough).all()):
            break
        search = residual if iK is None else matmul(iK, residual)
        parts = [x, search] if direction is None else [x, search, direction]
        basis = orthonormal(cat(tuple(parts), -1))
        values, vectors = ritz(basis)
        new = matmul(basis, vectors)
        direction = new - matmul(x, matmul(x.mH, image(new)))
        x = new
    return values.narrow(-1, 0, count), x.narrow(-1, 0, count)
