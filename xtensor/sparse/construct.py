"""Making sparse tensors: constructors, and the invariants that they can be held to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import checks, devices, dtypes
from ..operators.below.dispatching import twin
from ..ops.create.creation import zeros
from ..ops.create.ingest import as_tensor
from ..tensor import Size, Tensor, asks_grad
from .layout import KINDS, SparseTensor, assembled, host, indices_from
from .pattern import Pattern

__all__ = [
    "check_sparse_tensor_invariants",
    "empty_coo",
    "rebuilt_sparse",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "validate",
    "validate_compressed_args",
    "validate_coo_args",
]

ROWS = (dtypes.sparse_csr, dtypes.sparse_bsr)
BLOCKS = (dtypes.sparse_bsr, dtypes.sparse_bsc)


class check_sparse_tensor_invariants:
    """Whether constructors check what they are given: switched for all by `enable` and `disable`, for a block, or a function.

    >>> with xtensor.sparse.check_sparse_tensor_invariants():
    ...     xtensor.sparse_coo_tensor([[0, 3]], [1.0, 2.0], (2,))
    Traceback (most recent call last):
    RuntimeError: size is inconsistent with indices: for dim 0, size is 2 but found index 3
    """

    state = False

    def __init__(self, enable: bool = True) -> None:
        self.wanted = enable
        self.before: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether constructors check."""
        return check_sparse_tensor_invariants.state

    @staticmethod
    def enable() -> None:
        """Have constructors check from now on."""
        check_sparse_tensor_invariants.state = True

    @staticmethod
    def disable() -> None:
        """Have constructors not check from now on."""
        check_sparse_tensor_invariants.state = False

    def __enter__(self) -> None:
        if self.before is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context nesting."
            )
        self.before = self.state
        check_sparse_tensor_invariants.state = self.wanted

    def __exit__(self, *error: object) -> None:
        assert self.before is not None
        check_sparse_tensor_invariants.state, self.before = self.before, None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.wanted):
                return function(*args, **kwargs)

        return checked


def as_values(values: Any, dtype: Any, device: Any) -> Tensor:
    place = None if device is None else devices.resolve(device)
    found = as_tensor(values, dtype=dtype, device=place)
    # It is the memory that is shared: what is resized or transposed in place later is only the argument.
    return found if found is not values or asks_grad(found) else found.detach()


def as_indices(indices: Any, place: devices.device) -> Tensor:
    found = as_tensor(indices)
    if found.dtype is not dtypes.int64:
        found = found.to(dtypes.int64)
    return found.detach() if found.device is place else found.detach().to(place)


def finished(made: Any, requires_grad: bool) -> Any:
    # What is called within a constructor asks no class: the method would make a dense tensor of it.
    return twin(made).requires_grad_() if requires_grad else made


