"""`torch.backends.mha`: whether encoder layers take a fast path at inference; here there is one path."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` was told."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Remembered; both ways give the same."""
    global _enabled
    _enabled = bool(value)
