"""Products with sparse matrices: of any layout, with dense and sparse ones, in every order; no matrix becomes dense for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import checks, devices, dtypes
from ..ops.create.creation import zeros
from ..ops.shape.joining import cat
from ..tensor import Tensor, array_of, wrap
from ..xla.x64 import call
from .convert import as_coo, compress, densify
from .elementwise import added, restored
from .kernels import merged_sum, sampled, spread
from .layout import SparseTensor, elements, given, handles, is_coo, linked, with_elements
from .parts import at_places, coalesce, dense_dims, flat_elements, of_pattern, pattern_of, picked
from .pattern import Pattern, counted

__all__ = ["mm", "product"]


def arrays_of(pattern: Pattern, like: Tensor) -> tuple[Any, Any, Any]:
    """The rows of bounded length of a pattern, on a device."""
    found = pattern.__dict__.get("arrays")
    if found is None or found[0] is not like.device:
        parts = [None if part is None else devices.put(part, like.device) for part in pattern.rows]
        found = pattern.__dict__["arrays"] = (like.device, *parts)
    return found[1], found[2], found[3]


def spread_values(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """The product of the matrix with these elements and a dense one; followed by autograd from both."""
    slots, columns, rows = arrays_of(pattern, values)
    parts = call(spread, array_of(values), array_of(dense), slots, columns)
    if rows is not None:
        parts = call(merged_sum(pattern.sizes[0]), parts, rows)
    made = wrap(parts if parts.dtype == values.dtype.numpy else parts.astype(values.dtype.numpy))

    def transposed(grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        back = (
            None if not values.requires_grad else sampled_values(pattern, grad, dense.conj().resolve_conj())
        )
        turned = (
            spread_values(pattern.transposed, values.conj().resolve_conj(), grad)
            if dense.requires_grad
            else None
        )
        return back, turned

    return linked("SparseMmBackward0", made, (values, dense), transposed)


def sampled_values(pattern: Pattern, first: Tensor, second: Tensor) -> Tensor:
    """At each place of a pattern the product of a row of `first` and a row of `second`; followed by autograd."""
    slots, columns, rows = arrays_of(pattern, first)
    made = wrap(call(sampled(pattern.nnz), array_of(first), array_of(second), slots, rows, columns))

    def transposed(grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        one = spread_values(pattern, grad, second.conj().resolve_conj()) if first.requires_grad else None
        two = (
            spread_values(pattern.transposed, grad, first.conj().resolve_conj())
            if second.requires_grad
            else None
        )
        return one, two

    return linked("SampledProductBackward0", made, (first, second), transposed)


def product(sparse: SparseTensor, dense: Tensor) -> Tensor:
    """A sparse matrix times a dense one."""
    pattern = matrix(sparse)
    if not pattern.nnz or 0 in dense.shape:
        nothing = flat_elements(sparse).sum() * 0 + dense.sum() * 0
        shape = (sparse.shape[0], dense.shape[1])
        return zeros(shape, dtype=dense.dtype, device=dense.device) + nothing
    return spread_values(pattern, flat_elements(sparse), dense)


def matrix(sparse: SparseTensor) -> Pattern:
    """The pattern of a matrix, which keeps what is worked out of it."""
    return pattern_of(sparse)


def check_product(a: Tensor, b: Tensor) -> None:
    checks.check(a.dim() == 2, "mat1 must be a matrix, got {}-D tensor", a.dim())
    checks.check(b.dim() == 2, "mat2 must be a matrix, got {}-D tensor", b.dim())
    checks.check(
        a.shape[1] == b.shape[0],
        "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
        a.shape[0],
        a.shape[1],
        b.shape[0],
        b.shape[1],
    )
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        words, kinds = "mat1 dtype {} does not match mat2 dtype {}", (a.dtype, b.dtype)
    else:
        words = "expected scalar type {} but found {}"
        kinds = (a.dtype, b.dtype) if isinstance(a, SparseTensor) else (b.dtype, a.dtype)
    checks.check(a.dtype is b.dtype, words, *[kind.scalar_name for kind in kinds])


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices of which one is sparse: sparse if both are."""
    check_product(input, mat2)
    if isinstance(input, SparseTensor):
        if isinstance(mat2, SparseTensor):
            made = sparse_product(input, mat2)
            if input._layout is dtypes.sparse_csc:
                return compress(made, dtypes.sparse_csr, None)  # as PyTorch's
            return made if is_coo(input) else restored(made, input)
        return product(input, mat2)
    assert isinstance(mat2, SparseTensor)
    flipped = spread_or_zeros(mat2, input)
    return flipped.t()


