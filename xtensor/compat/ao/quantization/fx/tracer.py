"""Tracing of models to be quantised: layers are not entered, nor what the user names."""

from __future__ import annotations

from typing import Any

from .....fx.tracer import Tracer
from .....nn.modules.module import Module
from ...nn.intrinsic.modules.fused import _FusedModule

__all__ = ["QuantizationTracer"]


class QuantizationTracer(Tracer):
    """Modules of `nn` but fused ones of `nn.Sequential`, of these names, and of these classes, are one node each."""

    def __init__(self, skipped_module_names: list[str], skipped_module_classes: list[Any]) -> None:
        super().__init__()
        self.skipped_module_names = skipped_module_names
        self.skipped_module_classes = tuple(skipped_module_classes)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module's call is one node."""
        own = type(m).__module__
        return (
            super().is_leaf_module(m, module_qualified_name)
            or ".ao.nn." in own
            or module_qualified_name in self.skipped_module_names
            or isinstance(m, (*self.skipped_module_classes, _FusedModule))
        )
