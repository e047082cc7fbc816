"""A linear layer with batch normalisation, whose weight is rounded as it will be once the norm is folded into it."""

from __future__ import annotations

import math
from typing import Any

from .......nn import functional as F
from .......nn import init
from .......nn.modules.batchnorm import BatchNorm1d
from .......nn.modules.linear import Linear
from .......nn.parameter import Parameter
from .......nn.utils.fusion import fuse_linear_bn_weights
from .......tensor import Tensor
from ....qat.modules.linear import check_float
from ...modules import fused

__all__ = ["LinearBn1d"]


class LinearBn1d(Linear, fused._FusedModule):
    """A linear layer and a norm."""

    _FLOAT_MODULE: Any = fused.LinearBn1d

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        eps: float = 1e-05,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
    ) -> None:
        Linear.__init__(self, in_features, out_features, bias)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig, self.freeze_bn = qconfig, freeze_bn
        self.bn: Any = BatchNorm1d(out_features, eps, momentum, True, True)
        self.weight_fake_quant: Any = qconfig.weight()
        self.reset_bn_parameters()
        if freeze_bn:
            self.freeze_bn_stats()

    def reset_running_stats(self) -> None:
        """Forget the norm's statistics."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """Draw the norm's scales and the bias anew."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features)
            init.uniform_(self.bias, -bound, bound)

    def update_bn_stats(self) -> Any:
        """Have the norm learn statistics."""
        self.freeze_bn, self.bn.training = False, True
        return self

    def freeze_bn_stats(self) -> Any:
        """Have the norm keep its statistics."""
        self.freeze_bn, self.bn.training = True, False
        return self

    def forward(self, input: Tensor) -> Tensor:
        """The layer with the rounded weight, normalised."""
        scale = self.bn.weight / (self.bn.running_var + self.bn.eps).sqrt()
        weight = self.weight_fake_quant(self.weight * scale.reshape(-1, 1))
        made = F.linear(input, weight) / scale
        return self.bn(made if self.bias is None else made + self.bias)

    def train(self, mode: bool = True) -> Any:
        """Training mode, or not; a frozen norm stays as it is."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a float layer and norm with a qconfig, whose parameters it shares."""
        check_float("qat", cls, mod)
        linear, bn = mod[0], mod[1]
        how = (linear.bias is not None, bn.eps, bn.momentum, False, mod.qconfig)
        made = cls(linear.in_features, linear.out_features, *how)
        made.weight, made.bias = linear.weight, linear.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(made.bn, name, getattr(bn, name))
        return made

    def to_float(self) -> Any:
        """A float layer, the norm folded into it."""
        bn, made = self.bn, Linear(self.in_features, self.out_features)
        made.weight, made.bias = fuse_linear_bn_weights(
            Parameter(self.weight.detach()),
            self.bias,
            bn.running_mean,
            bn.running_var,
            bn.eps,
            bn.weight,
            bn.bias,
        )
        return made
