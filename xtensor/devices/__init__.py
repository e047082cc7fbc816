"""Device names, placement and transfer."""

from __future__ import annotations

from .placement import (
    DeviceLike,
    current,
    default,
    device,
    jax_device,
    of_array,
    put,
    resolve,
    set_default_device,
    use,
)

__all__ = [
    "DeviceLike",
    "current",
    "default",
    "device",
    "jax_device",
    "of_array",
    "put",
    "resolve",
    "set_default_device",
    "use",
]
