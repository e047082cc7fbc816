"""`torch.utils.hooks`: the handles that registering a hook returns."""

from __future__ import annotations

from ..engine import RemovableHandle

__all__ = ["RemovableHandle"]