def spread_or_zeros(sparse: SparseTensor, dense: Tensor) -> Tensor:
    """The transpose of a sparse matrix times that of a dense one."""
    pattern = pattern_of(sparse)
    if not pattern.nnz or 0 in dense.shape:
        nothing = flat_elements(sparse).sum() * 0 + dense.sum() * 0
        return zeros((sparse.shape[1], dense.shape[0]), dtype=dense.dtype, device=dense.device) + nothing
    return spread_values(pattern.transposed, flat_elements(sparse), dense.t())


def sparse_product(first: SparseTensor, second: SparseTensor) -> SparseTensor:
    """The product of two sparse matrices: each element of one with the row of the other that it meets."""
    a, b = coalesce(as_coo(first)), coalesce(as_coo(second))
    at, bt = pattern_of(a), pattern_of(b)
    starts = counted(bt.indices[0], bt.sizes[0])
    lengths = np.diff(starts)[at.indices[1]]
    left = np.repeat(np.arange(at.nnz), lengths)
    within = np.arange(len(left)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    right = np.repeat(starts[at.indices[1]], lengths) + within
    index = np.stack([at.indices[0][left], bt.indices[1][right]])
    values = picked(elements(a), left) * picked(elements(b), right)
    size = (at.sizes[0], bt.sizes[1])
    return coalesce(of_pattern(Pattern(index, size), values, size, False))


@handles("mm")
def mm_function(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """`mm` with a sparse matrix."""
    made = mm(input, mat2)
    return given(out, made, "mm")


@handles("mv")
def mv(input: SparseTensor, vec: Tensor, *, out: Any = None) -> Tensor:
    """A sparse matrix times a vector."""
    checks.check(
        input.dim() == 2 and vec.dim() == 1,
        "mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: {} Tensor Dim: {}",
        input.dim(),
        vec.dim(),
    )  # fmt: skip
    checks.check(
        input.shape[-1] == vec.shape[0],
        "mv: expected self.size(-1) == vec.size(-1)",
    )
    made = product(input, vec.unsqueeze(1)).squeeze(1)
    return given(out, made, "mv")


@handles("bmm")
def bmm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """Products of the matrices of a sparse batch and a dense one: one product of matrices that lie along a diagonal."""
    checks.check(input.dim() == 3 and mat2.dim() == 3, "batch1 must be a 3D tensor")
    if not isinstance(input, SparseTensor):
        return bmm(mat2.transpose(1, 2), input.transpose(1, 2)).transpose(1, 2)
    whole = as_coo(input)
    checks.check(
        dense_dims(whole) == 0,
        "bmm_sparse: Tensor 'self' must have 0 dense dims, but has {}",
        dense_dims(whole),
    )
    (batch, rows, columns), pattern = pattern_of(whole).sizes, pattern_of(whole)
    checks.check(
        mat2.shape[0] == batch and mat2.shape[1] == columns, "bmm: Argument #3: Expected sizes to match"
    )
    index = np.stack(
        [pattern.indices[0] * rows + pattern.indices[1], pattern.indices[0] * columns + pattern.indices[2]]
    )
    diagonal = of_pattern(
        Pattern(index, (batch * rows, batch * columns)),
        elements(whole),
        (batch * rows, batch * columns),
        False,
    )
    made = product(diagonal, mat2.reshape(batch * columns, mat2.shape[2])).reshape(batch, rows, mat2.shape[2])
    return given(out, made, "bmm")


@handles("matmul", "__matmul__", "__rmatmul__")
def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """`@` of matrices, vectors and batches of which one is sparse."""
    if isinstance(other, SparseTensor) and other.dim() == 1 and input.dim() != 1:
        other = densify(other)
    if not isinstance(input, SparseTensor) and not isinstance(other, SparseTensor):
        made = input @ other
    elif input.dim() == 2 and other.dim() == 2:
        made = mm(input, other)
    elif input.dim() == 2 and other.dim() == 1:
        assert isinstance(input, SparseTensor)
        made = mv(input, other)
    elif input.dim() == 1 and other.dim() == 2:
        left = (densify(input) if isinstance(input, SparseTensor) else input).unsqueeze(0)
        made = (mm(left, other) if isinstance(other, SparseTensor) else left @ other).squeeze(0)
    elif input.dim() == 1 and other.dim() == 1:
        made = dot(input, other)
    elif isinstance(other, SparseTensor) and other.dim() == 2 and not isinstance(input, SparseTensor):
        made = mm(input.reshape(-1, input.shape[-1]), other).reshape(*input.shape[:-1], other.shape[1])
    elif isinstance(input, SparseTensor) and input.dim() == 2 and not isinstance(other, SparseTensor):
        batch = tuple(other.shape[:-2])
        flat = other.movedim(-2, 0).reshape(other.shape[-2], -1)
        made = mm(input, flat).reshape(input.shape[0], *batch, other.shape[-1]).movedim(0, -2)
    else:
        made = bmm(input, other)
    return given(out, made, "matmul")


@handles("dot", "vdot")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The product of two vectors."""
    if isinstance(input, SparseTensor) and isinstance(tensor, SparseTensor):
        both: Any = coalesce(as_coo(input)) * coalesce(as_coo(tensor))
        return elements(both).sum()
    sparse, dense = (input, tensor) if isinstance(input, SparseTensor) else (tensor, input)
    assert isinstance(sparse, SparseTensor)
    return (flat_elements(sparse) * at_places(dense, as_coo(sparse))).sum()


@handles("addmm")
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Any = None
) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2`."""
    made = mm(mat1, mat2) if isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor) else mat1 @ mat2
    made = made if alpha == 1 else made * alpha
    if beta != 0:
        grown = input if beta == 1 else input * beta
        made = added(made, grown) if isinstance(grown, SparseTensor) and isinstance(made, SparseTensor) else (
            added(grown, made) if isinstance(made, SparseTensor) else
            added(made, grown) if isinstance(grown, SparseTensor) else grown + made
        )  # fmt: skip
    return given(out, made, "addmm")


@handles("addmm_")
def addmm_(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """In-place `addmm`."""
    return self.copy_(addmm(self, mat1, mat2, beta=beta, alpha=alpha))


@handles("addmv")
def addmv(
    input: Tensor, mat: SparseTensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Any = None
) -> Tensor:
    """`beta * input + alpha * mat @ vec`."""
    made = mv(mat, vec) * alpha
    return given(out, made if beta == 0 else input * beta + made, "addmv")


@handles("addmv_")
def addmv_(self: Tensor, mat: SparseTensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """In-place `addmv`."""
    return self.copy_(addmv(self, mat, vec, beta=beta, alpha=alpha))


@handles("spmm", "dsmm")
def spmm(input: SparseTensor, mat: Tensor) -> Tensor:
    """The product of a sparse matrix and another one."""
    return mm(input, mat)


@handles("smm")
def smm(input: SparseTensor, mat: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one, as a COO tensor with an element at every place of rows that have any."""
    coordinates(input, "smm")
    made = rows_of_product(input, mat)
    rows, columns = pattern_of(made).indices[0], made.shape[1]
    index = np.stack([np.repeat(rows, columns), np.tile(np.arange(columns), len(rows))])
    return of_pattern(Pattern(index, tuple(made.shape)), elements(made).reshape(-1), tuple(made.shape), False)


def coordinates(sparse: Tensor, name: str) -> None:
    if not is_coo(sparse):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'SparseCsrCPU' backend."
        )


@handles("hspmm", "hsmm")
def hspmm(mat1: SparseTensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """The product as a tensor whose rows are sparse: those that `mat1` has."""
    coordinates(mat1, "hspmm")
    return given(out, rows_of_product(mat1, mat2), "hspmm")


def rows_of_product(sparse: SparseTensor, dense: Tensor) -> SparseTensor:
    """The rows of a product that are not empty: a tensor with one sparse dimension."""
    made = mm(sparse, dense)
    rows = np.unique(pattern_of(sparse).indices[0])
    return of_pattern(Pattern(rows[None], (made.shape[0],)), picked(made, rows), tuple(made.shape), False)


@handles("sspaddmm", "saddmm")
def sspaddmm(
    input: SparseTensor, mat1: SparseTensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Any = None
) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2` as a sparse tensor."""
    coordinates(mat1, "sspaddmm")
    made: Any = smm(mat1, mat2)
    grown: Any = input if beta == 1 else input * beta
    index = np.concatenate([pattern_of(grown).indices, pattern_of(made).indices], 1)
    size = tuple(made.shape)
    values = cat([elements(grown), elements(made) * alpha])
    return given(out, of_pattern(Pattern(index, size), values, size, False), "sspaddmm")


@handles("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.t() + bias` with a sparse weight or input."""
    checks.check(
        input.dim() > 0 and weight.dim() > 0,
        "both arguments to linear need to be at least 1D, but they are {}D and {}D",
        input.dim(),
        weight.dim(),
    )
    if weight.dim() == 1:
        made = matmul(input, weight)
    elif isinstance(weight, SparseTensor) and not isinstance(input, SparseTensor):
        flat = input.reshape(-1, input.shape[-1])
        turned: Any = weight.t()
        made = spread_or_zeros(turned, flat).t().reshape(*input.shape[:-1], weight.shape[0])
    else:
        made = matmul(input, weight.t())
    return made if bias is None else made + bias


@handles("sampled_addmm")
def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` at the places of `input`; the product is computed nowhere else."""
    checks.check(
        isinstance(input, SparseTensor) and not is_coo(input),
        "Expected self to have sparse csr layout, but got {}",
        input.layout,
    )
    values = sampled_values(pattern_of(input), mat1, mat2.t().contiguous())
    held = elements(input)
    made = with_elements(input, held * beta + (values * alpha).reshape(tuple(held.shape)))
    return given(out, made, "sampled_addmm")
