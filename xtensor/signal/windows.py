"""Windows of signals: `xtensor.signal.windows`, the names of `torch.signal.windows`; symmetric unless `sym=False`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

from .. import devices, dtypes
from ..operators.attach import named
from ..operators.options import finish, pick_device
from ..ops.signal.windows import cosines, kaisers, made_window, triangle
from ..tensor import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def made(
    name: str, M: int, values: Any, sym: bool, dtype: Any, layout: Any, device: Any, requires_grad: bool
) -> Tensor:
    """The checks that all windows share, and the window; errors name the function that PyTorch's name."""
    own = dtypes.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not dtypes.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if own not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {own}")
    if isinstance(M, float):
        raise TypeError(f"{name}(): argument 'M' (position 1) must be int, not float")
    return finish(name, made_window(M, not sym, values, own, pick_device(name, device)), requires_grad)


class Window(Protocol):
    """A window's function: `M` values."""

    def __call__(
        self,
        M: int,
        *,
        sym: bool = True,
        dtype: dtypes.dtype | None = None,
        layout: dtypes.layout = dtypes.strided,
        device: devices.DeviceLike = None,
        requires_grad: bool = False,
    ) -> Tensor: ...


HARRIS = "Harris 1978, Proceedings of the IEEE 66"


def plain(
    name: str,
    values: Callable[[Any, int], Any],
    doc: str,
    called: str = "general_cosine",
    source: str = HARRIS,
) -> Window:
    """The function of a window that has no options of its own; its errors name `called`."""

    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: dtypes.dtype | None = None,
        layout: dtypes.layout = dtypes.strided,
        device: devices.DeviceLike = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return made(called, M, values, sym, dtype, layout, device, requires_grad)

    return named(
        window,
        name,
        f"{doc}\n\nShape: result `(M)`.\n\nRaises: ValueError for a negative `M`.\n\nSource: {source}.",
    )


def half_period(i: Any, last: int) -> Any:
    return np.sin(np.pi * (i + 0.5) / (last + 1))


bartlett: Window = plain("bartlett", triangle, "A triangle from 0 to 1 and back.", "bartlett")
blackman: Window = plain(
    "blackman", cosines(0.42, 0.5, 0.08), "Blackman's window: two cosines and a constant.", "blackman"
)
cosine: Window = plain("cosine", half_period, "Half a period of a sine.", "cosine")
hamming: Window = plain(
    "hamming", cosines(0.54, 0.46), "Hamming's window: `general_hamming` with alpha 0.54."
)
hann: Window = plain("hann", cosines(0.5, 0.5), "Hann's window: `general_hamming` with alpha 0.5.")
nuttall: Window = plain(
    "nuttall",
    cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "Nuttall's window: three cosines and a constant.",
    source="Nuttall 1981, IEEE Transactions on Acoustics, Speech, and Signal Processing 29",
)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout = dtypes.strided,
    device: devices.DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`exp(-abs(i - center) / tau)`; only a window that is not symmetric takes a centre of its own.

    Shape: result `(M)`.

    Raises: ValueError for a negative `M`.

    Source: Harris 1978, Proceedings of the IEEE 66.
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def values(i: Any, last: int) -> Any:
        return np.exp(-np.abs(i - (last / 2 if center is None else center)) / tau)

    return made("exponential", M, values, sym, dtype, layout, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout = dtypes.strided,
    device: devices.DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """The bell of standard deviation `std`.

    Shape: result `(M)`.

    Raises: ValueError for a negative `M`.

    Source: Harris 1978, Proceedings of the IEEE 66.
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def values(i: Any, last: int) -> Any:
        return np.exp(-(((i - last / 2) / std) ** 2) / 2)

    return made("gaussian", M, values, sym, dtype, layout, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout = dtypes.strided,
    device: devices.DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """The sum of cosines with the coefficients `a`, their signs alternating.

    Shape: result `(M)`.

    Raises: ValueError for a negative `M`, and for no coefficients.

    Source: Harris 1978, Proceedings of the IEEE 66.
    """
    if not isinstance(a, (list, tuple)) and M > 0:
        raise TypeError("Coefficients must be a list/tuple")
    coefficients = tuple(a)
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")
    return made("general_cosine", M, cosines(*coefficients), sym, dtype, layout, device, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout = dtypes.strided,
    device: devices.DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`alpha - (1 - alpha) * cos(2 pi i / (M - 1))`.

    Shape: result `(M)`.

    Raises: ValueError for a negative `M`.

    Source: Harris 1978, Proceedings of the IEEE 66.
    """
    values = cosines(alpha, 1 - alpha)
    return made("general_cosine", M, values, sym, dtype, layout, device, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout = dtypes.strided,
    device: devices.DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's window of shape `beta`.

    Shape: result `(M)`.

    Raises: ValueError for a negative `M`.

    Source: Harris 1978, Proceedings of the IEEE 66.
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return made("kaiser", M, kaisers(beta), sym, dtype, layout, device, requires_grad)
