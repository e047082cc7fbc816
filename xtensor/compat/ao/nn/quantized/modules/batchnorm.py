"""Batch normalisation over quantised numbers, by the statistics of training."""

from __future__ import annotations

from typing import Any

from ......nn.modules import batchnorm
from ......ops.create.ingest import tensor
from ......quantized.functions import OPERATORS
from ......tensor import Tensor
from ...intrinsic.modules.fused import _FusedModule
from .utils import qparams

__all__ = ["BatchNorm2d", "BatchNorm3d"]


class _BatchNorm(batchnorm._BatchNorm):
    """What both numbers of dimensions have in common."""

    scale: Tensor
    zero_point: Tensor
    _relu = False
    _rank = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self.register_buffer("scale", tensor(1.0, device=device))
        self.register_buffer("zero_point", tensor(0, device=device))

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def forward(self, input: Any) -> Tensor:
        """`batch_norm` by the running statistics, quantised."""
        if input.dim() != self._rank:
            raise ValueError("Input shape must be `(N, C, H, W)`!")
        name = f"batch_norm{self._rank - 2}d{'_relu' if self._relu else ''}"
        known = (self.weight, self.bias, self.running_mean, self.running_var)
        return OPERATORS[name](input, *known, self.eps, self.scale.item(), self.zero_point.item()).detach()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a real one whose results were seen."""
        return cls.from_reference(mod, *qparams(mod.activation_post_process))

    @classmethod
    def from_reference(cls, bn: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """Of a real one, or of one with ReLU."""
        if isinstance(bn, _FusedModule):
            bn = bn[0]
        made = cls(bn.num_features, bn.eps)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(made, name, getattr(bn, name))
        made.scale, made.zero_point = tensor(float(output_scale)), tensor(int(output_zero_point))
        return made


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W)."""

    _rank = 4


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W)."""

    _rank = 5
