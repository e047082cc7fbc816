"""The array object: a Tensor whose operators, indexing and `size` follow the standard.

A Tensor's own follow PyTorch, and they cannot be both: of float32 values and a 0-d float64 tensor PyTorch makes float32 and the
standard float64, `size` is a method of the one and a number of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import devices, dtypes
from ..geometry import numel
from ..operators.overriding import DISABLED
from ..ops.shape.rearranging import flip
from ..tensor import Size, Tensor, checked_dim, sizes_of, tensor_over

__all__ = ["Array", "Extent", "made", "made_all", "place_of", "plain", "seen"]


class Extent(int):
    """The number of an array's elements, which may be called as `Tensor.size` is.

    >>> x = xtensor.array_api.ones((2, 3))
    >>> x.size, x.size(), x.size(0)
    (6, xtensor.Size([2, 3]), 2)
    """

    sizes: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        return Size(self.sizes) if dim is None else self.sizes[dim]


class Array(Tensor):
    """A Tensor in the array API standard's ways: what the functions of `xtensor.array_api` return.

    Operators, indexing, conversions to numbers, `size`, `T` and `mT` are the standard's. All else is Tensor's, and what its methods
    return is a plain Tensor.

    >>> x = xtensor.array_api.asarray([1.0, 2.0, 3.0])
    >>> x[::-1] * 2
    Array([6., 4., 2.])
    >>> x + xtensor.array_api.asarray(1.0, dtype=xtensor.float64)
    Array([2., 3., 4.], dtype=xtensor.float64)
    """

    __slots__ = ()
    __torch_function__ = DISABLED

    @property
    def size(self) -> Extent:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The number of elements."""
        sizes = sizes_of(self)
        made = Extent(numel(sizes))
        made.sizes = sizes
        return made

    @property
    def T(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        """The transpose of a matrix; ValueError for other numbers of dimensions."""
        if self.dim() != 2:
            raise ValueError(f"x.T requires x to have 2 dimensions, got {self.dim()}")
        return self.mT

    @property
    def mT(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        """The transposes of matrices; ValueError for fewer than two dimensions."""
        if self.dim() < 2:
            raise ValueError(f"x.mT requires x to have at least 2 dimensions, got {self.dim()}")
        return made(plain(self).transpose(-2, -1))

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """The array on a device, itself where it is there; ValueError for a stream, which no device has."""
        if stream is not None:
            raise ValueError("to_device() has no streams")
        return self if devices.resolve(device) == self.device else made(plain(self).to(device))

    def __getitem__(self, key: Any) -> Array:
        source, sizes = plain(self), sizes_of(self)
        if is_mask(key) and chooses_nothing(sizes_of(key), sizes):
            source = source.reshape(numel(sizes[: key.dim()]), *sizes[key.dim() :])
            return made(source.narrow(0, 0, 0))
        key, turned = forward(key, sizes)
        found = Tensor.__getitem__(source, key)
        return made(flip(found, turned) if turned else found)

    def __setitem__(self, key: Any, value: Any) -> None:
        key, turned = forward(key, sizes_of(self))
        if isinstance(value, Tensor):
            value = plain(value)
            if turned:
                # Of dimensions that broadcast there is nothing to turn.
                missing = Tensor.__getitem__(plain(self), key).dim() - value.dim()
                value = flip(value, [dim - missing for dim in turned if dim >= missing])
        Tensor.__setitem__(self, key, value)

    def __complex__(self) -> complex:
        return complex(plain(self).item())

    def __float__(self) -> float:
        if self.dtype.is_complex:
            raise TypeError("float is not allowed on complex arrays")
        return float(plain(self).item())

    def __int__(self) -> int:
        if self.dtype.is_complex:
            raise TypeError("int is not allowed on complex arrays")
        return int(plain(self).item())

    def __index__(self) -> int:
        if not self.dtype.is_integral:
            raise TypeError("only integer arrays of one element can be an index")
        return int(plain(self).item())


def seen(tensor: Tensor, kind: type[Any]) -> Any:
    """Another object of a class over the same memory, with the same history."""
    storage, view = tensor._xt_storage, tensor._xt_view
    found = tensor_over(storage, view, tensor._xt_edge, kind)
    found._xt_meta = tensor._xt_meta
    return found


def plain(tensor: Any) -> Tensor:
    """The same array as a plain Tensor, which operators are given; TypeError for what is no array."""
    if type(tensor) is Tensor:
        return tensor
    if not isinstance(tensor, Tensor):
        raise TypeError(f"an array is needed, not {type(tensor).__name__}")
    return seen(tensor, Tensor) if type(tensor) is Array else tensor


def made(tensor: Any) -> Array:
    """An operator's result as an Array."""
    return tensor if type(tensor) is Array else seen(tensor, Array)


def made_all(tensors: Sequence[Any]) -> list[Array]:
    """An operator's results as Arrays."""
    return [made(tensor) for tensor in tensors]


def place_of(dim: int, ndim: int) -> int:
    """A dimension counted from the first; IndexError for one that is not there."""
    return checked_dim(dim, ndim) % max(ndim, 1)


def forward(key: Any, sizes: tuple[int, ...]) -> tuple[Any, list[int]]:
    """An index whose slices go forward, and the dimensions of its result that are to be turned round."""
    keys = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(k, slice) and k.step is not None and int(k.step) < 0 for k in keys):
        return key, []
    taken = sum(k.dim() if is_mask(k) else k is not None and k is not Ellipsis for k in keys)
    out: list[Any] = []
    turned: list[int] = []
    source = result = 0
    for k in keys:
        if k is Ellipsis:
            left = len(sizes) - taken
            source, result = source + left, result + left
        elif k is None:
            result += 1
        elif isinstance(k, slice):
            if k.step is not None and int(k.step) < 0:
                steps = range(*k.indices(sizes[source]))
                k = slice(steps[-1], steps[0] + 1, -steps.step) if steps else slice(0, 0)
                turned.append(result)
            source, result = source + 1, result + 1
        elif isinstance(k, Tensor):
            raise IndexError("an index with arrays takes no slices of negative steps")
        else:
            source += 1
        out.append(k)
    return tuple(out), turned


def chooses_nothing(mask: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Whether a mask has no elements and the array's sizes otherwise."""
    return 0 in mask and len(mask) <= len(sizes) and all(m in (0, s) for m, s in zip(mask, sizes))


def is_mask(key: Any) -> bool:
    return isinstance(key, Tensor) and key.dtype is dtypes.bool
