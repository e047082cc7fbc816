"""What programs ask of `torch.mps`: there is no Metal device here."""

from __future__ import annotations

__all__ = [
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "is_available",
    "manual_seed",
    "seed",
    "synchronize",
]


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no device to seed."""


def seed() -> None:
    """Nothing: there is no device to seed."""


def synchronize() -> None:
    """Nothing to wait for."""


def empty_cache() -> None:
    """Nothing to empty."""


def current_allocated_memory() -> int:
    """0."""
    return 0


def driver_allocated_memory() -> int:
    """0."""
    return 0
