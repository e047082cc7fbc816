"""`torch.backends.mps`: not here."""

from __future__ import annotations

__all__ = ["is_available", "is_built", "is_macos13_or_newer"]


def is_available() -> bool:
    """False: XLA does without Metal."""
    return False


def is_built() -> bool:
    """False: there is no Metal device here."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """False: there is no Metal device here."""
    return False
