"""Convolutions whose weight is rounded in training."""

from __future__ import annotations

from typing import Any

from ......nn.modules import conv as floating
from ......nn.parameter import Parameter
from ......tensor import Tensor
from ...intrinsic.modules.fused import _FusedModule
from .linear import check_float

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


class _ConvNd(floating._ConvNd):
    """What convolutions have in common."""

    _FLOAT_MODULE: Any = None
    _FLOAT_CONV_MODULE: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes: Any = (in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        made: Any = super().__init__  # that of the convolution beside this class
        made(*sizes, bias, padding_mode, device, dtype)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant: Any = qconfig.weight()

    def forward(self, input: Tensor) -> Tensor:
        """The convolution with the rounded weight."""
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a float convolution with a qconfig, whose parameters it shares."""
        check_float("qat", cls, mod)
        config = mod.qconfig
        layer = mod[0] if isinstance(mod, _FusedModule) else mod
        given: Any = (*geometry(layer), layer.bias is not None, layer.padding_mode)
        made = cls(*given, qconfig=config)
        made.weight, made.bias = layer.weight, layer.bias
        return made

    def to_float(self) -> Any:
        """A float convolution with copies of the parameters."""
        made = self._FLOAT_CONV_MODULE(*geometry(self), self.bias is not None, self.padding_mode)
        made.weight = Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = Parameter(self.bias.detach())
        made.train(self.training)
        return made


def geometry(layer: Any) -> Any:
    """What says the shape of a convolution, in the order of its arguments."""
    sizes = (layer.in_channels, layer.out_channels, layer.kernel_size)
    return (*sizes, layer.stride, layer.padding, layer.dilation, layer.groups)


class Conv1d(_ConvNd, floating.Conv1d):
    """A convolution of (N, C, L) with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = floating.Conv1d


class Conv2d(_ConvNd, floating.Conv2d):
    """A convolution of (N, C, H, W) with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = floating.Conv2d


class Conv3d(_ConvNd, floating.Conv3d):
    """A convolution of (N, C, D, H, W) with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = floating.Conv3d