def is_size(value: Any) -> bool:
    if isinstance(value, Size):
        return True
    return isinstance(value, (tuple, list)) and all(isinstance(v, (int, np.integer)) for v in value)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: dtypes.dtype | None = None,
    device: devices.DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor of elements and the coordinates of each; equal coordinates mean the sum of their elements.

    Shape: `indices` `(sparse dims, nnz)`; `values` `(nnz, *dense sizes)`; the result `size`, by default as small as the coordinates
    allow. Of `size` alone: a tensor without elements.

    >>> xtensor.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    tensor(indices=tensor([[0, 1, 1],
                           [2, 0, 2]]),
           values=tensor([3., 4., 5.]),
           size=(2, 3), nnz=3, layout=xtensor.sparse_coo)
    """
    if values is None and is_size(indices if size is None else size):
        made = empty_coo(tuple(indices if size is None else size), dtype, device)
        return finished(made, requires_grad)
    held = as_values(values, dtype, device)
    where = as_indices(indices, held.device)
    checks.check(where.dim() == 2, "indices must be sparse_dim x nnz, but got: {}", where.shape)
    held = held.unsqueeze(0) if held.dim() == 0 else held
    checks.check(
        where.shape[1] == held.shape[0],
        "indices and values must have same nnz, but got nnz from indices: {}, nnz from values: {}",
        where.shape[1],
        held.shape[0],
    )
    if size is None:
        index = host(where)
        checks.check(index.size == 0 or index.min() >= 0, "found negative index {} for dim {}", *least(index))
        sparse = (index.max(1) + 1).tolist() if index.shape[1] else [0] * index.shape[0]
        size = (*sparse, *held.shape[1:])
    sizes = tuple(map(int, size))
    check_sizes(where, held, sizes)
    if check_invariants or (check_invariants is None and check_sparse_tensor_invariants.state):
        validate_coo(where, sizes, bool(is_coalesced))
    made = assembled(dtypes.sparse_coo, (where, held), sizes, bool(is_coalesced))
    if is_coalesced is not None:
        made._coalesced = is_coalesced
    return finished(made, requires_grad)


def least(index: np.ndarray[Any, Any]) -> tuple[int, int]:
    if index.size == 0:
        return 0, 0
    dim = int(np.argmax((index < 0).any(1)))
    return int(index[dim].min()), dim


def check_sizes(indices: Tensor, values: Tensor, sizes: tuple[int, ...]) -> None:
    """RuntimeError for coordinates and elements of which there cannot be a tensor, whatever they are."""
    sparse_dim, dense_dim = indices.shape[0], values.dim() - 1
    checks.check(
        len(sizes) == sparse_dim + dense_dim,
        "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {}, sparse_dim = {}, dense_dim = {}",
        len(sizes),
        sparse_dim,
        dense_dim,
    )
    wanted = tuple(sizes[sparse_dim:])
    checks.check(
        tuple(values.shape[1:]) == wanted,
        "values has incorrect size, expected {}, got {}",
        [indices.shape[1], *wanted],
        list(values.shape),
    )


def validate_coo_args(
    indices: Tensor, values: Tensor, size: Sequence[int], is_coalesced: bool | None = None
) -> None:
    """RuntimeError for what no COO tensor can be made of."""
    sizes = tuple(map(int, size))
    checks.check(
        indices.dtype is dtypes.int64,
        "expected scalar type Long but found {}",
        indices.dtype.scalar_name,
    )
    check_sizes(indices, values, sizes)
    validate_coo(indices, sizes, bool(is_coalesced))


def validate_compressed_args(
    compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Sequence[int], layout: Any
) -> None:
    """RuntimeError for what no tensor in a layout of compressed rows or columns can be made of."""
    checks.check(
        layout in (*ROWS, dtypes.sparse_csc, dtypes.sparse_bsc),
        "validate_sparse_compressed_tensor_args expected sparse compressed tensor layout but got {}",
        KINDS.get(str(layout).partition(".")[2], layout),
    )
    sizes = tuple(map(int, size))
    validate_shapes(layout, compressed_indices, plain_indices, values, sizes)
    validate(layout, compressed_indices, plain_indices, values, sizes)


def validate_coo(indices: Tensor, sizes: tuple[int, ...], in_order: bool) -> None:
    """RuntimeError for coordinates outside of a tensor, or out of an order that they are said to be in."""
    if not indices.numel() or indices.is_meta:
        return
    index = host(indices)
    for dim, (row, size) in enumerate(zip(index, sizes, strict=False)):
        checks.check(row.min() >= 0, "found negative index {} for dim {}", int(row.min()), dim)
        checks.check(
            row.max() < size,
            "size is inconsistent with indices: for dim {}, size is {} but found index {}",
            dim,
            size,
            int(row.max()),
        )
    checks.check(
        not in_order or bool((np.diff(Pattern(index, sizes[: len(index)]).flat) > 0).all()),
        "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor",
    )


def empty_coo(size: Sequence[int], dtype: Any = None, device: Any = None, dense: int = 0) -> SparseTensor:
    """A tensor without elements whose last `dense` dimensions are dense."""
    sizes = tuple(map(int, size))
    sparse = len(sizes) - dense
    values = zeros((0, *sizes[sparse:]), dtype=dtype, device=device)
    where = indices_from(np.zeros((sparse, 0), np.int64), values.device)
    return assembled(dtypes.sparse_coo, (where, values), sizes, True)


def rebuilt_sparse(
    layout: dtypes.layout, held: Sequence[Tensor], size: tuple[int, ...], coalesced: bool
) -> SparseTensor:
    """A sparse tensor of parts that a file names; RuntimeError where their sizes do not go together."""
    index, values = held[-2], held[-1]
    if layout is dtypes.sparse_coo:
        fits = index.dim() == 2 and values.dim() >= 1 and index.shape[1] == values.shape[0]
        fits = fits and len(size) == index.shape[0] + values.dim() - 1
        checks.check(
            fits and tuple(values.shape[1:]) == size[index.shape[0] :],
            "sparse parts of sizes that do not fit",
        )
    else:
        checks.check(layout in (*ROWS, dtypes.sparse_csc, dtypes.sparse_bsc), "no sparse layout: {}", layout)
        validate_shapes(layout, held[0], index, values, size)
    whole = all(t.dtype in (dtypes.int32, dtypes.int64) for t in held[:-1])
    checks.check(whole and min(size, default=0) >= 0, "sparse coordinates are of integers")
    return assembled(layout, held, size, coalesced or layout is not dtypes.sparse_coo)


# ---- compressed rows and columns -----------------------------------------------------------------------------------


def names_of(layout: Any) -> tuple[str, str]:
    """What the two kinds of coordinates are called."""
    return ("crow_indices", "col_indices") if layout in ROWS else ("ccol_indices", "row_indices")


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: devices.DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A sparse tensor in one of the layouts of compressed rows or columns: CSR, CSC, and BSR, BSC of blocks."""
    if layout is None or layout in (dtypes.strided, dtypes.sparse_coo):
        raise RuntimeError(f"expected sparse compressed tensor layout but got {layout}")
    held = as_values(values, dtype, device)
    pointers, plain = [like_indices(i, held.device) for i in (compressed_indices, plain_indices)]
    if size is None:
        size = inferred(layout, pointers, plain, held)
    sizes = tuple(map(int, size))
    validate_shapes(layout, pointers, plain, held, sizes)
    if check_invariants or (check_invariants is None and check_sparse_tensor_invariants.state):
        validate(layout, pointers, plain, held, sizes)
    made = assembled(layout, (pointers, plain, held), sizes, True)
    return finished(made, requires_grad)


