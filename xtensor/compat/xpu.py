"""What programs ask of `torch.xpu`: there is no such device here."""

from __future__ import annotations

from typing import Any

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all", "synchronize"]


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no device to seed."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Nothing to empty."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""
