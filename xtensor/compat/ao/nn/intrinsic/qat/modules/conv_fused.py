"""Convolutions with batch normalisation and ReLU, whose weight is rounded as it will be once the norm is folded into it."""

# Parameters have the names that PyTorch gives them, class by class.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

import math
from typing import Any

from .......nn import functional as F
from .......nn import init
from .......nn.modules import batchnorm
from .......nn.modules import conv as floating
from .......nn.modules.activation import ReLU
from .......nn.modules.module import Module
from .......nn.parameter import Parameter
from .......nn.utils.fusion import fuse_conv_bn_weights
from .......ops.create.creation import empty
from .......tensor import Tensor
from ....qat.modules import conv as qat
from ....qat.modules.conv import geometry
from ....qat.modules.linear import check_float
from ...modules import fused

__all__ = [
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "freeze_bn_stats",
    "update_bn_stats",
]


class _ConvBnNd(qat._ConvNd, fused._FusedModule):
    """What they have in common.

    The weight is scaled by the norm's running statistics before it is rounded, and the results are scaled back
    for the norm to see.
    """

    _version = 2
    _FLOAT_BN_MODULE: Any = None
    _FLOAT_RELU_MODULE: Any = None
    _FUSED_FLOAT_MODULE: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: Any = None,
        padding_mode: str = "zeros",
        eps: float = 1e-05,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
    ) -> None:
        sizes = (in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        # Past the convolution without a norm, which rounds another weight.
        made: Any = super(qat._ConvNd, self).__init__
        made(*sizes, False, padding_mode)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig, self.freeze_bn = qconfig, freeze_bn
        self.bn: Any = self._FLOAT_BN_MODULE(out_channels, eps, momentum, True, True)
        self.weight_fake_quant: Any = qconfig.weight()
        self.register_parameter("bias", Parameter(empty(out_channels)) if bias else None)
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
            bound = 1 / math.sqrt(math.prod(self.weight.shape[1:]))
            init.uniform_(self.bias, -bound, bound)

    def update_bn_stats(self) -> Any:
        """Have the norm learn statistics."""
        self.freeze_bn, self.bn.training = False, True
        return self

    def freeze_bn_stats(self) -> Any:
        """Have the norm keep its statistics."""
        self.freeze_bn, self.bn.training = True, False
        return self

    def _forward(self, input: Tensor) -> Tensor:
        scale = self.bn.weight / (self.bn.running_var + self.bn.eps).sqrt()
        rows, columns = (-1, *[1] * (self.weight.dim() - 1)), (1, -1, *[1] * (self.weight.dim() - 2))
        weight = self.weight_fake_quant(self.weight * scale.reshape(rows))
        made = self._conv_forward(input, weight, None) / scale.reshape(columns)
        return self.bn(made if self.bias is None else made + self.bias.reshape(columns))

    def forward(self, input: Tensor) -> Tensor:
        """The convolution with the rounded weight, normalised."""
        made = self._forward(input)
        return F.relu(made) if self._FLOAT_RELU_MODULE is not None else made

    def train(self, mode: bool = True) -> Any:
        """Training mode, or not; a frozen norm stays as it is."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a float convolution and norm with a qconfig, whose parameters it shares."""
        check_float("qat", cls, mod)
        conv, bn = mod[0], mod[1]
        has_bias = conv.bias is not None
        how: Any = (has_bias, conv.padding_mode, bn.eps, bn.momentum, False, mod.qconfig)
        made = cls(*geometry(conv), *how)
        made.weight, made.bias = conv.weight, conv.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(made.bn, name, getattr(bn, name))
        return made

    def to_float(self) -> Any:
        """A float convolution, the norm folded into it, and ReLU where there is one."""
        made = self._FLOAT_CONV_MODULE(*geometry(self), self.bias is not None, self.padding_mode)
        bn = self.bn
        made.weight, made.bias = fuse_conv_bn_weights(
            Parameter(self.weight.detach()),
            self.bias,
            bn.running_mean,
            bn.running_var,
            bn.eps,
            bn.weight,
            bn.bias,
        )
        if self._FLOAT_RELU_MODULE is not None:
            made = self._FUSED_FLOAT_MODULE(made, self._FLOAT_RELU_MODULE())
        made.train(self.training)
        return made

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        if local_metadata.get("version") in (None, 1):  # before the norm was a module of its own
            older = {"weight": "gamma", "bias": "beta"}
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                old = prefix + older.get(name, name)
                if old in state_dict:
                    state_dict[f"{prefix}bn.{name}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class ConvBn1d(_ConvBnNd, floating.Conv1d):
    """A convolution of (N, C, L) and a norm."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = fused.ConvBn1d, floating.Conv1d
    _FLOAT_BN_MODULE = batchnorm.BatchNorm1d


class ConvBnReLU1d(ConvBn1d):
    """A convolution of (N, C, L), a norm and ReLU."""

    _FLOAT_MODULE, _FLOAT_RELU_MODULE, _FUSED_FLOAT_MODULE = fused.ConvBnReLU1d, ReLU, fused.ConvReLU1d


class ConvBn2d(_ConvBnNd, floating.Conv2d):
    """A convolution of (N, C, H, W) and a norm."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = fused.ConvBn2d, floating.Conv2d
    _FLOAT_BN_MODULE = batchnorm.BatchNorm2d


class ConvBnReLU2d(ConvBn2d):
    """A convolution of (N, C, H, W), a norm and ReLU."""

    _FLOAT_MODULE, _FLOAT_RELU_MODULE, _FUSED_FLOAT_MODULE = fused.ConvBnReLU2d, ReLU, fused.ConvReLU2d


class ConvBn3d(_ConvBnNd, floating.Conv3d):
    """A convolution of (N, C, D, H, W) and a norm."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = fused.ConvBn3d, floating.Conv3d
    _FLOAT_BN_MODULE = batchnorm.BatchNorm3d


class ConvBnReLU3d(ConvBn3d):
    """A convolution of (N, C, D, H, W), a norm and ReLU."""

    _FLOAT_MODULE, _FLOAT_RELU_MODULE, _FUSED_FLOAT_MODULE = fused.ConvBnReLU3d, ReLU, fused.ConvReLU3d


class _ConvReLUNd(qat._ConvNd, fused._FusedModule):
    """A convolution with a rounded weight, and ReLU."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        qat._ConvNd.__init__(self, *args, **kwargs)

    def forward(self, input: Tensor) -> Tensor:
        """ReLU of the convolution with the rounded weight."""
        return F.relu(qat._ConvNd.forward(self, input))

    def to_float(self) -> Any:
        """A float convolution and ReLU with copies of the parameters."""
        return self._FLOAT_MODULE(qat._ConvNd.to_float(self), ReLU())


class ConvReLU1d(_ConvReLUNd, floating.Conv1d):
    """A convolution of (N, C, L) and ReLU."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = fused.ConvReLU1d, floating.Conv1d


class ConvReLU2d(_ConvReLUNd, floating.Conv2d):
    """A convolution of (N, C, H, W) and ReLU."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = fused.ConvReLU2d, floating.Conv2d


class ConvReLU3d(_ConvReLUNd, floating.Conv3d):
    """A convolution of (N, C, D, H, W) and ReLU."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = fused.ConvReLU3d, floating.Conv3d


def update_bn_stats(mod: Module) -> None:
    """Have the norm of a convolution learn statistics: `model.apply(update_bn_stats)`."""
    if isinstance(mod, _ConvBnNd):
        mod.update_bn_stats()


def freeze_bn_stats(mod: Module) -> None:
    """Have the norm of a convolution keep its statistics: `model.apply(freeze_bn_stats)`."""
    if isinstance(mod, _ConvBnNd):
        mod.freeze_bn_stats()