def like_indices(indices: Any, place: devices.device) -> Tensor:
    """Coordinates, which may be int32 too."""
    found = as_tensor(indices)
    if found.dtype not in (dtypes.int32, dtypes.int64):
        found = found.to(dtypes.int64)
    return found.detach() if found.device is place else found.detach().to(place)


def inferred(layout: Any, pointers: Tensor, plain: Tensor, values: Tensor) -> tuple[int, ...]:
    """The smallest sizes that coordinates allow."""
    batch = tuple(pointers.shape[:-1])
    index = host(plain)
    first, second = int(pointers.shape[-1]) - 1, int(index.max(initial=-1)) + 1
    at = len(batch) + 1
    block = tuple(values.shape[at : at + 2]) if layout in BLOCKS else (1, 1)
    dense = tuple(values.shape[at + (2 if layout in BLOCKS else 0) :])
    rows, columns = (first, second) if layout in ROWS else (second, first)
    return (*batch, rows * block[0], columns * block[1], *dense)


def validate_shapes(
    layout: Any, pointers: Tensor, plain: Tensor, values: Tensor, size: tuple[int, ...]
) -> None:
    """RuntimeError for coordinates and elements of which there cannot be a tensor, whatever they are."""
    compressed, other = names_of(layout)
    checks.check(
        pointers.dim() >= 1, "{} must have dimensionality >= 1 but got {}", compressed, pointers.dim()
    )
    checks.check(
        pointers.dim() == plain.dim(),
        "{} and {} dimensionalities must be equal but got {} and {}, respectively",
        compressed,
        other,
        pointers.dim(),
        plain.dim(),
    )
    block = 2 if layout in BLOCKS else 0
    dense = values.dim() - plain.dim() - block
    checks.check(
        dense >= 0, "values must have dimensionality > sum of batch and block dimensionalities (={} + {}) but got {}",
        plain.dim() - 1, block, values.dim(),
    )  # fmt: skip
    checks.check(
        len(size) == plain.dim() - 1 + 2 + dense,
        "tensor dimensionality must be sum of batch, base, and dense dimensionalities (={} + 2 + {}) but got {}",
        plain.dim() - 1,
        dense,
        len(size),
    )
    checks.check(
        plain.shape[-1] == values.shape[plain.dim() - 1],
        "{}.shape must be equal to values.shape[:{}] but got {} and {}, respectively",
        other,
        plain.dim(),
        list(plain.shape),
        list(values.shape[: plain.dim()]),
    )


