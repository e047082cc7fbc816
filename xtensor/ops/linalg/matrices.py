"""Decompositions under their older names, outside `linalg`: `cholesky`, `qr`, `svd`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...operators.attach import attach_methods
from ...operators.operator import structure
from ...tensor import Tensor, sizes_of
from . import decompositions

if TYPE_CHECKING:
    from ... import return_types

__all__ = ["cholesky", "qr", "svd"]

QR: Any = structure("qr", ("Q", "R"))
SVD: Any = structure("svd", ("U", "S", "V"))


def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The lower (or upper) Cholesky factor of positive-definite matrices; see `linalg.cholesky`.

    Shape: `input` `(*, n, n)`, result `(*, n, n)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool and integer tensors.
    """
    return decompositions.given(decompositions.cholesky(input, upper=upper), out, name="cholesky")


def qr(input: Tensor, some: bool = True, *, out: Any = None) -> return_types.qr:
    """An orthonormal Q and an upper triangular R; `some=False` completes Q. See `linalg.qr`.

    Shape: `input` `(*, n, m)`; Q `(*, n, k)`, R `(*, k, m)` with k = min(n, m), or k = n where not `some`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool and integer tensors.
    """
    return QR(*decompositions.qr(input, "reduced" if some else "complete", out=out))


def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> return_types.svd:
    """Singular vectors and values as `(U, S, V)`, V not transposed; see `linalg.svd`.

    Shape: `input` `(*, n, m)`; U `(*, n, k)`, S `(*, k)`, V `(*, m, k)` with k = min(n, m);
    U and V square where not `some`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool and integer tensors.
    """
    if not compute_uv:
        m, n = sizes_of(input)[-2:]
        lead = tuple(sizes_of(input)[:-2])
        values = decompositions.svdvals(input)
        return SVD(input.new_zeros((*lead, m, m)), values, input.new_zeros((*lead, n, n)))
    u, s, vh = decompositions.svd(input, not some)
    made = SVD(u, s, vh.mH)
    if out is None:
        return made
    return SVD(*[decompositions.given(m, o, "general") for m, o in zip(made, out, strict=True)])


attach_methods(cholesky, qr, svd)
