"""`torch.backends.nnpack`: not here; XLA has kernels of its own."""

from __future__ import annotations

from .switches import flags_of

__all__ = ["flags", "is_available"]

enabled = True
flags = flags_of(__name__, enabled="enabled")


def is_available() -> bool:
    """False: XLA does without NNPACK."""
    return False
