"""The marks in a model between which it is to be quantised: layers use them, too."""

from __future__ import annotations

from typing import Any

from ....nn.modules.module import Module
from ....tensor import Tensor

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class QuantStub(Module):
    """Where a model's input would be quantised: the input itself until then."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x


class DeQuantStub(Module):
    """Where a model's result would be made floating again: the input itself until then."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x


class QuantWrapper(Module):
    """A module between the two marks."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        config = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(config))
        self.add_module("dequant", DeQuantStub(config))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        """The module's result."""
        return self.dequant(self.module(self.quant(X)))
