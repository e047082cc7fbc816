"""`torch.accelerator`: whatever accelerator there is, by one set of names."""

from __future__ import annotations

from typing import Any

from .. import devices

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "set_device_idx",
    "set_device_index",
    "synchronize",
]

_current = 0


def _kind() -> str | None:
    place = devices.redirected("cuda")
    if place is not None:
        return None if place.type == "cpu" else place.type
    return next((kind for kind in ("cuda", "rocm", "tpu") if devices.count(kind)), None)


def is_available() -> bool:
    """Whether JAX finds an accelerator."""
    return _kind() is not None


def device_count() -> int:
    """How many accelerators there are."""
    kind = _kind()
    return 0 if kind is None else devices.count(kind)


def current_accelerator(check_available: bool = False) -> devices.device | None:
    """The kind of accelerator, as a device without an index; None without one."""
    kind = _kind()
    return None if kind is None else devices.device(kind)


def _place(device: Any = None) -> devices.device:
    kind = _kind()
    if kind is None:
        raise RuntimeError("Please register PrivateUse1HooksInterface first: no accelerator is available")
    if device is None or isinstance(device, int):
        return devices.device(kind, _current if device is None else device)
    return devices.device(device)


def current_device_index() -> int:
    """The index that these functions mean when they are given none."""
    return _current


def set_device_index(device: Any) -> None:
    """Let these functions mean that device when they are given none."""
    global _current
    _current = _place(device).index or 0


current_device_idx, set_device_idx = current_device_index, set_device_index


def synchronize(device: Any = None) -> None:
    """Wait until everything asked of the device is computed."""
    devices.synchronize(_place(device))


def empty_cache() -> None:
    """Nothing: XLA's allocator keeps its pool."""


def memory_allocated(device: Any = None) -> int:
    """The bytes that arrays hold on the device."""
    return devices.memory(_place(device)).allocated


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes held so far, where XLA counts them; otherwise what is held now."""
    found = devices.memory(_place(device))
    return found.allocated if found.peak is None else found.peak
