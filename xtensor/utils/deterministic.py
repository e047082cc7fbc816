"""`torch.utils.deterministic`: whether uninitialized memory is filled while deterministic algorithms are asked for."""

from __future__ import annotations

import sys
import types

from ..ops.create.creation import Uninitialized

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory: bool


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty` and its like mark what they leave unset (NaN, True, the greatest integer)."""
        return Uninitialized.filled

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"expected a bool, but got {type(value).__name__}")
        Uninitialized.filled = value


sys.modules[__name__].__class__ = _Module
