"""Linear systems in other shapes: tensors as matrices, triangular systems of old, Vandermonde matrices, diagonals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import checks
from ...operators.attach import attach_methods
from ...operators.autocast import cast_for
from ...operators.functions.overloads import of_tensors
from ...operators.operator import structure
from ...tensor import Tensor, sizes_of
from ..shape.joining import cat
from ..shape.shapes import diagonal as diagonal_of
from .decompositions import given
from .linear_algebra import inv, solve, solve_triangular

if TYPE_CHECKING:
    from ... import return_types

__all__ = ["triangular_solve"]

Solution: Any = structure("triangular_solve", ("solution", "cloned_coefficient"))


@of_tensors("linalg_tensorinv")
def tensorinv(input: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the map that `tensordot(input, B, input.dim() - ind)` is.

    Shape: `input` `(*a, *b)`, its first `ind` sizes being `a`; result `(*b, *a)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool and integer tensors.
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    sizes = tuple(sizes_of(input))
    rows, columns = math.prod(sizes[:ind]), math.prod(sizes[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}"
        )
    return given(
        inv(input.reshape((rows, columns))).reshape((*sizes[ind:], *sizes[:ind])),
        out,
        name="linalg.tensorinv",
    )


@of_tensors("linalg_tensorsolve")
def tensorsolve(
    input: Tensor, other: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The X with `tensordot(input, X, X.dim()) == other`, the dimensions `dims` of input first moved to its end.

    Shape: `input` `(*b, *x)`, `other` `(*b)`, result `(*x)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; RuntimeError for bool and
    integer tensors.
    """
    if dims is not None:
        moved = [checks.wrap_dim(d, input.dim()) for d in dims]
        input = input.movedim(tuple(moved), tuple(range(input.dim() - len(moved), input.dim())))
    sizes = tuple(sizes_of(input))
    tail = sizes[other.dim() :]
    rows, columns = other.numel(), math.prod(tail)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but "
            f"got {columns} != {rows}"
        )
    return given(
        solve(input.reshape((columns, columns)), other.reshape((-1,))).reshape(tail),
        out,
        name="linalg.tensorsolve",
    )


@of_tensors()
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> return_types.triangular_solve:
    """The X with `A @ X == input` for triangular A, and a copy of A; `linalg.solve_triangular` has taken its place.

    Shape: `input` `(*, n, k)`, `A` `(*, n, n)`; solution `(*, n, k)` and the copy `(*, n, n)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; TypeError for bool and
    integer tensors.
    """
    input, A = cast_for(input, A, cpu="float32")
    for name, x in (("b", input), ("A", A)):
        if x.dim() < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {x.dim()} dimensions "
                "instead"
            )
    m, n = tuple(sizes_of(A))[-2:]
    if m != n:
        raise RuntimeError(f"A must be batches of square matrices, but they are {m} by {n} matrices")
    if n != sizes_of(input)[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {n} by {n} but each b matrix is "
            f"{sizes_of(input)[-2]} by {sizes_of(input)[-1]}"
        )
    turned = A.mT if transpose else A
    solution = solve_triangular(turned, input, upper=upper is not transpose, unitriangular=unitriangular)
    copied = (
        A.expand((*tuple(sizes_of(solution))[:-2], n, n)).mT.contiguous().mT
    )  # by columns, as LAPACK takes it
    if out is None:
        return Solution(solution, copied)
    return Solution(given(solution, out[0], "general"), given(copied, out[1], "general"))


@of_tensors("linalg_vander")
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of the elements of vectors, as rows: Vandermonde matrices.

    Shape: `x` `(*, n)`, result `(*, n, N)`; N is n where not given.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool tensors.
    """
    own = x.dtype
    inexact = own.is_floating_point or own.is_complex
    narrow = inexact and own.itemsize < (8 if own.is_complex else 4)
    if narrow or not (inexact or own.is_integral) or own.name == "bool":
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {own.scalar_name}"
        )
    if x.dim() == 0:
        x = x.unsqueeze(-1)
    count = sizes_of(x)[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    sizes = tuple(sizes_of(x))
    repeated = x.unsqueeze(-1).expand((*sizes, count - 1)).cumprod(-1)
    return cat((x.new_ones((*sizes, 1), dtype=repeated.dtype), repeated), -1)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, as a view: of the last two dimensions by default.

    Shape: `A` `(*, n, m)`, result `(*, k)`, k the diagonal's length.

    Raises: TypeError for arguments of other kinds.
    """
    return diagonal_of(A, offset, dim1, dim2)


attach_methods(triangular_solve)
