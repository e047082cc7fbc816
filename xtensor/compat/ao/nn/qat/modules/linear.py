"""Linear layers whose weight is rounded in training."""

from __future__ import annotations

from typing import Any

from ......nn import functional as F
from ......nn.modules.linear import Linear as FloatLinear
from ......nn.parameter import Parameter
from ......tensor import Tensor
from ...intrinsic.modules.fused import _FusedModule

__all__ = ["Linear"]


def check_float(kind: str, cls: Any, mod: Any) -> None:
    """Refuse a layer of another kind, or without a qconfig."""
    if type(mod) is not cls._FLOAT_MODULE and not isinstance(mod, FloatLinear):
        raise AssertionError(f"{kind}.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")


class Linear(FloatLinear):
    """A linear layer with a rounded weight."""

    _FLOAT_MODULE: Any = FloatLinear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant: Any = qconfig.weight()

    def forward(self, input: Tensor) -> Tensor:
        """`input @ weight.T + bias` of the rounded weight."""
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a float layer with a qconfig, whose parameters it shares."""
        check_float("qat", cls, mod)
        config = mod.qconfig
        layer = mod[0] if isinstance(mod, _FusedModule) else mod
        made = cls(layer.in_features, layer.out_features, layer.bias is not None, qconfig=config)
        made.weight, made.bias = layer.weight, layer.bias
        return made

    def to_float(self) -> Any:
        """A float layer with copies of the parameters."""
        made = FloatLinear(self.in_features, self.out_features, self.bias is not None)
        made.weight = Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = Parameter(self.bias.detach())
        made.train(self.training)
        return made
