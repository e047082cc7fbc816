"""Distances between vectors."""

from __future__ import annotations

from ...tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The p-norm of the difference, over the last dimension.

    Shape: inputs `(*, D)`, output `(*)`, or `(*, 1)` with `keepdim`.

    Raises: RuntimeError where sizes do not fit.

    >>> nn.PairwiseDistance()(xtensor.tensor([[0.0, 0.0]]), xtensor.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle, along a dimension.

    Shape: inputs `(*, D, *)` with D at `dim`, output without it.

    Raises: RuntimeError where sizes do not fit.

    >>> nn.CosineSimilarity()(xtensor.tensor([[1.0, 0.0]]), xtensor.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
