"""The standard's `linalg` extension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..dtypes import dtype
from ..ops.linalg import decompositions, least_squares, linear_algebra, matrix_norms, tensor_systems
from ..ops.linalg import matmul as products
from ..ops.reduce import cumulative, norms
from ..ops.shape import joining
from ..tensor import Tensor
from . import statistics
from .array import Array, made, plain
from .manipulation import Axes
from .matrices import matmul, matrix_transpose, tensordot, vecdot
from .promotion import check, operands

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class Eigen(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QR(NamedTuple):
    """What `qr` returns."""

    Q: Array
    R: Array


class SlogDet(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


class SVD(NamedTuple):
    """What `svd` returns."""

    U: Array
    S: Array
    Vh: Array


def floating(name: str, x: Tensor) -> Tensor:
    check(name, "floating", x.dtype)
    return plain(x)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Array:
    """The lower (or upper) triangular factor of a positive-definite matrix."""
    return made(decompositions.cholesky(floating("cholesky", x), upper=upper))


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Array:
    """The cross products of vectors of size 3 along a dimension; the others broadcast."""
    a, b = operands("cross", "numeric", x1, x2)
    if not -min(a.dim(), b.dim()) <= axis < 0:
        raise ValueError("cross() needs an axis from the end that both arrays have")
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError("cross() is for vectors of size 3")
    a, b = joining.broadcast_tensors(a, b)
    return made(cumulative.cross_along(a, b, dim=axis))


def det(x: Tensor, /) -> Array:
    """The determinants of matrices."""
    return made(linear_algebra.det(floating("det", x)))


def diagonal(x: Tensor, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices, as a view."""
    return made(tensor_systems.diagonal(plain(x), offset=offset))


def eigh(x: Tensor, /) -> Eigen:
    """The eigenvalues in ascending order and the eigenvectors of symmetric or Hermitian matrices."""
    values, vectors = decompositions.eigh(floating("eigh", x))
    return Eigen(made(values), made(vectors))


def eigvalsh(x: Tensor, /) -> Array:
    """The eigenvalues of symmetric or Hermitian matrices, in ascending order."""
    return made(decompositions.eigvalsh(floating("eigvalsh", x)))


def inv(x: Tensor, /) -> Array:
    """The inverses of matrices."""
    return made(linear_algebra.inv(floating("inv", x)))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norms of matrices: `fro`, `nuc`, of 1, 2, infinity, or their negatives."""
    if ord is None:
        ord = "fro"
    return made(matrix_norms.matrix_norm(floating("matrix_norm", x), ord, keepdim=keepdims))


def matrix_power(x: Tensor, n: int, /) -> Array:
    """The powers of square matrices."""
    return made(linear_algebra.matrix_power(floating("matrix_power", x), n))


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Array:
    """The ranks of matrices: how many singular values are above `rtol` times the greatest."""
    limit = plain(rtol) if isinstance(rtol, Tensor) else rtol
    return made(least_squares.matrix_rank(floating("matrix_rank", x), rtol=limit))


def outer(x1: Tensor, x2: Tensor, /) -> Array:
    """The products of every element of a vector with every element of another."""
    return made(products.outer(*operands("outer", "numeric", x1, x2)))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Array:
    """The pseudo-inverses of matrices."""
    limit = plain(rtol) if isinstance(rtol, Tensor) else rtol
    return made(least_squares.pinv(floating("pinv", x), rtol=limit))


def qr(x: Tensor, /, *, mode: str = "reduced") -> QR:
    """The orthogonal and upper triangular factors of matrices."""
    q, r = decompositions.qr(floating("qr", x), mode)
    return QR(made(q), made(r))


def slogdet(x: Tensor, /) -> SlogDet:
    """The signs and the logarithms of the magnitudes of determinants."""
    sign, logabsdet = linear_algebra.slogdet(floating("slogdet", x))
    return SlogDet(made(sign), made(logabsdet))


def solve(x1: Tensor, x2: Tensor, /) -> Array:
    """The solutions of `x1 @ x = x2`, in which `x2` is a vector if it has one dimension, else matrices."""
    a, b = operands("solve", "floating", x1, x2)
    if b.dim() == 1:
        return made(linear_algebra.solve(a, b.unsqueeze(-1)).squeeze(-1))
    # PyTorch takes some stacks of matrices for stacks of vectors: not where both have the same number of dimensions.
    extra = a.dim() - b.dim()
    return made(linear_algebra.solve(a, b.reshape(*(1,) * extra, *b.shape) if extra > 0 else b))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVD:
    """The singular value decompositions of matrices."""
    u, s, vh = decompositions.svd(floating("svd", x), full_matrices)
    return SVD(made(u), made(s), made(vh))


def svdvals(x: Tensor, /) -> Array:
    """The singular values of matrices, in descending order."""
    return made(decompositions.svdvals(floating("svdvals", x)))


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Array:
    """The sums of the diagonals of matrices, of integers in 64 bits."""
    return statistics.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> Array:
    """The norms of vectors along some dimensions, by default of all elements."""
    source = floating("vector_norm", x)
    dims: Sequence[int] | int | None = axis
    if axis == ():
        return made(source.abs() if ord else (source != 0).to(source.abs().dtype))
    return made(norms.vector_norm(source, ord, dims, keepdims))
