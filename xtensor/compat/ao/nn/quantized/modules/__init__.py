"""Layers over quantised tensors."""

from __future__ import annotations

from typing import Any

from ...... import dtypes
from ......nn.modules.module import Module
from ......nn.modules.pooling import MaxPool2d
from ......ops.create.ingest import tensor
from ......quantized.construct import quantize_per_tensor
from ......tensor import Tensor
from .activation import *
from .batchnorm import *
from .conv import *
from .dropout import *
from .embedding_ops import *
from .functional_modules import *
from .linear import Linear
from .normalization import *
from .rnn import *

__all__ = [
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "Dropout",
    "ELU",
    "Embedding",
    "EmbeddingBag",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LSTM",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MaxPool2d",
    "MultiheadAttention",
    "PReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]


class Quantize(Module):
    """Quantises its input.

    >>> xtensor.ao.nn.quantized.Quantize(0.5, 3, xtensor.quint8)(xtensor.tensor([1.0, 2.2])).int_repr()
    tensor([5, 7], dtype=xtensor.uint8)
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: Any, zero_point: Any, dtype: dtypes.dtype, factory_kwargs: Any = None) -> None:
        super().__init__()
        place = factory_kwargs or {}
        found = [v.tolist() if isinstance(v, Tensor) else v for v in (scale, zero_point)]
        found = [v if isinstance(v, list) else [v] for v in found]
        self.register_buffer("scale", tensor(found[0], **place))
        self.register_buffer("zero_point", tensor(found[1], dtype=dtypes.int64, **place))
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:
        """The input, quantised."""
        return quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Quantize:
        """Of a stub that has seen numbers."""
        seen = mod.activation_post_process
        scale, point = seen.calculate_qparams()
        return Quantize(scale.float(), point.long(), seen.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(Module):
    """Gives the real numbers of its input."""

    def forward(self, Xq: Tensor) -> Tensor:
        """The real numbers."""
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """Of a stub."""
        return DeQuantize()
