"""What programs ask of `torch.cpu`, so that they can treat it as any other device."""

from __future__ import annotations

from typing import Any

from ... import devices
from . import amp as amp

__all__ = ["amp", "current_device", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1, as in PyTorch."""
    return 1


def current_device() -> str:
    """Its name."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Wait until everything is computed, as it always is in PyTorch, where this does nothing: who takes the time asks here."""
    devices.synchronize("cpu")
