"""`torch.utils.hooks`: the handles that registering a hook returns."""

from ..engine import RemovableHandle

__all__ = ["RemovableHandle"]
