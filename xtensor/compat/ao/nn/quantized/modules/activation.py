"""Activations over quantised numbers, whose results have a scale of their own."""

from __future__ import annotations

from typing import Any

from ...... import dtypes
from ......nn.modules import activation as floating
from ......nn.modules.module import Module
from ......ops.create.creation import zeros
from ......ops.create.ingest import tensor
from ......quantized import functions
from ......quantized.construct import quantize_per_tensor
from ......tensor import Tensor
from ...observing import converted
from ...quantizable.modules.activation import MultiheadAttention as ObservedAttention
from .utils import _quantize_weight, qparams

__all__ = [
    "ELU",
    "Hardswish",
    "LeakyReLU",
    "MultiheadAttention",
    "PReLU",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]


class ReLU6(floating.ReLU):
    """Numbers kept within 0 and 6, quantised as they are."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input: Any) -> Tensor:
        """The numbers, kept within 0 and 6."""
        return functions.relu6(input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """Of a real one."""
        return ReLU6(mod.inplace)


class Hardswish(floating.Hardswish):
    """`Hardswish`, quantised by a scale."""

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: Any, zero_point: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.register_buffer("scale", tensor(scale, device=device))
        self.register_buffer("zero_point", tensor(zero_point, device=device))

    def forward(self, input: Any) -> Tensor:
        """`hardswish`, quantised."""
        return functions.hardswish(input, self.scale.item(), self.zero_point.item())

    def _get_name(self) -> str:
        return "QuantizedHardswish"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Hardswish:
        """Of a real one whose results were seen."""
        return Hardswish(*qparams(mod.activation_post_process))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """Of a real one."""
        return cls(float(scale), int(zero_point))


class ELU(floating.ELU):
    """`ELU`, quantised by a scale."""

    def __init__(self, scale: Any, zero_point: Any, alpha: float = 1.0) -> None:
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Any) -> Tensor:
        """`elu`, quantised."""
        return functions.elu(input, float(self.scale), int(self.zero_point), self.alpha)

    def _get_name(self) -> str:
        return "QuantizedELU"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> ELU:
        """Of a real one whose results were seen."""
        return ELU(*qparams(mod.activation_post_process), mod.alpha)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """Of a real one."""
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(floating.LeakyReLU):
    """`LeakyReLU`, quantised by a scale."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        scale: float,
        zero_point: int,
        negative_slope: float = 1e-2,
        inplace: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(negative_slope, inplace)
        self.register_buffer("scale", tensor(scale, device=device))
        self.register_buffer("zero_point", tensor(zero_point, device=device))

    def forward(self, input: Any) -> Tensor:
        """`leaky_relu`, quantised."""
        how = (self.scale.item(), self.zero_point.item())
        return functions.leaky_relu(input, self.negative_slope, self.inplace, *how)

    def _get_name(self) -> str:
        return "QuantizedLeakyReLU"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a real one whose results were seen."""
        return cls(*qparams(mod.activation_post_process), mod.negative_slope, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """Of a real one."""
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


class Sigmoid(floating.Sigmoid):
    """`Sigmoid`, quantised by a scale."""

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Any) -> Tensor:
        """`sigmoid`, quantised."""
        return functions.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a real one whose results were seen."""
        return cls(*qparams(mod.activation_post_process))


class Softmax(floating.Softmax):
    """`Softmax`, quantised by a scale."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__()
        self.dim, self.scale, self.zero_point = dim, scale, zero_point

    def forward(self, input: Any) -> Tensor:
        """`softmax`, quantised; of the dimension that PyTorch takes where there is none."""
        dim = self.dim
        if dim is None:
            dim = 0 if input.dim() in (0, 1, 3) else 1
        return functions.softmax(input, dim, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Softmax:
        """Of a real one whose results were seen."""
        return Softmax(mod.dim, *qparams(mod.activation_post_process))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """Of a real one."""
        return cls(mod.dim, float(scale), int(zero_point))


class PReLU(Module):
    """`PReLU` with quantised slopes, quantised by a scale."""

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.scale, self.zero_point = output_scale, output_zero_point
        slopes = zeros(num_parameters, dtype=dtypes.float32)
        self.set_weight(quantize_per_tensor(slopes, 1.0, 0, dtypes.quint8))

    def set_weight(self, w: Any) -> None:
        """Hold quantised slopes."""
        self.__dict__["weight"] = w

    def forward(self, input: Any) -> Tensor:
        """`prelu`, quantised."""
        return functions.prelu(input, self.__dict__["weight"], self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a real one whose results were seen."""
        made = cls(*qparams(mod.activation_post_process), mod.num_parameters)
        observer = mod.qconfig.weight()
        observer(mod.weight.float())
        made.set_weight(quantize_per_tensor(mod.weight.detach().float(), *qparams(observer), observer.dtype))
        return made

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """Of a real one."""
        made = cls(float(scale), int(zero_point), mod.num_parameters)
        observer = mod.qconfig.weight()
        observer(mod.weight.float())
        if observer.dtype is not dtypes.quint8:
            raise AssertionError("PReLU's weight observer should have dtype quint8")
        made.set_weight(_quantize_weight(mod.weight.float(), observer))
        return made


class MultiheadAttention(ObservedAttention):
    """Attention whose layers are quantised: made of an observed one."""

    _FLOAT_MODULE = ObservedAttention

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """NotImplementedError: it is made of an observed one."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed MHA module. Please, see the examples on quantizable MHAs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Of an attention whose layers were seen."""
        made = converted(other)
        made.__class__ = cls
        for name in ("in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            made._parameters.pop(name, None)  # the projections are layers
        return made
