"""A model of strided storage in NumPy: what the view fuzz takes for truth where torch is absent.

A `Storage` is a flat byte buffer and a `Tensor` is metadata over it, read and written through
`numpy.lib.stride_tricks`; errors name the class that PyTorch raises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import ml_dtypes
import numpy as np


class ModelError(Exception):
    """An error that a program is meant to raise; `torch_class` names PyTorch's class for it."""

    def __init__(self, torch_class: str, message: str = "") -> None:
        super().__init__(message)
        self.torch_class = torch_class


class Undefined(Exception):
    """The statement's result is not defined (aliasing order, values out of a dtype's range): do not ask."""


def fail(torch_class: str, message: str = "") -> NoReturn:
    raise ModelError(torch_class, message)


@dataclass(frozen=True)
class DType:
    """An element type: its name, NumPy's type and its place in the promotion order."""

    name: str
    np: np.dtype
    category: int  # 0 bool, 1 integer, 2 real, 3 complex

    @property
    def itemsize(self) -> int:
        return self.np.itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"


DTYPES: dict[str, DType] = {}
for _name, _category in (
    ("bool", 0), ("uint8", 1), ("int8", 1), ("int16", 1), ("int32", 1), ("int64", 1),
    ("float16", 2), ("bfloat16", 2), ("float32", 2), ("float64", 2), ("complex64", 3), ("complex128", 3),
):  # fmt: skip
    DTYPES[_name] = DType(_name, np.dtype(getattr(ml_dtypes, _name, _name)), _category)

COMPLEX_PARTS = {"complex64": "float32", "complex128": "float64"}
WHOLE = {part: whole for whole, part in COMPLEX_PARTS.items()}


def promote(a: DType, b: DType) -> DType:
    """PyTorch's `promote_types` for the dtypes of the model."""
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda d: (d.category, d.itemsize))
    if high.category == 3:
        wide = "float64" in (low.name, high.name) or "complex128" in (low.name, high.name)
        return DTYPES["complex128" if wide else "complex64"]
    if {low.name, high.name} == {"float16", "bfloat16"}:
        return DTYPES["float32"]
    if high.category == 1 and low.category == 1 and {low.name, high.name} == {"uint8", "int8"}:
        return DTYPES["int16"]
    return high


def result_type(*operands: Any) -> DType:
    """The dtype of arithmetic between tensors and Python numbers: dimensioned, then 0-d, then numbers."""
    groups: list[DType | None] = [None, None, None]
    for x in operands:
        if isinstance(x, Strided):
            place, dtype = (0 if x.sizes else 1), x.dtype
        else:
            kind = (bool, int, float, complex).index(type(x))
            place, dtype = 2, DTYPES[("bool", "int64", "float32", "complex64")[kind]]
        groups[place] = dtype if groups[place] is None else promote(groups[place], dtype)  # type: ignore[arg-type]
    result = None
    for lower in groups:
        if result is None or lower is None:
            result = result or lower
        elif lower.category > result.category:
            if lower.category == 3 and result.name in WHOLE:
                result = DTYPES[WHOLE[result.name]]
            elif lower.category == 3 and result.category == 2:
                result = DTYPES["complex64"]
            else:
                result = promote(result, lower)
    assert result is not None
    return result


def contiguous_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def channels_last_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    strides, step = [0] * 4, 1
    for dim in (1, 3, 2, 0):
        strides[dim] = step
        step *= sizes[dim]
    return tuple(strides)


