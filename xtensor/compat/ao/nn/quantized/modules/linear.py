"""Linear layers over quantised numbers."""

from __future__ import annotations

from typing import Any

from ...... import dtypes
from ......nn.modules.linear import Linear as FloatLinear
from ......nn.modules.linear import NonDynamicallyQuantizableLinear
from ......nn.modules.module import Module
from ......nn.utils.fusion import fuse_linear_bn_weights
from ......ops.create.creation import zeros
from ......quantized.construct import _empty_affine_quantized
from ......quantized.packed import ScriptObject, half_packed, linear_packed
from ......quantized.products import multiplied
from ......tensor import Tensor
from ...intrinsic.modules.fused import _FusedModule
from .utils import WeightedQuantizedModule, _quantize_weight, check_float, qparams, saved_state, shown

__all__ = ["Linear", "LinearPackedParams"]


class LinearPackedParams(Module):
    """The weight and the bias of a linear layer, packed."""

    _version = 3

    def __init__(self, dtype: dtypes.dtype = dtypes.qint8) -> None:
        super().__init__()
        self.dtype = dtype
        self._packed_params: ScriptObject
        if dtype is dtypes.float16:
            self.set_weight_bias(zeros(1, 1), None)
        else:
            self.set_weight_bias(
                _empty_affine_quantized(1, 1, scale=1.0, zero_point=0, dtype=dtypes.qint8), None
            )

    def set_weight_bias(self, weight: Any, bias: Tensor | None) -> None:
        """Hold a weight of the dtype, and a bias."""
        pack = {dtypes.qint8: linear_packed, dtypes.float16: half_packed}.get(self.dtype)
        if pack is None:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")
        self._packed_params = pack(weight, bias)

    def _weight_bias(self) -> tuple[Any, Tensor | None]:
        return self._packed_params.unpack()

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}dtype"] = self.dtype
        destination[f"{prefix}_packed_params"] = self._weight_bias()

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        version = local_metadata.get("version")
        self.dtype = state_dict.pop(f"{prefix}dtype", dtypes.qint8)
        if version is None or version < 3:
            self.set_weight_bias(state_dict.pop(f"{prefix}weight"), state_dict.pop(f"{prefix}bias"))
        else:
            self.set_weight_bias(*state_dict.pop(f"{prefix}_packed_params"))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule):
    """A linear layer over quantised numbers, whose results are quantised by `scale` and `zero_point`."""

    _version = 3
    _FLOAT_MODULE: Any = (FloatLinear, NonDynamicallyQuantizableLinear)
    _relu = False

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, dtype: dtypes.dtype = dtypes.qint8
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        bias = zeros(out_features) if bias_ else None
        if dtype is dtypes.qint8:
            size = (out_features, in_features)
            weight: Any = _empty_affine_quantized(*size, scale=1.0, zero_point=0, dtype=dtypes.qint8)
        elif dtype is dtypes.float16:
            weight = zeros(out_features, in_features)
        else:
            raise RuntimeError("Unsupported dtype specified for quantized Linear!")
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, bias)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return shown(self, LinearPackedParams)

    def forward(self, x: Any) -> Tensor:
        """`x @ weight.T + bias`, quantised."""
        return multiplied(x, *self._weight_bias(), self.scale, self.zero_point, self._relu)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        saved_state(self, destination, prefix)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        self.scale = float(state_dict.pop(f"{prefix}scale"))
        self.zero_point = int(state_dict.pop(f"{prefix}zero_point"))
        version = local_metadata.get("version")
        if version is None or version == 1:  # before they were packed
            state_dict[f"{prefix}_packed_params.weight"] = state_dict.pop(f"{prefix}weight")
            state_dict[f"{prefix}_packed_params.bias"] = state_dict.pop(f"{prefix}bias")
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    def _weight_bias(self) -> tuple[Any, Tensor | None]:
        return self._packed_params._weight_bias()

    def set_weight_bias(self, w: Any, b: Tensor | None) -> None:
        """Hold a quantised weight and a real bias."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def like(cls, mod: Any) -> Any:
        """A layer of as many features."""
        return cls(mod.in_features, mod.out_features)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a layer whose results were seen, and whose weight was, in training."""
        check_float(cls, mod)
        seen = mod.activation_post_process
        if isinstance(getattr(mod, "bn", None), Module):
            bn = mod.bn
            mod.weight, mod.bias = fuse_linear_bn_weights(
                mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
            )
        if isinstance(mod, _FusedModule) and not hasattr(mod, "weight_fake_quant"):
            mod = mod[0]
        weight = mod.weight_fake_quant if hasattr(mod, "weight_fake_quant") else mod.qconfig.weight()
        if not use_precomputed_fake_quant:
            weight(mod.weight)
        if weight.dtype is not dtypes.qint8:
            raise AssertionError("Weight observer must have dtype torch.qint8")
        made = cls.like(mod)
        made.set_weight_bias(_quantize_weight(mod.weight.float(), weight), mod.bias)
        made.scale, made.zero_point = qparams(seen)
        return made
