"""The standard's `fft` extension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import devices
from ..dtypes import dtype
from ..ops.signal import fourier
from ..tensor import Tensor
from .array import Array, made, plain
from .promotion import check

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def along_one(name: str, allowed: str, what: str) -> Any:
    """A transform along one dimension."""
    function: Callable[..., Any] = getattr(fourier, name)

    def run(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
        check(name, allowed, x.dtype)
        return made(function(plain(x), n, axis, norm))

    return published(run, name, what)


def along_many(name: str, allowed: str, what: str) -> Any:
    """A transform along several dimensions."""
    function: Callable[..., Any] = getattr(fourier, name)

    def run(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Array:
        check(name, allowed, x.dtype)
        return made(function(plain(x), s, axes, norm))

    return published(run, name, what)


def published(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    __all__.append(name)
    return function


fft = along_one("fft", "floating", "The discrete Fourier transform along a dimension.")
ifft = along_one("ifft", "floating", "The inverse of `fft`.")
rfft = along_one("rfft", "real floating", "The first half of the transform of real elements.")
irfft = along_one("irfft", "floating", "The inverse of `rfft`.")
hfft = along_one(
    "hfft", "floating", "The real transform of elements that are Hermitian, of which half is given."
)
ihfft = along_one("ihfft", "real floating", "The inverse of `hfft`.")
fftn = along_many("fftn", "floating", "The discrete Fourier transform along several dimensions.")
ifftn = along_many("ifftn", "floating", "The inverse of `fftn`.")
rfftn = along_many("rfftn", "real floating", "`rfft` along the last dimension, `fft` along the others.")
irfftn = along_many("irfftn", "floating", "The inverse of `rfftn`.")


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: devices.DeviceLike = None
) -> Array:
    """The frequencies of `n` samples at distance `d`, in the order of `fft`."""
    return made(fourier.fftfreq(n, d, dtype=dtype, device=device))


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: devices.DeviceLike = None
) -> Array:
    """The frequencies of `n` samples at distance `d`, in the order of `rfft`."""
    return made(fourier.rfftfreq(n, d, dtype=dtype, device=device))


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """The frequency 0 in the middle."""
    check("fftshift", "floating", x.dtype)
    return made(fourier.fftshift(plain(x), axes))


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`."""
    check("ifftshift", "floating", x.dtype)
    return made(fourier.ifftshift(plain(x), axes))
