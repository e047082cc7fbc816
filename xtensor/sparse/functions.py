"""The functions of `torch.sparse`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import checks, dtypes
from ..linalg import solve
from ..operators.attach import attach_methods, named
from ..ops.create.ingest import from_numpy
from ..tensor import Tensor
from . import products, reduced_products, reductions
from .construct import check_sparse_tensor_invariants
from .convert import convert, densify
from .everywhere import everywhere
from .layout import HANDLERS, SparseTensor, given, host, is_coo
from .parts import coalesce, elements, flat_elements, kind_of, of_pattern, pattern_of
from .pattern import Pattern

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "spsolve",
    "sum",
]


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices of which one is sparse: dense with a dense one, sparse of two sparse ones.

    reduce: how the terms of each element are folded, of a CSR and a dense matrix: `"sum"`, `"mean"`, `"amax"` (or `"max"`) or `"amin"` (`"min"`).

    >>> a = xtensor.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> xtensor.sparse.mm(a, xtensor.eye(2))
    tensor([[0., 2.],
            [0., 0.]])
    """
    if reduce is not None:
        return given(out, reduced_products.reduced(mat1, mat2, reduce), "mm")
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return mat1.mm(mat2)
    made = products.mm(mat1, mat2)
    return given(out, made, "mm")


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """`beta * mat + alpha * mat1 @ mat2` with a sparse `mat1`.

    >>> a = xtensor.eye(2).to_sparse()
    >>> xtensor.sparse.addmm(xtensor.ones(2, 2), a, xtensor.ones(2, 2))
    tensor([[2., 2.],
            [2., 2.]])
    """
    return products.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0, out: Tensor | None = None
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` at the places of a CSR matrix; the product is computed nowhere else."""
    assert isinstance(input, SparseTensor)
    return products.sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha, out=out)


def sum(input: Tensor, dim: Any = None, dtype: dtypes.dtype | None = None) -> Tensor:
    """The sum of all elements, or over some dimensions: sparse as long as a sparse dimension is left.

    >>> a = xtensor.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse()
    >>> xtensor.sparse.sum(a, 0).to_dense()
    tensor([0., 5.])
    """
    if not isinstance(input, SparseTensor):
        return input.sum(dtype=dtype) if dim is None else input.sum(dim, dtype=dtype)
    if dim is None:
        # Unlike the method's, the gradient has only the elements that are stored.
        return flat_elements(coalesce(input)).sum(dtype=dtype)
    if input.dim() and dim not in ((), []):
        found = reductions.total_over(input, reductions.dims_of(dim, input.dim()), False, dtype, masked=True)
    else:
        found = reductions.total(input, dim, dtype=dtype)
    if isinstance(found, SparseTensor) and dtype is None and found.dtype is not input.dtype:
        return found.to(input.dtype)
    return found


def softmax(input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None) -> Tensor:
    """The softmax along a dimension over the elements that are stored.

    >>> a = xtensor.tensor([[0.0, 2.0], [1.0, 1.0]]).to_sparse()
    >>> xtensor.sparse.softmax(a, 1).to_dense()
    tensor([[0.0000, 1.0000],
            [0.5000, 0.5000]])
    """
    assert isinstance(input, SparseTensor)
    return reductions.softmax(input, dim, False, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None) -> Tensor:
    """The logarithm of `softmax`."""
    assert isinstance(input, SparseTensor)
    return reductions.softmax(input, dim, True, dtype)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A matrix with given diagonals: row `i` of `diagonals` lies at `offsets[i]`, by columns.

    >>> xtensor.sparse.spdiags(xtensor.tensor([[1.0, 2.0]]), xtensor.tensor([1]), (2, 2)).to_dense()
    tensor([[0., 2.],
            [0., 0.]])
    """
    lines = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    given = host(offsets).reshape(-1)
    checks.check(diagonals.dim() in (1, 2), "Diagonals must be vector or matrix")
    checks.check(len(shape) == 2, "Output shape must be 2d")
    checks.check(offsets.dim() < 2, "Offsets must be scalar or vector")
    checks.check(
        layout in (None, dtypes.sparse_coo, dtypes.sparse_csc, dtypes.sparse_csr),
        "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {}",
        kind_of(layout or dtypes.sparse_coo),
    )
    checks.check(len(given) == lines.shape[0], "Number of diagonals ({}) does not match the number of offsets ({})", lines.shape[0], len(given))  # fmt: skip
    checks.check(len(set(given.tolist())) == len(given), "Offset tensor contains duplicate values")
    checks.check(
        offsets.dtype is dtypes.int64,
        "Offset Tensor must have dtype Long but got {}",
        offsets.dtype.scalar_name,
    )
    rows, columns = shape
    line, column = np.meshgrid(np.arange(len(given)), np.arange(min(columns, lines.shape[1])), indexing="ij")
    row = column - given[:, None]
    inside = (row >= 0) & (row < rows)
    index = np.stack([row[inside], column[inside]]).astype(np.int64)
    values = lines[from_numpy(line[inside]), from_numpy(column[inside])]
    made = of_pattern(Pattern(index, (rows, columns)), values, (rows, columns), False)
    return made if layout in (None, dtypes.sparse_coo) else convert(made, layout)


def spsolve(input: Tensor, other: Tensor, *, left: bool = True) -> Tensor:
    """The solution of `input @ x = other` with a sparse matrix.

    Differs from PyTorch: it is there on every device, and found as of a dense matrix.
    """
    assert isinstance(input, SparseTensor)
    return solve(densify(input), other, left=left)


def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """A gradcheck for functions with sparse arguments or results: it is given their elements.

    With `masked=True` elements that are not stored are no variables; otherwise they are stored zeros.
    """

    def checked(func: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any) -> bool:
        masked = kwargs.pop("masked", False)
        given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        whole = [t if masked or not isinstance(t, SparseTensor) else everywhere(t) for t in given]
        parts = [coalesce(t) if is_coo(t) else t for t in whole]

        def dense_function(*values: Any) -> Any:
            whole = [
                remade(p, v) if isinstance(p, SparseTensor) else v for p, v in zip(parts, values, strict=True)
            ]
            found = func(*whole)
            many = isinstance(found, (tuple, list))
            shown = [densify(f) if isinstance(f, SparseTensor) else f for f in (found if many else [found])]
            return tuple(shown) if many else shown[0]

        values = [
            elements(p).detach().clone().requires_grad_(p.requires_grad) if isinstance(p, SparseTensor) else p
            for p in parts
        ]
        return gradcheck(dense_function, tuple(values), *args, **kwargs)

    return checked


def remade(sparse: SparseTensor, values: Tensor) -> Tensor:
    """The elements of a sparse tensor replaced by others."""
    if is_coo(sparse):
        return of_pattern(pattern_of(sparse), values, tuple(sparse.shape))
    coo = of_pattern(
        pattern_of(sparse),
        values.reshape(pattern_of(sparse).nnz, *sparse.shape[sparse._held[1].dim() + 1 :]),
        tuple(sparse.shape),
    )
    blocks = tuple(sparse._held[-1].shape[sparse._held[1].dim() :][:2])
    return convert(coo, sparse._layout, blocks if "bs" in str(sparse._layout) else None)


def spmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`sparse.mm`, by an older name."""
    return mm(mat1, mat2)


def dsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`sparse.mm`, by an older name."""
    return mm(mat1, mat2)


def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one, as a sparse tensor.

    Shape: `input` `(n, k)`, `mat2` `(k, m)`, result `(n, m)`.

    Raises: RuntimeError for dense tensors, and where sizes do not fit.
    """
    if not isinstance(input, SparseTensor):
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    return products.smm(input, mat2)


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one, as a tensor with a sparse dimension of rows."""
    assert isinstance(mat1, SparseTensor)
    return products.hspmm(mat1, mat2)


def hsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`hspmm`, by an older name."""
    return hspmm(mat1, mat2)


def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2` of a sparse `input` and `mat1`, as a sparse tensor.

    Shape: `input` `(n, m)`, `mat1` `(n, k)`, `mat2` `(k, m)`, result `(n, m)`.

    Raises: RuntimeError for dense tensors, and where sizes do not fit.
    """
    if not (isinstance(input, SparseTensor) and isinstance(mat1, SparseTensor)):
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    return products.sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`sspaddmm`, by an older name."""
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """Give a sparse tensor another one's sizes and number of sparse dimensions, in place."""
    assert isinstance(input, SparseTensor)
    return HANDLERS["resize_as_sparse_"](input, the_template)


def part_copied(name: str) -> Callable[[Tensor], Tensor]:
    """`indices_copy` and the like: a copy of a part of a sparse tensor."""

    def copied(input: Tensor) -> Tensor:
        return HANDLERS[name](input).clone() if isinstance(input, SparseTensor) else getattr(input, name)()

    HANDLERS[f"{name}_copy"] = copied
    return named(copied, f"{name}_copy", f"A copy of the {name.replace('_', ' ')} of a sparse tensor.")


indices_copy, values_copy = part_copied("indices"), part_copied("values")
crow_indices_copy, col_indices_copy = part_copied("crow_indices"), part_copied("col_indices")
ccol_indices_copy, row_indices_copy = part_copied("ccol_indices"), part_copied("row_indices")
attach_methods(smm=smm, sspaddmm=sspaddmm)
