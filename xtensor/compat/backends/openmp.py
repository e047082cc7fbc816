"""`torch.backends.openmp`: not here."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """False: XLA does without OpenMP."""
    return False
