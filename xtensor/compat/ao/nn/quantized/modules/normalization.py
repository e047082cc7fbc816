"""Norms over quantised numbers, whose results have a scale of their own."""

from __future__ import annotations

from typing import Any

from ......nn.modules import instancenorm, normalization
from ......ops.create.ingest import tensor
from ......quantized import functions
from ......tensor import Tensor
from .utils import qparams

__all__ = ["GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm"]


def hold(module: Any, weight: Any, bias: Any, scale: Any, zero_point: Any, device: Any) -> None:
    """Give a norm its weight and bias, and the scale and zero point of its results."""
    module.weight, module.bias = weight, bias
    module.register_buffer("scale", tensor(scale, device=device))
    module.register_buffer("zero_point", tensor(zero_point, device=device))


class LayerNorm(normalization.LayerNorm):
    """`LayerNorm`, quantised by a scale."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        normalized_shape: Any,
        weight: Any,
        bias: Any,
        scale: Any,
        zero_point: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, device=device, dtype=dtype)
        hold(self, weight, bias, scale, zero_point, device)

    def forward(self, input: Any) -> Tensor:
        """`layer_norm`, quantised."""
        how = (self.eps, self.scale.item(), self.zero_point.item())
        return functions.layer_norm(input, self.normalized_shape, self.weight, self.bias, *how)

    def _get_name(self) -> str:
        return "QuantizedLayerNorm"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a real one whose results were seen."""
        return cls.from_reference(mod, *qparams(mod.activation_post_process))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """Of a real one."""
        how = (float(scale), int(zero_point), mod.eps, mod.elementwise_affine)
        return cls(mod.normalized_shape, mod.weight, mod.bias, *how)


class GroupNorm(normalization.GroupNorm):
    """`GroupNorm`, quantised by a scale."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        weight: Any,
        bias: Any,
        scale: Any,
        zero_point: Any,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        hold(self, weight, bias, scale, zero_point, device)

    def forward(self, input: Any) -> Tensor:
        """`group_norm`, quantised."""
        how = (self.eps, self.scale.item(), self.zero_point.item())
        return functions.group_norm(input, self.num_groups, self.weight, self.bias, *how)

    def _get_name(self) -> str:
        return "QuantizedGroupNorm"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a real one whose results were seen."""
        how = (*qparams(mod.activation_post_process), mod.eps, mod.affine)
        return cls(mod.num_groups, mod.num_channels, mod.weight, mod.bias, *how)


class _InstanceNorm(instancenorm._InstanceNorm):
    """What norms of instances have in common, of each number of dimensions."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        num_features: int,
        weight: Any,
        bias: Any,
        scale: Any,
        zero_point: Any,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        hold(self, weight, bias, scale, zero_point, device)

    def forward(self, input: Any) -> Tensor:
        """`instance_norm`, quantised."""
        how = (self.eps, self.scale.item(), self.zero_point.item())
        return functions.instance_norm(input, self.weight, self.bias, *how)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a real one whose results were seen."""
        return cls.from_reference(mod, *qparams(mod.activation_post_process))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """Of a real one."""
        how = (float(scale), int(zero_point), mod.eps, mod.affine)
        return cls(mod.num_features, mod.weight, mod.bias, *how)


class InstanceNorm1d(_InstanceNorm, instancenorm.InstanceNorm1d):
    """`InstanceNorm1d`, quantised by a scale."""


class InstanceNorm2d(_InstanceNorm, instancenorm.InstanceNorm2d):
    """`InstanceNorm2d`, quantised by a scale."""


class InstanceNorm3d(_InstanceNorm, instancenorm.InstanceNorm3d):
    """`InstanceNorm3d`, quantised by a scale."""
