"""Linear layers of integer weights over real numbers."""

# Parameters have the names that PyTorch gives them, class by class.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

from typing import Any

from ....... import dtypes
from .......nn import functional as F
from .......quantized.products import dynamically_multiplied
from .......tensor import Tensor
from ....intrinsic.modules.fused import _FusedModule
from ...modules import linear as static
from ...modules.utils import _quantize_weight

__all__ = ["Linear"]


class Linear(static.Linear):
    """A linear layer with an integer weight, or one of half precision; its input is quantised as it comes, or not at all.

    >>> layer = xtensor.ao.nn.quantized.dynamic.Linear(2, 1)
    >>> layer.weight().dtype
    xtensor.qint8
    """

    _version = 4

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, dtype: dtypes.dtype = dtypes.qint8
    ) -> None:
        super().__init__(in_features, out_features, bias_, dtype)
        self.version = 4

    def forward(self, x: Tensor) -> Tensor:
        """`x @ weight.T + bias`, real; RuntimeError for a dtype that weights have not."""
        weight, bias = self._weight_bias()
        if self._packed_params.dtype is dtypes.qint8:
            made = dynamically_multiplied(x, weight, bias, self._relu)
        else:
            made = F.linear(x.detach(), weight, bias)
            made = F.relu(made) if self._relu else made
        return made.to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        made = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        if self._packed_params.dtype is dtypes.qint8:
            made += f", qscheme={self.weight().qscheme()}"
        return made

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a real layer with a qconfig; RuntimeError for a dtype that weights have not."""
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        config = mod.qconfig
        if isinstance(mod, _FusedModule):
            mod = mod[0]
        seen = config.weight()
        if seen.dtype not in (dtypes.qint8, dtypes.float16):
            raise AssertionError(
                "The only supported dtypes for dynamic quantized linear are qint8 and float16 "
                f"got: {seen.dtype}"
            )
        made = cls(mod.in_features, mod.out_features, dtype=seen.dtype)
        if seen.dtype is dtypes.qint8:
            seen(mod.weight)
            made.set_weight_bias(_quantize_weight(mod.weight.float(), seen), mod.bias)
        else:
            made.set_weight_bias(mod.weight.float(), mod.bias)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: Any, *given: Any) -> Any:
        """Of a layer that knows the scale of its weight, and computes with real numbers."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features, dtype=ref_qlinear.weight_dtype)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made
