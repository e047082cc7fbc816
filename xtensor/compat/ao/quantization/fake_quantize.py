"""`FakeQuantize`: an observer that also rounds what passes, as it will be once the model is quantised."""

# Parameters have the names that PyTorch gives them, class by class.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

import functools
from typing import Any, TypeAlias

from .... import dtypes
from ....nn.modules.module import Module
from ....ops.create.ingest import tensor
from ....quantized.fake import (
    fake_quantize_per_channel_affine,
    fake_quantize_per_tensor_affine,
    fused_moving_avg_obs_fake_quant,
)
from ....tensor import Tensor
from .limits import PartialWrapper, limits_of
from .observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant",
    "default_dynamic_fake_quant",
    "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit",
    "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "default_fused_wt_fake_quant",
    "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "fused_wt_fake_quant_range_neg_127_to_127",
]

Maker: TypeAlias = Any


class FakeQuantizeBase(Module):
    """What rounds numbers as they pass, and what switches it: two buffers, one for looking and one for rounding."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=dtypes.uint8))
        self.register_buffer("observer_enabled", tensor([1], dtype=dtypes.uint8))

    def forward(self, x: Tensor) -> Tensor:
        """The input, rounded."""
        raise NotImplementedError

    def calculate_qparams(self, **options: Any) -> Any:
        """The scales and the zero points for what was seen."""
        raise NotImplementedError

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Whether what passes is rounded."""
        self.fake_quant_enabled.fill_(1 if enabled else 0)

    def disable_fake_quant(self) -> None:
        """What passes is not rounded any more."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Whether what passes is seen."""
        self.observer_enabled.fill_(1 if enabled else 0)

    def disable_observer(self) -> None:
        """What passes is not seen any more."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **options: Any) -> PartialWrapper:
        """A maker of such modules with these options."""
        return PartialWrapper(functools.partial(cls, **options))


class FakeQuantize(FakeQuantizeBase):
    """Sees what passes, and rounds it by what was seen so far; gradients go straight through.

    >>> round_ = xtensor.ao.quantization.FakeQuantize(quant_min=0, quant_max=15)
    >>> round_(xtensor.tensor([0.0, 0.4, 1.5]))
    tensor([0.0000, 0.4000, 1.5000])
    """

    scale: Tensor
    zero_point: Tensor
    activation_post_process: Any

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            dtype = observer_kwargs.get("dtype", dtypes.quint8)
            given = getattr(observer, "p", None)
            low, high = limits_of(dtype if given is None else given.keywords.get("dtype", dtype))
            if low > quant_min:
                raise AssertionError("quant_min out of bound")
            if quant_max > high:
                raise AssertionError("quant_max out of bound")
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        seen = observer(**observer_kwargs, is_dynamic=is_dynamic)
        self.activation_post_process = seen
        self.quant_min, self.quant_max, self.is_dynamic = seen.quant_min, seen.quant_max, seen.is_dynamic
        floating = seen.qscheme is dtypes.per_channel_affine_float_qparams
        self.register_buffer("scale", tensor([1.0], dtype=dtypes.float32))
        self.register_buffer("zero_point", tensor([0], dtype=dtypes.float32 if floating else dtypes.int32))
        self.dtype, self.qscheme = seen.dtype, seen.qscheme
        self.ch_axis = getattr(seen, "ch_axis", -1)
        self.is_per_channel = self.qscheme.name.startswith("per_channel")

    def calculate_qparams(self, **options: Any) -> tuple[Tensor, Tensor]:
        """The scales and the zero points for what was seen."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:
        """The input, rounded."""
        seen = self.activation_post_process
        if self.observer_enabled.item():
            seen(X.detach())
            for held, new in zip((self.scale, self.zero_point), self.calculate_qparams(), strict=True):
                if held.shape != new.shape:
                    held.resize_(tuple(new.shape))
                held.copy_(new)
        if not self.fake_quant_enabled.item():
            return X
        limits = (seen.quant_min, seen.quant_max)
        if self.is_per_channel:
            return fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, *limits)
        return fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *limits)

    def extra_repr(self) -> str:
        seen = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={seen.quant_min}, quant_max={seen.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        for name in ("scale", "zero_point"):  # as many as the channels that the other has seen
            if prefix + name in state_dict:
                getattr(self, name).resize_(tuple(state_dict[prefix + name].shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds by a scale and a zero point that are known."""

    def __init__(self, observer: Any) -> None:
        super().__init__(observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError("FixedQParamsFakeQuantize's observer must be a FixedQParamsObserver")
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point

    def calculate_qparams(self, **options: Any) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        seen = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, quant_min={seen.quant_min}, "
            f"quant_max={seen.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """`FakeQuantize` by moving averages of the limits, as one program: looking, choosing and rounding."""

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        averages = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        if not isinstance(self.activation_post_process, averages):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver"
            )
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=dtypes.int64))
        self.register_buffer("observer_enabled", tensor([1], dtype=dtypes.int64))
        self.is_symmetric_quant = "symmetric" in self.qscheme.name

    def forward(self, X: Tensor) -> Tensor:
        """The input, rounded."""
        seen = self.activation_post_process
        return fused_moving_avg_obs_fake_quant(
            X,
            self.observer_enabled,
            self.fake_quant_enabled,
            seen.min_val,
            seen.max_val,
            self.scale,
            self.zero_point,
            seen.averaging_constant,
            seen.quant_min,
            seen.quant_max,
            self.ch_axis,
            self.is_per_channel,
            self.is_symmetric_quant,
        )

    def extra_repr(self) -> str:
        seen = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, quant_min={seen.quant_min}, "
            f"quant_max={seen.quant_max}, qscheme={self.qscheme}, reduce_range={seen.reduce_range}"
        )


def enable_fake_quant(mod: Module) -> None:
    """Have a module round what passes: `model.apply(enable_fake_quant)`."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_fake_quant(mod: Module) -> None:
    """Have a module round nothing any more."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_observer(mod: Module) -> None:
    """Have a module see what passes."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()


def disable_observer(mod: Module) -> None:
    """Have a module see nothing any more, and keep its scale."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


UNSIGNED = {"quant_min": 0, "quant_max": 255}
SIGNED = {"quant_min": -128, "quant_max": 127, "dtype": dtypes.qint8}
NARROW = {"quant_min": -127, "quant_max": 127, "dtype": dtypes.qint8}
EACH = {"qscheme": dtypes.per_channel_symmetric}
ALL = {"qscheme": dtypes.per_tensor_symmetric}
FLOATING = {"qscheme": dtypes.per_channel_affine_float_qparams}

default_fake_quant: Maker = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    **UNSIGNED,
    dtype=dtypes.quint8,
    qscheme=dtypes.per_tensor_affine,
    reduce_range=True,
)
default_weight_fake_quant: Maker = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, **SIGNED, **ALL, reduce_range=False
)
default_dynamic_fake_quant: Maker = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    **UNSIGNED,
    is_dynamic=True,
    dtype=dtypes.quint8,
    averaging_constant=1,
)
default_fixed_qparams_range_neg1to1_fake_quant: Maker = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant: Maker = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant: Maker = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, **SIGNED, **EACH, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant: Maker = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    **FLOATING,
    dtype=dtypes.quint8,
    **UNSIGNED,
    ch_axis=0,
    averaging_constant=1,
)
default_embedding_fake_quant_4bit: Maker = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    **FLOATING,
    ch_axis=0,
    dtype=dtypes.quint4x2,
    averaging_constant=1,
)
default_histogram_fake_quant: Maker = FakeQuantize.with_args(
    observer=HistogramObserver,
    **UNSIGNED,
    dtype=dtypes.quint8,
    qscheme=dtypes.per_tensor_affine,
    reduce_range=True,
)
default_fused_act_fake_quant: Maker = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, **UNSIGNED, dtype=dtypes.quint8
)
default_fused_wt_fake_quant: Maker = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, **SIGNED, **ALL
)
default_fused_per_channel_wt_fake_quant: Maker = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, **SIGNED, **EACH
)
fused_wt_fake_quant_range_neg_127_to_127: Maker = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, **NARROW, **ALL, eps=2**-12
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127: Maker = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, **NARROW, **EACH, eps=2**-12
)
