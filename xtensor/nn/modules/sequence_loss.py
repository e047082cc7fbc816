"""Losses of alignments and of large vocabularies."""

from __future__ import annotations

import math
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .linear import Linear
from .loss import _Loss, _WeightedLoss

__all__ = ["CTCLoss", "LinearCrossEntropyLoss"]


class CTCLoss(_Loss):
    """Connectionist temporal classification (Graves et al., 2006): the loss of all alignments of a target.

    Shape: log_probs `(T, N, C)` or `(T, C)`, targets `(N, S)` or all in a row, lengths `(N)` or `()`; output
    `()`, or `(N)` with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    Source: Graves et al. 2006, International Conference on Machine Learning.

    >>> log_probs = xtensor.zeros(4, 1, 3).log_softmax(2)
    >>> nn.CTCLoss()(log_probs, xtensor.tensor([[1, 2]]), xtensor.tensor([4]), xtensor.tensor([2]))
    tensor(0.8432)
    """

    __constants__ = ["blank", "reduction"]

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """The loss of log-probabilities (T, N, C) for targets (N, S), or for all of them in a row."""
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of what it gives, in one; `options` computes it part by part.

    Shape: input `(N, in_features)`, target `(N)`; output `()`, or `(N)` with reduction "none".

    Raises: RuntimeError for an input of another size; ValueError for another number of targets, and an unknown
    `reduction`; IndexError for a target out of range.

    >>> loss = nn.LinearCrossEntropyLoss(8, num_classes=10)
    >>> loss(xtensor.zeros(4, 8), xtensor.tensor([0, 1, 2, 3])).detach()
    tensor(2.3026)
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if label_smoothing < 0 or label_smoothing > 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight=weight, size_average=None, reduce=None, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        rows = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*shape, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}"
        )
