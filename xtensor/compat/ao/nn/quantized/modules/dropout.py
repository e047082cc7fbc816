"""Dropout over quantised numbers, which drops nothing."""

from __future__ import annotations

from typing import Any

from ......nn.modules import dropout as floating

__all__ = ["Dropout"]


class Dropout(floating.Dropout):
    """Gives its input."""

    def forward(self, input: Any) -> Any:
        """The input."""
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a real one."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """Of a real one."""
        return cls(mod.p, mod.inplace)
