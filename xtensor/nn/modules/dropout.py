"""Dropout: in training, values or channels are zero with probability p and the others scaled by 1 / (1 - p)."""

from __future__ import annotations

from ...tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Dropout of single values (Hinton et al., 2012).

    Each is zero with probability `p`, else divided by `1 - p`; in evaluation, all stay as they are.

    Shape: input `(*)`, output `(*)`.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Srivastava et al. 2014, Journal of Machine Learning Research 15.

    >>> nn.Dropout(0.5).eval()(xtensor.ones(3))
    tensor([1., 1., 1.])
    >>> sorted(set(nn.Dropout(0.5)(xtensor.ones(100)).tolist()))
    [0.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of sequences (Tompson et al., 2014).

    Shape: input `(N, C, L)` or `(C, L)`, output as the input.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Tompson et al. 2015, arXiv:1411.4280.

    >>> nn.Dropout1d(0.5).eval()(xtensor.ones(1, 2, 2))
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of images (Tompson et al., 2014).

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output as the input.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Tompson et al. 2015, arXiv:1411.4280.

    >>> kept = nn.Dropout2d(0.5)(xtensor.ones(1, 9, 4, 4))
    >>> set(kept.sum((2, 3)).flatten().tolist()) <= {0.0, 32.0}
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of volumes (Tompson et al., 2014).

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output as the input.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Tompson et al. 2015, arXiv:1411.4280.

    >>> nn.Dropout3d(0.5)(xtensor.ones(1, 2, 3, 4, 4)).shape
    xtensor.Size([1, 2, 3, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance of self-normalising networks (Klambauer et al., 2017).

    Shape: input `(*)`, output `(*)`.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Klambauer et al. 2017, arXiv:1706.02515.

    >>> nn.AlphaDropout(0.5).eval()(xtensor.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels.

    Shape: input `(N, C, *)`, output as the input.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Klambauer et al. 2017, arXiv:1706.02515.

    >>> nn.FeatureAlphaDropout(0.5).eval()(xtensor.ones(1, 2, 2))
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
