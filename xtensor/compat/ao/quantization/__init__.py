"""`torch.ao.quantization`: the marks in a model that is not quantised. To quantise one is refused."""

from __future__ import annotations

from typing import Any

from ....nn.modules.module import Module
from ....tensor import Tensor

__all__ = [
    "DeQuantStub",
    "QuantStub",
    "QuantWrapper",
    "convert",
    "prepare",
    "prepare_qat",
    "quantize_dynamic",
]


class QuantStub(Module):
    """Where a model's input would be quantised: the input itself until then."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x


class DeQuantStub(QuantStub):
    """Where a model's result would be made floating again: the input itself."""


class QuantWrapper(Module):
    """A module between the two marks."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.add_module("quant", QuantStub())
        self.add_module("dequant", DeQuantStub())
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        """The module's result."""
        return self.dequant(self.module(self.quant(X)))


def _refused(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"torch.ao.quantization.{name} is not in xtensor: quantisation back ends")

    refuse.__name__ = name
    refuse.__doc__ = "Refused: there is no quantised arithmetic."
    return refuse


prepare = _refused("prepare")
prepare_qat = _refused("prepare_qat")
convert = _refused("convert")
quantize_dynamic = _refused("quantize_dynamic")
