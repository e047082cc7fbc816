"""Questions about dtypes, and arrays in others."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import devices, dtypes
from ..dtypes import dtype
from ..ops.shape import joining, shapes
from ..tensor import Tensor
from .array import Array, made, made_all, plain
from .promotion import KINDS, combined, result_type

__all__ = [
    "astype",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
]


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: devices.DeviceLike = None) -> Array:
    """The array in another dtype; TypeError for complex elements in a dtype that is not. `copy=False` gives `x` where nothing changes."""
    if x.dtype.is_complex and not (dtype.is_complex or dtype is dtypes.bool):
        raise TypeError(f"astype() does not drop the imaginary parts of {x.dtype} for {dtype}")
    alike = dtype is x.dtype and (device is None or devices.resolve(device) == x.device)
    if alike and not copy and isinstance(x, Array):
        return x
    return made(plain(x).to(device=device, dtype=dtype, copy=copy))


def broadcast_arrays(*arrays: Tensor) -> list[Array]:
    """The arrays in the shape that they broadcast to, as views."""
    return made_all(joining.broadcast_tensors(*[plain(x) for x in arrays]))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Array:
    """The array in a shape that it broadcasts to, as a view."""
    return made(shapes.broadcast_to(plain(x), tuple(shape)))


def can_cast(from_: dtype | Tensor, to: dtype, /) -> bool:
    """Whether a dtype, or an array's, promotes to another."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return combined(source, to) is to
    except TypeError:
        return False


class FInfo(NamedTuple):
    """What `finfo` returns: the limits of the real parts of a floating-point dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtype


class IInfo(NamedTuple):
    """What `iinfo` returns: the limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: dtype


def finfo(type: dtype | Tensor, /) -> FInfo:
    """The limits of a floating-point dtype, or an array's; TypeError for other dtypes."""
    found = (type.dtype if isinstance(type, Tensor) else type).to_real()
    limits = dtypes.finfo(found)
    return FInfo(limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, found)


def iinfo(type: dtype | Tensor, /) -> IInfo:
    """The limits of an integer dtype, or an array's; TypeError for other dtypes."""
    found = type.dtype if isinstance(type, Tensor) else type
    limits = dtypes.iinfo(found)
    return IInfo(limits.bits, limits.max, limits.min, found)


def isdtype(dtype: dtype, kind: Any) -> bool:
    """Whether a dtype is one, of a kind by its name in the standard, or of one of several.

    >>> xtensor.array_api.isdtype(xtensor.float32, ("integral", "real floating"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if not isinstance(kind, str):
        return dtype is kind
    if kind not in KINDS:
        raise ValueError(f"unrecognized data type kind: {kind!r}")
    if dtype in (dtypes.float16, dtypes.bfloat16):  # beyond the standard
        return kind in ("real floating", "numeric")
    return dtype in KINDS[kind]