def validate(layout: Any, pointers: Tensor, plain: Tensor, values: Tensor, size: Sequence[int]) -> None:
    """RuntimeError for coordinates that are out of order or out of range."""
    compressed, other = names_of(layout)
    batch = plain.dim() - 1
    block = tuple(values.shape[batch + 1 : batch + 3]) if layout in BLOCKS else (1, 1)
    rows, columns = int(size[batch]) // max(block[0], 1), int(size[batch + 1]) // max(block[1], 1)
    (count, limit), (many, few) = ((rows, columns), ("nrows", "ncols"))
    if layout not in ROWS:
        (count, limit), (many, few) = (columns, rows), ("ncols", "nrows")
    checks.check(
        pointers.shape[-1] == count + 1,
        "{}.shape[-1] must be equal to the number of {} + 1 (={}), but got {}",
        compressed,
        "rows" if layout in ROWS else "columns",
        count + 1,
        pointers.shape[-1],
    )
    if pointers.is_meta:
        return
    starts = host(pointers).reshape(-1, count + 1)
    index = host(plain).reshape(len(starts), -1)
    nnz = index.shape[1]
    steps = np.diff(starts, axis=1)
    failed = " is not satisfied."
    checks.check((starts[:, 0] == 0).all(), "`{}[..., 0] == 0`" + failed, compressed)
    checks.check((starts[:, -1] == nnz).all(), "`{}[..., -1] == nnz`" + failed, compressed)
    checks.check(
        ((steps >= 0) & (steps <= limit)).all(),
        f"`0 <= {compressed}[..., 1:] - {compressed}[..., :-1] <= {few}`{failed}",
    )
    checks.check(((index >= 0) & (index < limit)).all(), "`0 <= {} < {}`" + failed, other, few)
    for first, at in zip(starts, index, strict=True):
        inner = np.ones(nnz, bool)
        inner[first[:-1][first[:-1] < nnz]] = False
        checks.check(
            (np.diff(at)[inner[1:]] > 0).all(),
            f"`{other}[..., {compressed}[..., i - 1]:{compressed}[..., i]] for all i = 1, ..., {many} are sorted and "
            f"distinct along the last dimension values`{failed}",
        )


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: dtypes.dtype | None = None,
    device: devices.DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix, or batch of them, by where each row begins, and the column of each element.

    >>> xtensor.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0])
    tensor(crow_indices=tensor([0, 1, 3]),
           col_indices=tensor([2, 0, 2]),
           values=tensor([3., 4., 5.]), size=(2, 3), nnz=3,
           layout=xtensor.sparse_csr)
    """
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=dtypes.sparse_csr, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: dtypes.dtype | None = None,
    device: devices.DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix, or batch of them, by where each column begins, and the row of each element."""
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=dtypes.sparse_csc, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: dtypes.dtype | None = None,
    device: devices.DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix of blocks, by where each row of blocks begins, and the column of each block."""
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=dtypes.sparse_bsr, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: dtypes.dtype | None = None,
    device: devices.DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix of blocks, by where each column of blocks begins, and the row of each block."""
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=dtypes.sparse_bsc, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip
