"""Between layouts: dense to sparse and back, coordinates to compressed rows, columns and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import checks, dtypes
from ..operators.attach import attach_methods
from ..operators.below.dispatching import twin
from ..ops.create.creation import zeros
from ..tensor import Tensor
from .construct import BLOCKS, ROWS
from .layout import (
    HANDLERS,
    SparseTensor,
    adopt,
    assembled,
    elements,
    handles,
    host,
    indices_from,
    is_coo,
    like_source,
    linked,
    passing,
    with_elements,
)
from .parts import (
    at_places,
    coalesce,
    flat_elements,
    index_rows,
    kind_of,
    of_pattern,
    pattern_of,
    picked,
    sparse_dims,
)
from .pattern import Pattern, counted

__all__ = ["as_coo", "convert", "densify", "sparsify"]


def densify(sparse: SparseTensor) -> Tensor:
    """All elements, those that are not stored as zeros; followed by autograd."""
    values = flat_elements(sparse)
    size = tuple(sparse.shape)
    if values.dtype is dtypes.bool:
        return densify(with_elements(sparse, elements(sparse).to(dtypes.uint8))) > 0
    pattern = pattern_of(sparse)
    rows = index_rows(pattern, values)
    start = zeros(size, dtype=values.dtype, device=values.device)
    if not rows:
        return values.sum(0).reshape(size)
    return start.index_put(rows, values, accumulate=True)


@handles("to_dense", "_to_dense")
def to_dense(
    self: SparseTensor, dtype: dtypes.dtype | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """All elements, those that are not stored as zeros.

    masked_grad: whether the gradient has only the elements that are stored, as by default, or all.
    """
    checks.check(dtype is None, "dtype argument is not supported by sparse_to_dense")
    if masked_grad is not False:
        return densify(self)
    return linked("ToDenseBackward0", densify(twin(self)), (self,), lambda grad: (grad,))


def sparsify(dense: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero; dense rows where `sparse_dim` is less than all dimensions."""
    dims = dense.dim() if sparse_dim is None else sparse_dim
    values = host(dense)
    mask = values != 0
    mask = mask.any(tuple(range(dims, dense.dim())))
    index = np.stack(np.nonzero(mask)) if dims else np.zeros((0, int(mask.any())), np.int64)
    pattern = Pattern(index.astype(np.int64), tuple(dense.shape)[:dims])
    rows = index_rows(pattern, dense)
    taken = dense[rows] if rows else dense.reshape(1, *dense.shape)[: pattern.nnz]
    return of_pattern(pattern, taken, tuple(dense.shape))


def as_coo(sparse: Tensor) -> SparseTensor:
    """A sparse tensor with a coordinate for each element."""
    if not isinstance(sparse, SparseTensor):
        return sparsify(sparse)
    if is_coo(sparse):
        return sparse
    return of_pattern(
        pattern_of(sparse), flat_elements(sparse), tuple(sparse.shape), sparse._layout is dtypes.sparse_csr
    )


def convert(
    tensor: Tensor, layout: Any, blocksize: Sequence[int] | None = None, dense: int | None = None
) -> SparseTensor:
    """A tensor in a sparse layout, from any."""
    if isinstance(blocksize, int):
        blocksize = (blocksize, blocksize)
    if isinstance(tensor, SparseTensor) and tensor._layout is layout and blocksize is None:
        return tensor
    return passing(
        "ToSparseBackward0",
        lambda t: converted(t, layout, blocksize, dense),
        (tensor,),
        lambda grad: (as_source(grad, tensor),),
    )


def as_source(grad: Tensor, source: Tensor) -> Tensor:
    """A gradient in the layout of what it is for, unless it is dense."""
    if not isinstance(grad, SparseTensor):
        return grad
    if not isinstance(source, SparseTensor):
        return densify(grad)
    return converted(grad, source._layout, blocks_of(source), None)


def blocks_of(sparse: SparseTensor) -> tuple[int, ...] | None:
    """The sizes of a tensor's blocks; None of layouts that have none."""
    at = sparse._held[-2].dim()
    return tuple(sparse._held[-1].shape[at : at + 2]) if sparse._layout in BLOCKS else None


def converted(tensor: Tensor, layout: Any, blocksize: Any, dense: int | None) -> SparseTensor:
    found = (
        as_coo(tensor) if isinstance(tensor, SparseTensor) else sparsify(tensor, tensor.dim() - (dense or 0))
    )
    if layout is dtypes.sparse_coo:
        return found
    return compress(coalesce(found), layout, blocksize)


def compress(coo: SparseTensor, layout: Any, blocksize: Sequence[int] | None) -> SparseTensor:
    """A coalesced matrix, or batch of them, with rows or columns compressed."""
    dims = sparse_dims(coo)
    pattern, values, size = pattern_of(coo), elements(coo), tuple(coo.shape)
    checks.check(dims >= 2, "Expected 2D or higher input, got {}D", dims)
    batch = pattern.sizes[: dims - 2]
    *_, rows, columns = pattern.sizes
    count = int(np.prod(batch, dtype=np.int64))
    place = (
        np.ravel_multi_index(tuple(pattern.indices[: dims - 2]), batch)
        if batch
        else np.zeros(pattern.nnz, np.int64)
    )
    row, column = pattern.indices[dims - 2], pattern.indices[dims - 1]
    high, wide = (1, 1) if layout not in BLOCKS else tuple(blocksize or (1, 1))
    checks.check(
        rows % high == 0 and columns % wide == 0,
        "Tensor size({}) {} needs to be divisible by blocksize[{}] {}",
        *((-2, rows, 0, high) if rows % high else (-1, columns, 1, wide)),
    )  # fmt: skip
    rows, columns = rows // high, columns // wide
    first, second = (row // high, column // wide) if layout in ROWS else (column // wide, row // high)
    many, few = (rows, columns) if layout in ROWS else (columns, rows)
    number = (place * many + first) * few + second
    kept, target = np.unique(number, return_inverse=True)
    lengths = np.bincount(kept // (many * few), minlength=count) if few * many else np.zeros(count, np.int64)
    checks.check(
        count == 0 or (lengths == lengths[0]).all(),
        "Expect the same number of specified elements per batch.",
    )
    each = int(lengths[0]) if count else 0
    outer = (kept // few) if few else kept
    pointers = np.stack(
        [counted(outer[i * each : (i + 1) * each] - i * many, many) for i in range(count)]
        or [np.zeros(many + 1, np.int64)]
    )
    plain = (kept % few if few else kept).reshape(count, each)
    if layout in BLOCKS:
        inside = (target * high + row % high) * wide + column % wide
        flat = zeros(
            (count * each * high * wide, *values.shape[1:]), dtype=values.dtype, device=values.device
        )
        held = flat.index_copy(0, indices_from(inside, values.device), values)
        held = held.reshape(*batch, each, high, wide, *values.shape[1:])
    else:
        order = np.argsort(target, kind="stable")
        held = values if (np.diff(target) > 0).all() else picked(values, order)
        held = held.reshape(*batch, each, *values.shape[1:])
    parts = [
        indices_from(p.reshape(*batch, p.shape[-1]).astype(np.int64), values.device)
        for p in (pointers, plain)
    ]
    return assembled(layout, (*parts, held), size, True)


def layout_named(layout: Any) -> Any:
    return dtypes.sparse_coo if layout is None else layout


@handles("to_sparse")
def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Sequence[int] | None = None,
    dense_dim: int | None = None,
) -> Tensor:
    """The tensor in a sparse layout, COO by default: what is not zero, or what is stored.

    Shape: that of the tensor itself.
    sparse_dim: how many dimensions are sparse, for COO. blocksize: of BSR and BSC. dense_dim: how many of the last are dense.

    Raises: RuntimeError for arguments that are out of range, and for a layout of blocks without `blocksize`;
    NotImplementedError on the meta device.

    >>> xtensor.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    if isinstance(sparse_dim, dtypes.layout):
        layout, sparse_dim = sparse_dim, None
    wanted = layout_named(layout)
    check_conversion("to_sparse", self, wanted, sparse_dim, blocksize, dense_dim)
    if wanted is dtypes.strided:
        return HANDLERS["to_dense"](self) if isinstance(self, SparseTensor) else self
    if sparse_dim is not None:
        dense_dim = self.dim() - sparse_dim
    return convert(self, wanted, blocksize, dense_dim)


def check_conversion(
    method: str, tensor: Tensor, layout: Any, sparse_dim: Any, blocksize: Any, dense_dim: int | None
) -> None:
    """RuntimeError for a conversion that the arguments do not fit."""
    sparse = isinstance(tensor, SparseTensor)
    name = {"sparse_coo": f"coo_{method}", "strided": f"dense_{method}"}.get(
        str(tensor.layout).partition(".")[2]
    )
    name = name or f"sparse_compressed_{method}"
    name = f"sparse_{name}" if name == "coo_to_sparse" else name
    name = method if tensor.layout is layout else name
    pair = f"{name}: conversion from {kind_of(tensor)} to {kind_of(layout)} with"
    if sparse_dim is not None:
        wanted = ("2", 2)
        if isinstance(tensor, SparseTensor) and is_coo(tensor):
            wanted = ("self.sparse_dim()", sparse_dims(tensor))
        checks.check(
            not sparse or sparse_dim == wanted[1],
            f"{pair} sparse_dim argument !={wanted[0]} is not supported",
        )
        checks.check(
            0 <= sparse_dim <= tensor.dim(),
            "{}: sparse_dim argument must be in [0,{}] range, but {} is given", name, tensor.dim(), sparse_dim,
        )  # fmt: skip
        checks.check(
            sparse_dim > 0 or tensor.dim() == 0,
            f"{name}: sparse_dim argument must be in >0 when self.dim()>0",
        )
    if dense_dim is not None:
        checks.check(not sparse, f"{pair} dense_dim argument given is not supported")
        most = tensor.dim() - (0 if layout is dtypes.sparse_coo else 2)
        checks.check(
            0 <= dense_dim <= most,
            "{}: dense_dim argument must be in [0,{}] range, but {} is given", name, most, dense_dim,
        )  # fmt: skip
        checks.check(
            dense_dim < max(tensor.dim(), 1),
            f"{name}: dense_dim argument must be !=self.dim() when self.dim()>0",
        )
    if blocksize is None:
        checks.check(layout not in BLOCKS, f"{pair}out blocksize argument given is not supported")
        return
    sizes = [blocksize] * 2 if isinstance(blocksize, int) else list(blocksize)
    checks.check(len(sizes) == 2, "{}: blocksize needs to be a tuple of size 2, but got {}", name, len(sizes))
    checks.check(min(sizes) > 0, "{}: blocksize needs to be positive, but got {}", name, sizes)
    checks.check(layout in BLOCKS, f"{pair} blocksize argument given is not supported")
    at = (sparse_dims(tensor) if isinstance(tensor, SparseTensor) else tensor.dim() - (dense_dim or 0)) - 2
    if at >= 0:
        rows, columns = tensor.shape[at : at + 2]
        checks.check(
            rows % sizes[0] == 0 and columns % sizes[1] == 0,
            "{}: tensor sparse size ({},{}) must be divisible by given blocksize ({},{})", name, rows, columns, *sizes,
        )  # fmt: skip


def converter(name: str, layout: Any, blocks: bool, doc: str) -> None:
    def to_layout(self: Tensor, blocksize: Any = None, dense_dim: int | None = None) -> Tensor:
        check_conversion(name, self, layout, None, blocksize, dense_dim)
        return convert(self, layout, blocksize, dense_dim)

    def to_plain_layout(self: Tensor, dense_dim: int | None = None) -> Tensor:
        check_conversion(name, self, layout, None, None, dense_dim)
        return convert(self, layout, None, dense_dim)

    made = to_layout if blocks else to_plain_layout
    made.__name__ = made.__qualname__ = name
    refused = "fewer than two dimensions" + (
        ", and for blocks that do not divide the sizes" if blocks else ""
    )
    made.__doc__ = f"{doc}\n\nShape: that of the tensor itself.\n\nRaises: RuntimeError for {refused}."
    HANDLERS[name] = made
    attach_methods(**{name: made})


def to_sparse_coo(self: Tensor) -> Tensor:
    """The tensor in COO layout.

    Shape: that of the tensor itself.

    Raises: NotImplementedError on the meta device.
    """
    return convert(self, dtypes.sparse_coo)


HANDLERS["to_sparse_coo"] = to_sparse_coo
converter("to_sparse_csr", dtypes.sparse_csr, False, "The matrix, or batch of them, with compressed rows.")
converter("to_sparse_csc", dtypes.sparse_csc, False, "The matrix, or batch of them, with compressed columns.")
converter(
    "to_sparse_bsr", dtypes.sparse_bsr, True, "The matrix, or batch of them, of blocks with compressed rows."
)
converter(
    "to_sparse_bsc",
    dtypes.sparse_bsc,
    True,
    "The matrix, or batch of them, of blocks with compressed columns.",
)


@handles("sparse_mask")
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements at the places of a sparse tensor, in its layout.

    Shape: `mask` that of the tensor; result the same.

    Raises: RuntimeError for a mask that is not sparse, or of other sizes.

    >>> xtensor.arange(4).reshape(2, 2).sparse_mask(xtensor.eye(2).to_sparse()).values()
    tensor([0, 3])
    """
    if not isinstance(mask, SparseTensor):
        raise RuntimeError("sparse_mask(): the mask must be sparse")
    checks.check(
        tuple(self.shape) == tuple(mask.shape),
        "sparse_mask(): operands have incompatible sizes; self has size {} but mask has size {}",
        list(self.shape),
        list(mask.shape),
    )
    if not isinstance(self, SparseTensor):
        return with_elements(mask, at_places(self, mask))
    return passing(
        "SparseMaskBackward0",
        lambda s: with_elements(mask, at_places(s, mask)),
        (self,),
        lambda grad: (sparse_mask(grad, mask),),
    )


@handles("_to_sparse_semi_structured")
def semi_structured(self: Tensor) -> Tensor:
    """Not supported: a format of one maker's devices."""
    raise NotImplementedError("semi-structured sparsity is a format of CUDA devices")


@handles("copy_")
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Take over another tensor's sizes and elements, in the dtype of this one."""
    if not (isinstance(self, SparseTensor) and isinstance(src, SparseTensor)):
        kinds = [
            HANDLERS["type"](t) if isinstance(t, SparseTensor) else checks.tensor_type(t) for t in (self, src)
        ]
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! "
            f"Found self type = {kinds[0]} and src type = {kinds[1]}"
        )
    if not is_coo(self):
        check_copied(self, src)
    else:
        checks.check(
            is_coo(src),
            "copy_sparse_compressed_ expected sparse compressed tensor layout but got {}",
            kind_of(self),
        )
        HANDLERS["_check_growth"](self, tuple(src.shape), sparse_dims(src))
    made = passing(
        "CopyBackwards",
        lambda s: with_elements(s, elements(s).to(self.dtype, copy=True)),
        (src,),
        lambda grad: (like_source(grad, src),),
    )
    return adopt(self, made, "copy_")


def check_copied(target: SparseTensor, source: SparseTensor) -> None:
    """RuntimeError where a tensor of a compressed layout cannot take over another one's elements."""
    kinds = [kind_of(t) for t in (target, source)]
    checks.check(
        target._layout is source._layout,
        "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. "
        "self layout is {} and src layout is {}",
        *kinds,
    )
    checks.check(
        target._held[1].shape[-1] == source._held[1].shape[-1],
        "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported.",
    )
    at = target._held[1].dim() - 1 + (target._layout not in ROWS)
    checks.check(
        target.shape[at] == source.shape[at],
        "torch.copy_: expected shapes of self and src to match along dimension {} for {} layout but the corresponding "
        "dimensions of self and src are {} and {}, respectively.",
        at, kinds[0], target.shape[at], source.shape[at],
    )  # fmt: skip


attach_methods(to_sparse=to_sparse, to_sparse_coo=to_sparse_coo, sparse_mask=sparse_mask)
SparseTensor.to_dense = to_dense  # pyright: ignore[reportAttributeAccessIssue]
