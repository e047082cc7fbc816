"""Losses. `reduction` is "mean", "sum" or "none"; `size_average` and `reduce` are its deprecated spellings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import checks
from ...ops.network.losses import legacy
from ...tensor import Tensor
from .. import functional as F
from .distance import PairwiseDistance
from .module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    reduction: str

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = legacy(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """The absolute difference, averaged, summed or as it is (`reduction`).

    Shape: input and target `(*)`; output `()`, or `(*)` with reduction "none".

    Raises: RuntimeError where the sizes do not broadcast.

    >>> nn.L1Loss()(xtensor.tensor([1.0, 2.0]), xtensor.tensor([1.0, 5.0]))
    tensor(1.5000)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """The negative log-probability of the target class; the input holds log-probabilities.

    Shape: input `(N, C)`, `(C)` or `(N, C, *)`, target `(N)`, `()` or `(N, *)`; output `()`, or as the target
    with reduction "none".

    Raises: ValueError where input and target differ in their batch.

    >>> nn.NLLLoss()(xtensor.tensor([[-0.5, -1.0]]), xtensor.tensor([1]))
    tensor(1.)
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class NLLLoss2d(NLLLoss):
    """NLLLoss (the deprecated name for images).

    Shape: as `NLLLoss`.

    Raises: as `NLLLoss` when called.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        checks.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
        )
        super().__init__(*args, **kwargs)


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts under a Poisson distribution.

    Shape: input and target `(*)`; output `()`, or `(*)` with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    >>> nn.PoissonNLLLoss()(xtensor.tensor([0.0, 1.0]), xtensor.tensor([1.0, 2.0]))
    tensor(0.8591)
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood under a normal distribution of given variance.

    Shape: input, target and var `(*)`, or var without its last dimension, or with 1 there; output `()`, or
    `(*)` with reduction "none".

    Raises: ValueError where sizes do not fit.

    Source: Nix and Weigend 1994, IEEE International Conference on Neural Networks.

    >>> nn.GaussianNLLLoss()(xtensor.tensor([0.0]), xtensor.tensor([2.0]), xtensor.tensor([1.0]))
    tensor(2.)
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence (Kullback and Leibler, 1951); the input holds log-probabilities.

    Shape: input and target `(*)`; output `()`, or `(*)` with reduction "none".

    Raises: RuntimeError where the sizes do not broadcast.

    Source: Kullback and Leibler 1951, Annals of Mathematical Statistics 22.

    >>> log_p, q = xtensor.tensor([[0.5, 0.5]]).log(), xtensor.tensor([[0.9, 0.1]])
    >>> nn.KLDivLoss(reduction="batchmean")(log_p, q)
    tensor(0.3681)
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class MSELoss(_Loss):
    """The squared difference, averaged, summed or as it is (`reduction`).

    Shape: input and target `(*)`; output `()`, or `(*)` with reduction "none".

    Raises: RuntimeError where the sizes do not broadcast.

    >>> nn.MSELoss()(xtensor.tensor([1.0, 2.0]), xtensor.tensor([1.0, 4.0]))
    tensor(2.)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class BCELoss(_WeightedLoss):
    """The binary cross-entropy of probabilities.

    Shape: input and target `(*)`; output `()`, or `(*)` with reduction "none".

    Raises: ValueError where the sizes of input and target differ.

    Source: Good 1952, Journal of the Royal Statistical Society B 14.

    >>> nn.BCELoss()(xtensor.tensor([0.5, 0.9]), xtensor.tensor([1.0, 0.0]))
    tensor(1.4979)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """The binary cross-entropy of the sigmoid of the input.

    Shape: input and target `(*)`; output `()`, or `(*)` with reduction "none".

    Raises: ValueError where the sizes of input and target differ.

    Source: Good 1952, Journal of the Royal Statistical Society B 14.

    >>> nn.BCEWithLogitsLoss()(xtensor.tensor([0.0, 2.0]), xtensor.tensor([1.0, 0.0]))
    tensor(1.4100)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """Distances as they are for targets 1, `max(0, margin - x)` for targets -1.

    Shape: input and target `(*)`; output `()`, or `(*)` with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    >>> nn.HingeEmbeddingLoss()(xtensor.tensor([0.5, 0.2]), xtensor.tensor([1.0, -1.0]))
    tensor(0.6500)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The hinge loss of several classes, several of which are right.

    Shape: input and target `(N, C)` or `(C)`, the target's classes ending at the first -1; output `()`, or
    `(N)` with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    >>> nn.MultiLabelMarginLoss()(xtensor.tensor([[0.1, 0.2, 0.4]]), xtensor.tensor([[2, -1, 0]]))
    tensor(0.5000)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Quadratic below `beta`, linear above (Girshick, 2015).

    Shape: input and target `(*)`; output `()`, or `(*)` with reduction "none".

    Raises: RuntimeError where the sizes do not broadcast.

    Source: Girshick 2015, arXiv:1504.08083.

    >>> nn.SmoothL1Loss()(xtensor.tensor([0.0, 0.0]), xtensor.tensor([0.5, 3.0]))
    tensor(1.3125)
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Quadratic below `delta`, linear above, scaled so that the quadratic part is half the square (Huber, 1964).

    Shape: input and target `(*)`; output `()`, or `(*)` with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    Source: Huber 1964, Annals of Mathematical Statistics 35.

    >>> nn.HuberLoss()(xtensor.tensor([0.0, 0.0]), xtensor.tensor([0.5, 3.0]))
    tensor(1.3125)
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SoftMarginLoss(_Loss):
    """The logistic loss of targets 1 and -1.

    Shape: input and target `(*)`; output `()`, or `(*)` with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    >>> nn.SoftMarginLoss()(xtensor.tensor([0.0, 2.0]), xtensor.tensor([1.0, -1.0]))
    tensor(1.4100)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The cross-entropy of unnormalised scores against class numbers or probabilities.

    Shape: input `(N, C)`, `(C)` or `(N, C, *)`; target class numbers `(N)`, `()` or `(N, *)`, or
    probabilities as the input; output `()`, or as class numbers with reduction "none".

    Raises: ValueError where input and target differ in their batch; IndexError where a target is no class.

    Source: label smoothing: Szegedy et al. 2016, arXiv:1512.00567.

    >>> loss = nn.CrossEntropyLoss()
    >>> loss(xtensor.tensor([[2.0, 0.0, 0.0]]), xtensor.tensor([0]))
    tensor(0.2395)
    >>> loss(xtensor.zeros(4, 3), xtensor.full((4, 3), 1 / 3))
    tensor(1.0986)
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The binary cross-entropy of several classes with logits, averaged over them.

    Shape: input and target `(N, C)` or `(C)`; output `()`, or `(N)` with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    >>> nn.MultiLabelSoftMarginLoss()(xtensor.tensor([[0.0, 2.0]]), xtensor.tensor([[1.0, 0.0]]))
    tensor(1.4100)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """One minus the cosine for targets 1, the cosine above `margin` for targets -1.

    Shape: inputs `(N, D)` or `(D)`, target `(N)` or `()`; output `()`, or `(N)` with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    >>> x, y = xtensor.tensor([[1.0, 0.0]]), xtensor.tensor([[0.0, 1.0]])
    >>> nn.CosineEmbeddingLoss()(x, y, xtensor.tensor([1]))
    tensor(1.)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """`max(0, -target * (input1 - input2) + margin)`.

    Shape: inputs and target `(N)` or `()`; output `()`, or as the inputs with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    Source: Herbrich, Graepel and Obermayer 2000, Advances in Large Margin Classifiers.

    >>> nn.MarginRankingLoss(margin=0.5)(xtensor.tensor([1.0]), xtensor.tensor([2.0]), xtensor.tensor([1.0]))
    tensor(1.5000)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """The hinge loss of several classes, one of which is right (Crammer and Singer, 2001).

    Shape: input `(N, C)` or `(C)`, target `(N)` or `()`; output `()`, or as the target with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    Source: Crammer and Singer 2001, Journal of Machine Learning Research 2.

    >>> nn.MultiMarginLoss()(xtensor.tensor([[0.1, 0.2, 0.4]]), xtensor.tensor([2]))
    tensor(0.5000)
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


