"""`FakeQuantize`: an observer that also rounds what passes, as it will be once the model is quantised."""

from __future__ import annotations

from typing import Any

from .... import dtypes
from ....nn.modules.module import Module
from ....quantized.fake import fake_quantize_per_channel_affine, fake_quantize_per_tensor_affine
from ....tensor import Tensor
from .observer import MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver, with_args

__all__ = ["FakeQuantize", "default_fake_quant", "default_per_channel_weight_fake_quant"]


class FakeQuantize(Module):
    """Sees what passes, and rounds it by what was seen so far; gradients go straight through.

    Differs from PyTorch: the switches are Python's, not buffers.
    """

    def __init__(self, observer: Any = MovingAverageMinMaxObserver, **options: Any) -> None:
        super().__init__()
        self.activation_post_process = observer(**options)
        self.observes = self.fakes = True

    @property
    def dtype(self) -> dtypes.dtype:
        """The dtype that numbers will have."""
        return self.activation_post_process.dtype

    @classmethod
    def with_args(cls, **options: Any) -> Any:
        """A maker of such modules."""
        return with_args(cls, **options)

    def enable_observer(self, enabled: bool = True) -> None:
        """Whether what passes is seen."""
        self.observes = bool(enabled)

    def disable_observer(self) -> None:
        """What passes is not seen any more."""
        self.enable_observer(False)

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Whether what passes is rounded."""
        self.fakes = bool(enabled)

    def disable_fake_quant(self) -> None:
        """What passes is not rounded any more."""
        self.enable_fake_quant(False)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scales and the zero points for what was seen."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:
        """The input, rounded."""
        seen = self.activation_post_process
        if self.observes:
            seen(X)
        if not self.fakes:
            return X
        scale, point = seen.calculate_qparams()
        if seen.axis is None:
            return fake_quantize_per_tensor_affine(X, scale, point, seen.quant_min, seen.quant_max)
        return fake_quantize_per_channel_affine(
            X, scale, point.int(), seen.axis, seen.quant_min, seen.quant_max
        )


default_fake_quant: Any = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, reduce_range=True)
default_per_channel_weight_fake_quant: Any = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, dtype=dtypes.qint8, qscheme=dtypes.per_channel_symmetric
)
