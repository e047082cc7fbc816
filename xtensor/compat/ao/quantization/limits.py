"""Observers of the smallest and the largest number, and what all observers have: scales and zero points for a range."""

# Parameters have the names that PyTorch gives them, class by class.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import checks, dtypes
from ....nn import factory_kwargs as checked_options
from ....nn.modules.module import Module
from ....ops.create.ingest import tensor
from ....sparse.layout import host
from ....tensor import Tensor

__all__ = [
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "ObserverBase",
    "PartialWrapper",
    "PerChannelMinMaxObserver",
    "UniformQuantizationObserverBase",
    "limits_of",
]

EPS = float(np.finfo(np.float32).eps)
SCHEMES = (
    *(dtypes.per_tensor_affine, dtypes.per_tensor_symmetric),
    *(dtypes.per_channel_affine, dtypes.per_channel_symmetric, dtypes.per_channel_affine_float_qparams),
)
OBSERVED = (
    *(dtypes.qint8, dtypes.quint8, dtypes.quint4x2, dtypes.qint32, dtypes.int8, dtypes.uint8),
    *(dtypes.int16, dtypes.int32, dtypes.float8_e5m2, dtypes.float8_e4m3fn, dtypes.uint16),
)
"""The dtypes whose range an observer knows, or is told."""


class PartialWrapper:
    """A maker with some arguments given; some of those are asked for anew at each call."""

    def __init__(self, p: functools.partial[Any], callable_args: dict[str, Any] | None = None) -> None:
        self.p, self.callable_args = p, callable_args or {}

    def __call__(self, *args: Any, **options: Any) -> Any:
        for name, make in self.callable_args.items():
            options.setdefault(name, make())
        return self.p(*args, **options)

    def __repr__(self) -> str:
        return f"{self.p!r}{self.callable_args!r}"

    def with_args(self, **options: Any) -> PartialWrapper:
        """A maker with more arguments given."""
        return PartialWrapper(functools.partial(self, **options))

    def with_callable_args(self, **makers: Callable[[], Any]) -> PartialWrapper:
        """A maker with arguments that are asked for at each call."""
        return PartialWrapper(self.p, {**self.callable_args, **makers})


