"""Observers: modules that see the numbers of a model pass, and say by which scale and zero point to quantise them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import dtypes
from ....nn.modules.module import Module
from ....ops.create.ingest import tensor
from ....sparse.layout import host
from ....tensor import Tensor

__all__ = [
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_weight_observer",
    "with_args",
]


def with_args(cls: Any, **options: Any) -> Any:
    """A maker of observers with these options, which takes more."""
    made = functools.partial(cls, **options)
    made.with_args = functools.partial(with_args, made)  # pyright: ignore[reportAttributeAccessIssue]
    return made


class ObserverBase(Module):
    """What sees numbers of a quantised dtype's."""

    def __init__(self, dtype: dtypes.dtype, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @classmethod
    def with_args(cls, **options: Any) -> Any:
        """A maker of such observers."""
        return with_args(cls, **options)


class NoopObserver(ObserverBase):
    """Sees nothing."""

    def __init__(self, dtype: dtypes.dtype = dtypes.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x


class PlaceholderObserver(NoopObserver):
    """Says a dtype, for quantisation while running."""

    def __init__(self, dtype: dtypes.dtype = dtypes.float32, **options: Any) -> None:
        super().__init__(dtype)
        self.is_dynamic = options.get("is_dynamic", False)


class MinMaxObserver(ObserverBase):
    """The smallest and the largest number seen.

    >>> observer = xtensor.ao.quantization.MinMaxObserver()
    >>> _ = observer(xtensor.tensor([-1.0, 2.0]))
    >>> observer.calculate_qparams()
    (tensor([0.0118]), tensor([85], dtype=xtensor.int32))
    """

    min_val: Tensor
    max_val: Tensor
    axis: int | None = None

    def __init__(
        self,
        dtype: dtypes.dtype = dtypes.quint8,
        qscheme: dtypes.qscheme = dtypes.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = 1.1920928955078125e-07,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, is_dynamic)
        limits = np.iinfo(dtype.numpy)
        low, high = (limits.min // 2, limits.max // 2) if reduce_range else (limits.min, limits.max)
        self.qscheme, self.reduce_range, self.eps = qscheme, reduce_range, eps
        self.quant_min = int(low) if quant_min is None else quant_min
        self.quant_max = int(high) if quant_max is None else quant_max
        self.reset_min_max_vals()

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        none = self.axis is not None
        self.register_buffer("min_val", tensor([] if none else float("inf")))
        self.register_buffer("max_val", tensor([] if none else float("-inf")))

    def limits(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The smallest and the largest number, of each channel where there are."""
        if self.axis is None:
            return x.min(), x.max()
        rows = x.movedim(self.axis, 0).flatten(1)
        return rows.amin(1), rows.amax(1)

    def joined(self, old: Tensor, new: Tensor, larger: bool) -> Tensor:
        """What was seen before, with what is seen now."""
        return old.maximum(new) if larger else old.minimum(new)

    def forward(self, x: Tensor) -> Tensor:
        """The input, after a look at it."""
        if x.numel():
            low, high = self.limits(x.detach().float())
            if self.seen():
                low, high = self.joined(self.min_val, low, False), self.joined(self.max_val, high, True)
            self.min_val, self.max_val = low, high
        return x

    def seen(self) -> bool:
        """Whether anything was seen."""
        return bool(self.min_val.numel()) and bool((self.min_val <= self.max_val).all())

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scales and the zero points for what was seen."""
        if not self.seen():
            return tensor([1.0]), tensor([0])
        low = np.minimum(np.atleast_1d(host(self.min_val)), np.float32(0))
        high = np.maximum(np.atleast_1d(host(self.max_val)), np.float32(0))
        span = np.float32(self.quant_max - self.quant_min)
        if "symmetric" in self.qscheme.name:
            scale = np.maximum(np.maximum(-low, high) / (span / np.float32(2)), np.float32(self.eps))
            middle = 128 if self.quant_max > 127 else (self.quant_min + self.quant_max) // 2
            point = np.full(scale.shape, middle if self.dtype is dtypes.quint8 else 0)
        else:
            scale = np.maximum((high - low) / span, np.float32(self.eps))
            point = np.clip(self.quant_min - np.rint(low / scale), self.quant_min, self.quant_max)
        return tensor(scale.astype(np.float32)), tensor(point.astype(np.int32))

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class MovingAverageMinMaxObserver(MinMaxObserver):
    """A moving average of each batch's smallest and largest number."""

    def __init__(self, averaging_constant: float = 0.01, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.averaging_constant = averaging_constant

    def joined(self, old: Tensor, new: Tensor, larger: bool) -> Tensor:
        """A step from what was seen before to what is seen now."""
        return old + self.averaging_constant * (new - old)


class PerChannelMinMaxObserver(MinMaxObserver):
    """The smallest and the largest number seen of each channel."""

    def __init__(
        self, ch_axis: int = 0, dtype: Any = dtypes.quint8, qscheme: Any = None, **options: Any
    ) -> None:
        self.__dict__["axis"] = self.__dict__["ch_axis"] = ch_axis
        super().__init__(dtype, qscheme or dtypes.per_channel_affine, **options)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """A moving average of each batch's smallest and largest number of each channel."""

    def __init__(self, averaging_constant: float = 0.01, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.averaging_constant = averaging_constant

    joined = MovingAverageMinMaxObserver.joined  # pyright: ignore[reportAssignmentType]


Maker = Callable[..., Any]
default_observer: Maker = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_weight_observer: Maker = MinMaxObserver.with_args(
    dtype=dtypes.qint8, qscheme=dtypes.per_tensor_symmetric
)
default_per_channel_weight_observer: Maker = PerChannelMinMaxObserver.with_args(
    dtype=dtypes.qint8, qscheme=dtypes.per_channel_symmetric
)
