"""Norms of matrices, `linalg.norm` of vectors and matrices, and condition numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ... import checks, dtypes
from ...operators.autocast import cast_for
from ...operators.functions.overloads import numpy_names
from ...tensor import Tensor, array_of, sizes_of
from ..reduce.norms import refuse_complex_order, vector_norm
from .decompositions import check_matrix, given, svdvals
from .linear_algebra import inverses

__all__: list[str] = []


# ---- norms of matrices ---------------------------------------------------------------------------------------------


@numpy_names
def matrix_norm(
    input: Tensor,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: dtypes.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The matrix norm over two dimensions: fro, nuc, or of order 1, -1, 2, -2, inf, -inf.

    Shape: `input` `(*, n, m)`, result `(*)`, or `(*, 1, 1)` if `keepdim`.

    Raises: RuntimeError for fewer than two dimensions.
    """
    name = "linalg.matrix_norm"
    if dtype is None:
        (input,) = cast_for(input, accelerator="float32")
    checks.check_floating(name, input.dtype)
    check_matrix(name, array_of(input))
    refuse_complex_order(name, ord)
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    dims = tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {', '.join(map(str, dims))}")
    a, b = (checks.wrap_dim(d, input.dim()) for d in dims)
    if a == b:
        raise RuntimeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    if ord == "fro":
        return given(vector_norm(input, 2, (a, b), keepdim, dtype=dtype), out, name=name)
    x = input if dtype is None else input.to(dtype)
    if ord == "nuc" or (not isinstance(ord, str) and abs(ord) == 2):
        values = svdvals(x.movedim((a, b), (-2, -1)))
        # The largest of none is 0, as the sum is.
        none = sizes_of(values)[-1] == 0
        summing = ord == "nuc" or (ord == 2 and none)
        made = values.sum(-1) if summing else values.amax(-1) if ord == 2 else values.amin(-1)
        if keepdim:
            for d in sorted((a, b)):
                made = made.unsqueeze(d)
        return given(made, out, name=name)
    if isinstance(ord, str) or abs(ord) not in (1, float("inf")):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    summed, kept = (a, b) if abs(ord) == 1 else (b, a)
    totals = vector_norm(x, 1, summed, True)
    if ord > 0:
        empty = sizes_of(totals)[kept] == 0
        made = totals.sum(kept, keepdim=True) if empty else totals.amax(kept, keepdim=True)
    else:
        made = totals.amin(kept, keepdim=True)
    if not keepdim:
        for d in sorted((a, b), reverse=True):
            made = made.squeeze(d)
    return given(made, out, name=name)


@numpy_names
def linalg_norm(
    input: Tensor,
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
) -> Tensor:
    """A vector norm (one dimension, or all for `ord=None`) or a matrix norm (two dimensions).

    Shape: `input` `(*)`, result without the dimensions `dim`, or with size 1 there if `keepdim`; `()` without
    `dim`.

    Raises: RuntimeError for `dim` of more than two dimensions, or an order that is none.

    >>> xtensor.linalg.norm(xtensor.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if isinstance(dim, int):
        dim = (dim,)
    if isinstance(ord, str) and (dim is not None or input.dim() in (1, 2)):
        return matrix_norm(input, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype, out=out)
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and ord is not None and input.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.dim()}D."
        )
    if ord is not None and ((dim is not None and len(dim) == 2) or (dim is None and input.dim() == 2)):
        return matrix_norm(input, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype, out=out)
    return vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


def cond(input: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition numbers of matrices: the norm times the norm of the inverse.

    Shape: `input` `(*, n, m)`, result `(*)`; square matrices but for `p` None, 2 and -2.

    Raises: RuntimeError for fewer than two dimensions, and for other orders.
    """
    if input.dim() < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        values = svdvals(input)
        if input.numel() == 0:
            return given(values.new_zeros(tuple(sizes_of(input)[:-2])), out, name="linalg.cond")
        top, low = values.select(-1, 0), values.select(-1, sizes_of(values)[-1] - 1)
        return given(low / top if p == -2 else top / low, out, name="linalg.cond")
    infinity = float("inf")
    if p not in ("fro", "nuc", 1, -1, infinity, -infinity):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    order = f"{p:.6f}" if isinstance(p, float) and abs(p) != infinity else p if p is not True else 1
    checks.check_square(f"linalg.cond(ord={order})", array_of(input))
    inverse, info = inverses(input)
    own, other = matrix_norm(input, p), matrix_norm(inverse, p)
    if p == "nuc":
        other = other.where(info == 0, infinity)
    made = own * other
    # An inverse that is not there has the norm infinity.
    return given(
        made if p == "nuc" else made.nan_to_num(infinity, infinity, -infinity), out, name="linalg.cond"
    )