def check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, got {margin} instead")


class TripletMarginLoss(_Loss):
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)`, d the p-norm (Balntas et al., 2016).

    Shape: inputs `(N, D)` or `(D)`; output `()`, or `(N)` with reduction "none".

    Raises: RuntimeError where sizes do not fit; ValueError where `margin` is not positive.

    Source: Balntas et al. 2016, British Machine Vision Conference.

    >>> anchor, near, far = xtensor.tensor([[0.0]]), xtensor.tensor([[1.0]]), xtensor.tensor([[1.5]])
    >>> nn.TripletMarginLoss()(anchor, near, far)
    tensor(0.5000)
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        check_margin("TripletMarginLoss", margin)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss by any distance.

    Shape: inputs `(N, *)`, of which the distance makes `(N)`; output `()`, or `(N)` with reduction "none".

    Raises: RuntimeError where sizes do not fit.

    Source: Balntas et al. 2016, British Machine Vision Conference.

    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().amax(1))
    >>> loss(xtensor.tensor([[0.0, 0.0]]), xtensor.tensor([[1.0, 0.0]]), xtensor.tensor([[0.0, 1.5]]))
    tensor(0.5000)
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        check_margin("TripletMarginWithDistanceLoss", margin)
        self.distance_function: Any = (
            distance_function if distance_function is not None else PairwiseDistance()
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
