"""New arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import devices, dtypes
from ..dtypes import dtype
from ..ops.create import creation, ingest, ranges
from ..ops.shape import rearranging
from ..ops.tensor import export
from ..tensor import Tensor
from .array import Array, made, made_all, plain
from .promotion import combined

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

Device = devices.DeviceLike
Shape = int | Sequence[int]
Number = bool | int | float | complex


def sizes(shape: Shape) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, int) else tuple(shape)


def asarray(
    obj: Any, /, *, dtype: dtype | None = None, device: Device = None, copy: bool | None = None
) -> Array:
    """An array of numbers, nested sequences, tensors, or what NumPy or DLPack can see.

    Of a tensor it shares the memory and the history unless `copy` is true or dtype or device change. ValueError where `copy=False`
    cannot be, OverflowError for integers that the dtype does not hold.

    >>> xtensor.array_api.asarray([[1, 2], [3, 4]]).shape
    xtensor.Size([2, 2])
    """
    if isinstance(obj, Tensor):
        source = plain(obj)
        there = device is None or devices.resolve(device) == source.device
        alike = (dtype is None or dtype is source.dtype) and there
        if copy is False and not alike:
            raise ValueError("asarray(copy=False) cannot change the dtype or the device")
        if not alike:
            return made(source.to(device=device, dtype=dtype))
        if copy:
            return made(source.clone())
        return obj if isinstance(obj, Array) else made(source.view(source.shape))
    foreign = hasattr(obj, "__dlpack__") or hasattr(obj, "__array_interface__") or is_buffer(obj)
    if copy is False and not foreign:
        raise ValueError("asarray(copy=False) cannot take Python numbers without a copy")
    if foreign:
        return made(ingest.asarray(obj, dtype=dtype, device=device, copy=copy))
    if dtype is not None and dtype.is_integral:
        refuse_overflow(obj, dtypes.iinfo(dtype))
    return made(ingest.tensor(obj, dtype=dtype, device=device))


def is_buffer(obj: Any) -> bool:
    if isinstance(obj, (bool, int, float, complex, list, tuple)):
        return False
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def refuse_overflow(obj: Any, limits: Any) -> None:
    """OverflowError for a Python integer, however nested, beyond the limits."""
    if isinstance(obj, (list, tuple)):
        for part in obj:
            refuse_overflow(part, limits)
    elif isinstance(obj, int) and not limits.min <= obj <= limits.max:
        raise OverflowError(f"{obj} is out of bounds for {limits.dtype}")


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: dtype | None = None,
    device: Device = None,
) -> Array:
    """Numbers from `start`, included, to `stop`, excluded; none where the step leads away."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange() needs a step other than 0")
    if dtype is None:
        whole = all(isinstance(v, int) for v in (start, stop, step))
        dtype = dtypes.int64 if whole else dtypes.get_default_dtype()
    if (stop - start) * step <= 0:
        return empty(0, dtype=dtype, device=device)
    return made(ranges.arange(start, stop, step, dtype=dtype, device=device))


def empty(shape: Shape, *, dtype: dtype | None = None, device: Device = None) -> Array:
    """An array of any values, the default float ones."""
    return made(creation.empty(sizes(shape), dtype=dtype, device=device))


def zeros(shape: Shape, *, dtype: dtype | None = None, device: Device = None) -> Array:
    """An array of zeros."""
    return made(creation.zeros(sizes(shape), dtype=dtype, device=device))


def ones(shape: Shape, *, dtype: dtype | None = None, device: Device = None) -> Array:
    """An array of ones."""
    return made(creation.ones(sizes(shape), dtype=dtype, device=device))


def full(shape: Shape, fill_value: Number, *, dtype: dtype | None = None, device: Device = None) -> Array:
    """An array of one value, whose kind gives the dtype."""
    return made(creation.full(sizes(shape), fill_value, dtype=dtype, device=device))


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: Device = None) -> Array:
    """An array of any values with the shape, dtype and device of another."""
    return empty(tuple(x.shape), dtype=dtype or x.dtype, device=x.device if device is None else device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: Device = None) -> Array:
    """An array of zeros with the shape, dtype and device of another."""
    return zeros(tuple(x.shape), dtype=dtype or x.dtype, device=x.device if device is None else device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: Device = None) -> Array:
    """An array of ones with the shape, dtype and device of another."""
    return ones(tuple(x.shape), dtype=dtype or x.dtype, device=x.device if device is None else device)


def full_like(
    x: Tensor, /, fill_value: Number, *, dtype: dtype | None = None, device: Device = None
) -> Array:
    """An array of one value with the shape, dtype and device of another."""
    place = x.device if device is None else device
    return full(tuple(x.shape), fill_value, dtype=dtype or x.dtype, device=place)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: dtype | None = None,
    device: Device = None,
) -> Array:
    """A matrix with ones on its `k`-th diagonal."""
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return made(ranges.eye(n_rows, columns, dtype=dtype, device=device))
    rows = ranges.arange(n_rows, device=device).unsqueeze(1) + within(k, n_rows, columns)
    return made((rows == ranges.arange(columns, device=device)).to(dtype or dtypes.get_default_dtype()))


def within(k: int, rows: int, columns: int) -> int:
    """The number of a diagonal; of one outside of the matrix, of the next that is."""
    return min(max(k, -rows), columns)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: dtype | None = None,
    device: Device = None,
    endpoint: bool = True,
) -> Array:
    """`num` numbers at equal distances from `start` to `stop`, that included where `endpoint` says so."""
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = dtypes.get_default_complex_dtype()
    # NumPy's: of the numbers around it, the last one and the middle ones are exact.
    wanted = dtype or dtypes.get_default_dtype()
    found = np.linspace(start, stop, num, endpoint=endpoint, dtype=wanted.numpy)
    return made(ingest.tensor(found, dtype=wanted, device=device))


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Array]:
    """The coordinates of a grid whose axes are these vectors, of one dtype."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', not {indexing!r}")
    for x in arrays[1:]:
        combined(arrays[0].dtype, x.dtype)
    if not arrays:
        return []
    return made_all(ranges.meshgrid(*[plain(x) for x in arrays], indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Array:
    """The lower triangles of matrices, up to the `k`-th diagonal."""
    return made(rearranging.tril(plain(x), within(k, x.shape[-2], x.shape[-1])))


def triu(x: Tensor, /, *, k: int = 0) -> Array:
    """The upper triangles of matrices, from the `k`-th diagonal."""
    return made(rearranging.triu(plain(x), within(k, x.shape[-2], x.shape[-1])))


def from_dlpack(x: Any, /, *, device: Device = None, copy: bool | None = None) -> Array:
    """The array that another library gives by DLPack; ValueError where `copy=False` cannot be."""
    return made(export.from_dlpack(plain(x) if isinstance(x, Tensor) else x, device=device, copy=copy))