def limits_of(dtype: dtypes.dtype, reduce_range: bool = False) -> tuple[int, int]:
    """The smallest and the largest integer of a dtype, of one bit less where the range is reduced."""
    if dtype is dtypes.quint4x2 or dtype.is_floating_point:
        return 0, 15
    found = np.iinfo(dtype.numpy)
    low, high = int(found.min), int(found.max)
    halved = reduce_range and dtype.itemsize == 1
    return (low // 2, high // 2) if halved else (low, high)


class ObserverBase(Module):
    """What sees numbers pass that will be of a quantised dtype."""

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @classmethod
    def with_args(cls, **options: Any) -> PartialWrapper:
        """A maker of such observers with these options."""
        return PartialWrapper(functools.partial(cls, **options))

    @classmethod
    def with_callable_args(cls, **makers: Callable[[], Any]) -> PartialWrapper:
        """A maker of such observers with options that are asked for at each call."""
        return PartialWrapper(functools.partial(cls), dict(makers))

    def forward(self, x: Tensor) -> Tensor:
        """The input, after a look at it."""
        raise NotImplementedError

    def calculate_qparams(self, **options: Any) -> Any:
        """The scales and the zero points for what was seen."""
        raise NotImplementedError


class UniformQuantizationObserverBase(ObserverBase):
    """What observers of ranges have: the integers that there are, and scales and zero points for a range."""

    _version = 3
    min_val: Tensor
    max_val: Tensor
    eps: Tensor

    def __init__(
        self,
        dtype: Any = dtypes.quint8,
        qscheme: dtypes.qscheme = dtypes.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(dtype, is_dynamic, **options)
        if qscheme not in SCHEMES:
            raise AssertionError(
                "Default Observer only works for per_tensor_affine, per_tensor_symmetric, per_channel_affine, "
                "per_channel_symmetric and per_channel_float_qparams quantization scheme"
            )
        if dtype not in OBSERVED:
            raise AssertionError(f"Default Observer only works for {OBSERVED} data type")
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.factory: dict[str, Any] = checked_options(factory_kwargs)
        self.register_buffer("eps", tensor([eps], **self.factory))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is not None and quant_max is not None:
            if not quant_min <= 0 <= quant_max:
                raise AssertionError("Used-specified quantization range must include 0.")
            if quant_min >= quant_max:
                raise AssertionError(
                    "qmin must be strictly less than qmax for user-specified quantization range."
                )
            least, most = self.given_range(quant_min, quant_max)
        else:
            least, most = limits_of(dtype, reduce_range)
        self.quant_min, self.quant_max = least, most

    def given_range(self, least: int, most: int) -> tuple[int, int]:
        """The integers of a range that was asked for, of one bit less where that was, too."""
        bits = {dtypes.qint8: 8, dtypes.int8: 8, dtypes.qint32: 32, dtypes.int32: 32}.get(self.dtype)
        if bits is not None and not 0 < most - least + 1 <= 2**bits:
            raise AssertionError(
                f"quantization range should be positive and not exceed the maximum bit range (={2**bits})."
            )
        return (least // 2, most // 2) if self.reduce_range else (least, most)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        if local_metadata.get("version") in (None, 1):  # before it was a buffer
            state_dict[f"{prefix}eps"] = tensor([EPS])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        """The scales and the zero points for ranges (channels,) or ()."""
        least, most = host(min_val), host(max_val)
        if not is_seen(least, most):
            return tensor([1.0]), tensor([0])
        least, most = np.atleast_1d(least), np.atleast_1d(most)
        low, high = np.minimum(least, np.float32(0)), np.maximum(most, np.float32(0))
        span, eps = np.float32(self.quant_max - self.quant_min), host(self.eps)[0]
        point: Any
        if "symmetric" in self.qscheme.name:
            scale = np.maximum(np.maximum(-low, high) / (span / np.float32(2)), eps)
            point = np.full(scale.shape, self.middle(), np.int64)
        elif self.qscheme is dtypes.per_channel_affine_float_qparams:
            scale = (most - least) / span
            scale = np.where(scale > eps, scale, np.float32(1))
            point = -least / scale
        else:
            scale = np.maximum((high - low) / span, eps)
            point = self.quant_min - np.rint(low / scale).astype(np.int32)
            point = np.clip(point, self.quant_min, self.quant_max).astype(np.int32)
        device: dict[str, Any] = {"device": min_val.device}
        return tensor(scale.astype(np.float32), **device), tensor(np.asarray(point), **device)

    def middle(self) -> int:
        """The zero point of a range that is as wide on either side."""
        if self.dtype in (dtypes.quint8, dtypes.uint8):
            return (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
        return 2**15 if self.dtype is dtypes.uint16 else 0


def is_seen(least: Any, most: Any) -> bool:
    """Whether there is a range; a warning where there is none, AssertionError where it has no inside."""
    if least.size == 0 or most.size == 0 or (least.ndim == 0 and np.isposinf(least) and np.isneginf(most)):
        checks.warn("must run observer before calling calculate_qparams. Returning default values.")
        return False
    if not (least <= most).all():
        kind = "min {} should be less than max {}" if least.ndim == 0 else None
        raise AssertionError(
            kind.format(least, most) if kind else f"min {least} should be less than max {most}"
        )
    return True


class MinMaxObserver(UniformQuantizationObserverBase):
    """The smallest and the largest number seen.

    >>> observer = xtensor.ao.quantization.MinMaxObserver()
    >>> _ = observer(xtensor.tensor([-1.0, 2.0]))
    >>> observer.calculate_qparams()
    (tensor([0.0118]), tensor([85], dtype=xtensor.int32))
    """

    def __init__(
        self,
        dtype: Any = dtypes.quint8,
        qscheme: dtypes.qscheme = dtypes.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **options: Any,
    ) -> None:
        if not qscheme.name.startswith("per_tensor"):
            raise NotImplementedError(
                "MinMaxObserver's qscheme only support torch.per_tensor_symmetric                     "
                "and torch.per_tensor_affine."
            )
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **options
        )
        self.register_buffer("min_val", tensor(float("inf"), **self.factory))
        self.register_buffer("max_val", tensor(float("-inf"), **self.factory))
        if self.qscheme is dtypes.per_tensor_symmetric and reduce_range and dtype is dtypes.quint8:
            raise NotImplementedError(
                "Cannot reduce range for symmetric                                        quantization for quint8"
            )

    def forward(self, x_orig: Tensor) -> Tensor:
        """The input, after a look at it."""
        if x_orig.numel():
            low, high = x_orig.detach().to(self.min_val.dtype).aminmax()
            self.see(low, high)
        return x_orig

    def see(self, low: Tensor, high: Tensor) -> None:
        """Widen the range to the range of a batch."""
        self.min_val.copy_(self.min_val.minimum(low))
        self.max_val.copy_(self.max_val.maximum(high))

    def calculate_qparams(self, **options: Any) -> tuple[Tensor, Tensor]:
        """The scale and the zero point for what was seen."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val.copy_(tensor(float("inf")))
        self.max_val.copy_(tensor(float("-inf")))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """A moving average of each batch's smallest and largest number."""

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype: Any = dtypes.quint8,
        qscheme: dtypes.qscheme = dtypes.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **options: Any,
    ) -> None:
        if not qscheme.name.startswith("per_tensor"):
            raise NotImplementedError(
                "MovingAverageMinMaxObserver's qscheme only support                                 "
                f"torch.per_tensor_symmetric and torch.per_tensor_affine.                 but got: {qscheme}"
            )
        self.averaging_constant = averaging_constant
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for "
                f"averaging constant of {averaging_constant}"
            )
        super().__init__(
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **options,
        )

    def see(self, low: Tensor, high: Tensor) -> None:
        """Go a step from the range to that of a batch; the first is taken as it is."""
        first = host(self.min_val) == np.inf and host(self.max_val) == -np.inf
        self.min_val.copy_(low if first else self.min_val + self.averaging_constant * (low - self.min_val))
        self.max_val.copy_(high if first else self.max_val + self.averaging_constant * (high - self.max_val))


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The smallest and the largest number of each channel."""

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: Any = dtypes.quint8,
        qscheme: dtypes.qscheme = dtypes.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **options: Any,
    ) -> None:
        if not qscheme.name.startswith("per_channel"):
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support \\\n                    torch.per_channel_symmetric, "
                "torch.per_channel_affine and torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError("PerChannelMinMaxObserver doesn't support dynamic quantization")
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **options
        )
        self.ch_axis = ch_axis
        self.register_buffer("min_val", tensor([], **self.factory))
        self.register_buffer("max_val", tensor([], **self.factory))
        if "symmetric" in qscheme.name and reduce_range and dtype is dtypes.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def forward(self, x_orig: Tensor) -> Tensor:
        """The input, after a look at it."""
        if x_orig.numel():
            rows = x_orig.detach().to(self.min_val.dtype).transpose(0, self.ch_axis).flatten(1)
            low, high = rows.aminmax(dim=1)
            if self.min_val.numel() and self.max_val.numel():
                low, high = self.joined(low, high)
            self.min_val.resize_(tuple(low.shape)).copy_(low)
            self.max_val.resize_(tuple(high.shape)).copy_(high)
        return x_orig

    def joined(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """The ranges of before and those of a batch as one for each channel."""
        return self.min_val.minimum(low), self.max_val.maximum(high)

    def calculate_qparams(self, **options: Any) -> tuple[Tensor, Tensor]:
        """The scales and the zero points for what was seen."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

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
        older = ("min_vals", "max_vals")
        version = local_metadata.get("version")
        renamed = version is not None and version < 3 and f"{prefix}min_vals" in state_dict
        for name, old in zip(("min_val", "max_val"), older, strict=True):
            if renamed:
                state_dict[prefix + name] = state_dict.pop(prefix + old)
            if prefix + name in state_dict:
                getattr(self, name).resize_(tuple(state_dict[prefix + name].shape))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val, self.max_val = tensor([]), tensor([])


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """A moving average of each batch's smallest and largest number of each channel."""

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: Any = dtypes.quint8,
        qscheme: dtypes.qscheme = dtypes.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **options: Any,
    ) -> None:
        if not qscheme.name.startswith("per_channel"):
            raise NotImplementedError(
                "MovingAveragePerChannelMinMaxObserver's qscheme only support                     "
                "torch.per_channel_symmetric, torch.per_channel_affine and torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError(
                "MovingAveragePerChannelMinMaxObserver doesn't support dynamic quantization"
            )
        super().__init__(
            ch_axis,
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **options,
        )
        self.averaging_constant = averaging_constant

    def joined(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """A step from the ranges of before to those of a batch."""
        step = self.averaging_constant
        return self.min_val + step * (low - self.min_val), self.max_val + step * (high - self.max_val)