def runs_in_order(sizes: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    step = 1
    for dim in order:
        if sizes[dim] != 1:
            if strides[dim] != step:
                return False
            step *= sizes[dim]
    return True


def is_contiguous(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    return 0 in sizes or runs_in_order(sizes, strides, range(len(sizes) - 1, -1, -1))


def is_dense(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether some order of the dimensions is contiguous: PyTorch's non-overlapping and dense."""
    order = sorted((d for d in range(len(sizes)) if sizes[d] > 1), key=lambda d: strides[d])
    return 0 in sizes or runs_in_order(sizes, strides, order)


def layout_order(sizes: Sequence[int], operands: Sequence[Sequence[int]]) -> list[int]:
    """Dimensions from innermost to outermost as an elementwise loop over `operands` (strides) takes them."""

    def swap(a: int, b: int) -> int:
        for strides in operands:
            if strides[a] == 0 or strides[b] == 0:
                continue
            if strides[a] != strides[b]:
                return 1 if strides[a] > strides[b] else -1
            if sizes[a] > sizes[b]:
                return 1
        return 0

    order = list(reversed(range(len(sizes))))
    for start in range(1, len(order)):
        at = start
        for before in range(start - 1, -1, -1):
            verdict = swap(order[before], order[at])
            if verdict > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif verdict < 0:
                break
    return order


def strides_in_order(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    if list(order) == list(reversed(range(len(sizes)))):
        return contiguous_strides(sizes)
    strides, step = [0] * len(sizes), 1
    for dim in order:
        strides[dim] = step
        step *= sizes[dim]
    return tuple(strides)


Layout = tuple[Sequence[int], Sequence[int]]  # sizes and strides


def result_strides(sizes: Sequence[int], operands: Sequence[Layout]) -> tuple[int, ...]:
    """The strides of a fresh elementwise result: the operands' memory order, as TensorIterator chooses it."""
    if all(tuple(own) == tuple(sizes) for own, _ in operands):
        if all(is_contiguous(*layout) for layout in operands):
            return contiguous_strides(sizes)
        if len(sizes) == 4 and all(runs_in_order(sizes, s, (1, 3, 2, 0)) for _, s in operands):
            return channels_last_strides(sizes)
        first = tuple(operands[0][1])
        if all(is_dense(*layout) and tuple(layout[1]) == first for layout in operands):
            return first
    strides = [broadcast_strides(*layout, sizes) for layout in operands]
    return strides_in_order(sizes, layout_order(sizes, strides))


def broadcast_strides(sizes: Sequence[int], strides: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    lead = len(target) - len(sizes)
    return (0,) * lead + tuple(
        0 if size == 1 and target[lead + d] != 1 else stride
        for d, (size, stride) in enumerate(zip(sizes, strides, strict=True))
    )


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        fail(
            "RuntimeError", "The size of tensor a must match the size of tensor b at non-singleton dimension"
        )


def view_strides(
    sizes: Sequence[int], strides: Sequence[int], shape: Sequence[int]
) -> tuple[int, ...] | None:
    """Strides that show the same elements in another shape, or None where only a copy can."""
    if not sizes:
        return (1,) * len(shape)
    if 0 in sizes:
        return tuple(strides) if tuple(sizes) == tuple(shape) else contiguous_strides(shape)
    runs = []  # (elements, stride) of stretches of memory, innermost first
    count, base = 1, strides[-1]
    for d in range(len(sizes) - 1, -1, -1):
        count *= sizes[d]
        if d == 0 or (sizes[d - 1] != 1 and strides[d - 1] != count * base):
            runs.append((count, base))
            if d:
                count, base = 1, strides[d - 1]
    result, d = [0] * len(shape), len(shape) - 1
    for count, base in runs:
        taken = 1
        while d >= 0 and (taken < count or shape[d] == 1):
            result[d] = taken * base
            taken *= shape[d]
            d -= 1
        if taken != count:
            return None
    return tuple(result) if d < 0 else None


def infer_shape(shape: Sequence[int], count: int) -> tuple[int, ...]:
    """A shape with its -1 filled in."""
    if sum(s == -1 for s in shape) > 1 or any(s < -1 for s in shape):
        fail("RuntimeError", "only one dimension can be inferred")
    known = math.prod(s for s in shape if s != -1)
    if -1 in shape:
        if known == 0 or count % known:
            fail("RuntimeError", f"shape '{list(shape)}' is invalid for input of size {count}")
        return tuple(count // known if s == -1 else s for s in shape)
    if known != count:
        fail("RuntimeError", f"shape '{list(shape)}' is invalid for input of size {count}")
    return tuple(shape)


def refuse_negative_zero(values: np.ndarray) -> np.ndarray:
    """`values`, refused where another dtype would show the sign of a zero, which kernels choose freely."""
    if values.dtype.kind not in "iub":
        parts = (values.real, values.imag) if values.dtype.kind == "c" else (values,)
        for part in parts:
            if np.any(np.signbit(part.astype(np.float64)) & (part == 0)):
                raise Undefined("the sign of a zero")
    return values


class Storage:
    """A flat byte buffer, the version its tensors share, and the dtypes it is seen through.

    `boolean`: it may hold only 0 and 1. `punned`: it is seen through several dtypes.
    """

    def __init__(self, buffer: np.ndarray) -> None:
        self.buffer = buffer
        self.version = 0
        self.boolean = False
        self.punned = False

    def data_ptr(self) -> int:
        return id(self) if self.buffer.size else 0

    def nbytes(self) -> int:
        return self.buffer.size


class Strided:
    """Sizes, strides, an offset and a dtype over a Storage, with PyTorch's conj and neg bits."""

    def __init__(
        self, storage: Storage, dtype: DType, sizes: Sequence[int], strides: Sequence[int], offset: int = 0
    ) -> None:
        self.storage = storage
        self.dtype = dtype
        self.sizes = tuple(int(s) for s in sizes)
        self.strides = tuple(int(s) for s in strides)
        self.offset = int(offset)
        self.conjugated = False
        self.negated = False
        self._base: Strided | None = None
        storage.boolean = storage.boolean or dtype.category == 0

    # What an observer asks for, by PyTorch's names.

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def _version(self) -> int:
        return self.storage.version

    def numel(self) -> int:
        return math.prod(self.sizes)

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def storage_offset(self) -> int:
        return self.offset

    def dim(self) -> int:
        return len(self.sizes)

    def element_size(self) -> int:
        return self.dtype.itemsize

    def untyped_storage(self) -> Storage:
        return self.storage

    def data_ptr(self) -> int:
        return self.storage.data_ptr() + self.offset * self.dtype.itemsize if self.numel() else 0

    def is_contiguous(self, memory_format: str = "contiguous_format") -> bool:
        if memory_format == "channels_last":
            return len(self.sizes) == 4 and runs_in_order(self.sizes, self.strides, (1, 3, 2, 0))
        return is_contiguous(self.sizes, self.strides)

    def is_conj(self) -> bool:
        return self.conjugated

    def is_neg(self) -> bool:
        return self.negated

    def tolist(self) -> Any:
        return self.values().tolist()

    # Memory.

    def raw(self) -> np.ndarray:
        """A writable NumPy view of the elements as they lie in memory."""
        usable = self.storage.buffer.size // self.dtype.itemsize * self.dtype.itemsize
        flat = self.storage.buffer[:usable].view(self.dtype.np)
        steps = tuple(s * self.dtype.itemsize for s in self.strides)
        return np.lib.stride_tricks.as_strided(flat[self.offset :], self.sizes, steps)

    def places(self) -> np.ndarray:
        """For every element its index in the storage, in elements."""
        total = np.full(self.sizes, self.offset, dtype=np.int64)
        for d, (size, stride) in enumerate(zip(self.sizes, self.strides, strict=True)):
            total += (np.arange(size) * stride).reshape((size,) + (1,) * (len(self.sizes) - d - 1))
        return total

    def values(self) -> np.ndarray:
        """A copy of the elements as a reader sees them."""
        found = self.raw().copy()
        if self.conjugated:
            found = np.asarray(found.conj())
        return np.asarray(-found) if self.negated else found

    def store(self, values: np.ndarray, places: np.ndarray | None = None) -> None:
        """Writes `values` (of this dtype) to every element, or to the given places, and counts the write."""
        if self.conjugated:
            values = values.conj()
        if self.negated:
            values = -values
        if self.storage.punned:
            values = refuse_negative_zero(values)
        if self.storage.boolean and self.dtype.category and not set(np.unique(values).tolist()) <= {0, 1}:
            raise Undefined("a boolean view of these bytes would hold neither 0 nor 1")
        if places is None:
            self.raw()[...] = values
        else:
            usable = self.storage.buffer.size // self.dtype.itemsize * self.dtype.itemsize
            self.storage.buffer[:usable].view(self.dtype.np)[places] = values
        self.storage.version += 1

    def fresh(
        self, values: np.ndarray, strides: Sequence[int] | None = None, dtype: DType | None = None
    ) -> Any:
        """A tensor that owns its storage, contiguous or in the given memory order."""
        dtype = dtype or self.dtype
        values = np.asarray(values, dtype=dtype.np)
        storage = Storage(np.zeros(values.size * dtype.itemsize, dtype=np.uint8))
        result = type(self)(storage, dtype, values.shape, strides or contiguous_strides(values.shape))
        result.raw()[...] = values
        return result

    def alias(
        self,
        sizes: Sequence[int],
        strides: Sequence[int],
        offset: int | None = None,
        dtype: DType | None = None,
    ) -> Any:
        """A view: same storage, this tensor's base (or itself) as the base."""
        result = type(self)(
            self.storage, dtype or self.dtype, sizes, strides, self.offset if offset is None else offset
        )
        result.conjugated, result.negated = self.conjugated, self.negated
        result._base = self._base if self._base is not None else self
        return result

    def dimension(self, dim: int, extra: int = 0) -> int:
        """`dim` counted from the front; 0-d tensors accept 0 and -1 as PyTorch does."""
        rank = max(self.dim() + extra, 1)
        if not -rank <= dim < rank:
            fail(
                "IndexError",
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})",
            )
        return dim % rank
