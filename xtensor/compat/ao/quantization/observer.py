"""Observers: modules that see the numbers of a model pass, and say by which scale and zero point to quantise them."""

# Parameters have the names that PyTorch gives them, class by class.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from .... import dtypes
from ....nn.modules.module import Module
from ....ops.create.ingest import tensor
from ....tensor import Tensor
from .histogram import HistogramObserver
from .limits import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
    UniformQuantizationObserverBase,
)

__all__ = [
    "FixedQParamsObserver",
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "RecordingObserver",
    "ReuseInputObserver",
    "UniformQuantizationObserverBase",
    "default_affine_fixed_qparams_observer",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer",
    "default_float_qparams_observer_4bit",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer",
    "default_weight_observer",
    "get_observer_state_dict",
    "load_observer_state_dict",
    "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]

Maker: TypeAlias = Any


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are known."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: Any = dtypes.quint8,
        qscheme: dtypes.qscheme = dtypes.per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **options: Any,
    ) -> None:
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype, is_dynamic, **options)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", tensor([scale], dtype=dtypes.float32))
        self.register_buffer("zero_point", tensor([zero_point], dtype=dtypes.int32))

    def forward(self, X: Tensor) -> Tensor:
        """The input."""
        return X

    def calculate_qparams(self, **options: Any) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Says a dtype and a range, and sees nothing: for what is quantised as it runs, or not to integers."""

    def __init__(
        self,
        dtype: Any = dtypes.float32,
        custom_op_name: str = "",
        compute_dtype: Any = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: dtypes.qscheme | None = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, is_dynamic or bool(compute_dtype))
        self.qscheme = dtypes.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps, self.custom_op = eps, custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self, **options: Any) -> Any:
        """Exception: nothing was seen."""
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")


class RecordingObserver(ObserverBase):
    """Keeps all that it sees, on the host."""

    def __init__(self, dtype: Any = dtypes.quint8) -> None:
        super().__init__(dtype)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        """The input, which is kept."""
        self.tensor_val.append(x.clone().cpu())
        return x

    def calculate_qparams(self, **options: Any) -> Any:
        """Exception: numbers are kept, not their range."""
        raise Exception("calculate_qparams should not be called for RecordingObserver")

    def get_tensor_value(self) -> list[Tensor]:
        """What was seen."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Sees nothing."""

    def __init__(self, dtype: Any = dtypes.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype, is_dynamic=False)
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x

    def calculate_qparams(self, **options: Any) -> Any:
        """Exception: nothing was seen."""
        raise Exception("calculate_qparams should not be called for NoopObserver")


class ReuseInputObserver(ObserverBase):
    """Stands where a result is quantised as the input was."""

    def __init__(self) -> None:
        super().__init__(dtypes.quint8, is_dynamic=False)

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x

    def calculate_qparams(self, **options: Any) -> Any:
        """Exception: nothing was seen."""
        raise Exception("calculate_qparams should not be called for ReuseInputObserver")


def is_observer_key(key: str) -> bool:
    return "observer" in key or "activation_post_process" in key


def get_observer_state_dict(mod: Module) -> dict[str, Any]:
    """What the observers of a model have seen, by name."""
    return type(mod.state_dict())((k, v) for k, v in mod.state_dict().items() if is_observer_key(k))


def load_observer_state_dict(mod: Module, obs_dict: Mapping[str, Any]) -> None:
    """Have the observers of a model have seen what others did."""
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        if is_observer_key(name):
            prefix = f"{name}."
            module._load_from_state_dict(obs_dict, prefix, {}, False, missing, unexpected, [])  # pyright: ignore[reportAttributeAccessIssue]
    for key in missing:
        if is_observer_key(key):
            raise Exception(f"Missing keys for observer {key} in state_dict")
    for key in unexpected:
        if is_observer_key(key):
            raise Exception(f"Unexpected keys for observer {key} in state_dict")


NARROW = {"quant_min": -127, "quant_max": 127, "eps": 2**-12}
default_observer: Maker = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer: Maker = PlaceholderObserver
default_debug_observer: Maker = RecordingObserver
default_reuse_input_observer: Maker = ReuseInputObserver
default_weight_observer: Maker = MinMaxObserver.with_args(
    dtype=dtypes.qint8, qscheme=dtypes.per_tensor_symmetric
)
weight_observer_range_neg_127_to_127: Maker = MinMaxObserver.with_args(
    dtype=dtypes.qint8, qscheme=dtypes.per_tensor_symmetric, **NARROW
)
default_histogram_observer: Maker = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer: Maker = PerChannelMinMaxObserver.with_args(
    dtype=dtypes.qint8, qscheme=dtypes.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127: Maker = PerChannelMinMaxObserver.with_args(
    dtype=dtypes.qint8, qscheme=dtypes.per_channel_symmetric, **NARROW
)
default_dynamic_quant_observer: Maker = PlaceholderObserver.with_args(
    dtype=dtypes.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer: Maker = PerChannelMinMaxObserver.with_args(
    dtype=dtypes.quint8, qscheme=dtypes.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit: Maker = PerChannelMinMaxObserver.with_args(
    dtype=dtypes.quint4x2, qscheme=dtypes.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer: Maker = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=dtypes.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer: Maker = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=dtypes.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
