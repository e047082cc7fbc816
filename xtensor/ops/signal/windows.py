"""Windows of signals of old: `hann_window` and its like, periodic by default; `xtensor.signal.windows` has more.

Values are computed on the host in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import devices, dtypes
from ...operators.attach import named
from ...operators.functions.overloads import overloads
from ...operators.options import check_layout, finish, pick_device, pick_dtype, placed
from ...storage import MetaArray
from ...tensor import Tensor, wrap
from ...xla.memory import check_sizes

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]

Values = Callable[[Any, int], Any]


def made_window(
    count: int, periodic: bool, values: Values, dtype: dtypes.dtype, place: devices.device
) -> Tensor:
    """The window `values(index, last)` for indices up to `last`; a periodic one is cut by its last element."""
    if place.type == "meta":
        return wrap(MetaArray((count,), dtype.numpy))
    if count <= 1:
        return placed(np.ones((count,), dtype.numpy), place)
    check_sizes((count,), 8)
    last = count if periodic else count - 1
    return placed(values(np.arange(count, dtype=np.float64), last).astype(dtype.numpy), place)


def cosines(*factors: float) -> Values:
    """The sum of `(-1) ** k * factor * cos(2 pi k i / last)`."""
    return lambda i, last: sum(
        (-1) ** k * a * np.cos(2 * np.pi * k * i / last) for k, a in enumerate(factors)
    )


def triangle(i: Any, last: int) -> Any:
    return 1 - np.abs(2 * i / last - 1)


def kaisers(beta: float) -> Values:
    return lambda i, last: np.i0(beta * np.sqrt(np.maximum(1 - (2 * i / last - 1) ** 2, 0))) / np.i0(beta)


def window(
    name: str,
    count: Any,
    periodic: bool,
    values: Values,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    own = pick_dtype(name, dtype)
    check_layout(name, layout)
    if not (own.is_floating_point or own.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: {own}")
    if own.is_complex:
        raise NotImplementedError(f"{name} is not implemented for '{own.scalar_name}'")
    if count < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={count}")
    made = made_window(int(count), periodic, values, own, pick_device(name, device))
    return finish(name, made, requires_grad)


def plain(name: str, values: Values, doc: str) -> Any:
    """The function of a window that has no options of its own."""

    def plain_window(
        window_length: int,
        periodic: bool = True,
        *,
        dtype: dtypes.dtype | None = None,
        layout: dtypes.layout | None = None,
        device: devices.DeviceLike = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Tensor:
        return window(name, window_length, periodic, values, dtype, layout, device, requires_grad)

    signatures = ("int window_length, *, {options}", "int window_length, bool periodic, *, {options}")
    return overloads(*signatures)(named(plain_window, name, doc))


bartlett_window = plain("bartlett_window", triangle, "A triangle from 0 to 1 and back.")
blackman_window = plain(
    "blackman_window", cosines(0.42, 0.5, 0.08), "Blackman's window: the sum of two cosines and a constant."
)
hann_window = plain("hann_window", cosines(0.5, 0.5), "Hann's window: a raised cosine from 0 to 1 and back.")


@overloads(
    "int window_length, *, {options}",
    "int window_length, bool periodic, *, {options}",
    "int window_length, bool periodic, float alpha, *, {options}",
    "int window_length, bool periodic, float alpha, float beta, *, {options}",
)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Hamming's window: `alpha - beta * cos(2 pi i / n)`."""
    values = cosines(alpha, beta)
    return window("hamming_window", window_length, periodic, values, dtype, layout, device, requires_grad)


@overloads(
    "int window_length, *, {options}",
    "int window_length, bool periodic, *, {options}",
    "int window_length, bool periodic, float beta, *, {options}",
)
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's window of shape `beta`, made of the modified Bessel function of order 0."""
    values = kaisers(beta)
    return window("kaiser_window", window_length, periodic, values, dtype, layout, device, requires_grad)
