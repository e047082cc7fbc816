"""Dropout as functions: of values, of channels, and the kind that keeps mean and variance."""

from __future__ import annotations

import math

from .. import checks
from ..engine import modes
from ..ops.create.distributions import bernoulli
from ..tensor import Tensor

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

# The limit of SELU for large negative values, with the opposite sign.
ALPHA = 1.7580993408473766


def check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def keeps(input: Tensor, p: float, channels: bool) -> Tensor:
    """Ones with probability 1 - p, else zeros: for every value, or for every channel of (N, C, *)."""
    sizes = tuple(input.shape)
    if channels:
        sizes = (*sizes[:2], *[1] * (len(sizes) - 2))
    blank = input.detach().new_empty(sizes)
    # Inside of a transform the samples' masks may differ where the input is the same for all.
    return bernoulli(blank, 1 - p) if modes.state.transforms else blank.bernoulli_(1 - p)


def dropped(input: Tensor, p: float, training: bool, inplace: bool, channels: bool = False) -> Tensor:
    if not training or p == 0 or input.numel() == 0:
        return input
    mask = keeps(input, p, channels)
    if p < 1:
        mask = mask / (1 - p)
    return input.mul_(mask) if inplace else input * mask


def alpha_dropped(input: Tensor, p: float, training: bool, inplace: bool, channels: bool) -> Tensor:
    if not training or p == 0 or input.numel() == 0:
        return input
    mask = keeps(input, p, channels)
    a = 0.0 if p == 1 else 1.0 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    shift = (mask - 1) * (ALPHA * a) + ALPHA * a * p
    scale = mask * a
    return input.mul_(scale).add_(shift) if inplace else input * scale + shift


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Every value zero with probability `p`, else divided by 1 - p; nothing changes unless `training`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Srivastava et al. 2014, Journal of Machine Learning Research 15.

    >>> F.dropout(xtensor.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    >>> set(F.dropout(xtensor.ones(100), 0.5).tolist()) <= {0.0, 2.0}
    True
    """
    check_probability(p)
    return dropped(input, p, training, inplace)


def by_channel(name: str, input: Tensor, p: float, training: bool, inplace: bool, unbatched: int) -> Tensor:
    """Dropout of channels, an input of `unbatched` dimensions being one sample."""
    check_probability(p)
    if input.dim() not in (unbatched, unbatched + 1):
        raise RuntimeError(
            f"{name}: Expected {unbatched}D or {unbatched + 1}D input, but received a {input.dim()}D input. Note that "
            f"{name} exists to provide channel-wise dropout on inputs with {unbatched - 1} spatial dimension, a "
            "channel dimension, and an optional batch dimension."
        )
    if input.dim() == unbatched:
        made = dropped(input.unsqueeze(0), p, training, inplace, True)
        return input if inplace else made.squeeze(0)
    return dropped(input, p, training, inplace, True)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Every channel of (N, C, L) or (C, L) zero with probability `p`, else divided by 1 - p.

    Shape: `input` `(N, C, L)` or `(C, L)`, result the same.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Tompson et al. 2015, arXiv:1411.4280.
    """
    return by_channel("dropout1d", input, p, training, inplace, 2)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Every channel of (N, C, H, W) zero with probability `p`, else divided by 1 - p; 3-d input is (N, C, L).

    Shape: `input` `(N, C, H, W)`, result the same.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Tompson et al. 2015, arXiv:1411.4280.
    """
    check_probability(p)
    if input.dim() == 3:
        checks.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - "
            "input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future "
            "release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    warn_of_rank(2, input)
    return dropped(input, p, training, inplace, True)


def warn_of_rank(n: int, input: Tensor) -> None:
    """Warn of what is no image of `n` spatial dimensions, with samples or without."""
    if input.dim() not in (n + 1, n + 2):
        checks.warn(
            f"dropout{n}d: Received a {input.dim()}-D input to dropout{n}d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead. "
            f"Note that dropout{n}d exists to provide channel-wise dropout on inputs with {n} spatial dimensions, a "
            f"channel dimension, and an optional batch dimension (i.e. {n + 1}D or {n + 2}D inputs)."
        )


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Every channel of (N, C, D, H, W) or (C, D, H, W) zero with probability `p`, else divided by 1 - p.

    Shape: `input` `(N, C, D, H, W)` or `(C, D, H, W)`, result the same.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Tompson et al. 2015, arXiv:1411.4280.
    """
    check_probability(p)
    warn_of_rank(3, input)
    if input.dim() == 4:
        made = dropped(input.unsqueeze(0), p, training, inplace, True)
        return input if inplace else made.squeeze(0)
    return dropped(input, p, training, inplace, True)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of what SELU gives (Klambauer et al., 2017).

    Shape: `input` `(*)`, result `(*)`.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Klambauer et al. 2017, arXiv:1706.02515.
    """
    check_probability(p)
    return alpha_dropped(input, p, training, inplace, False)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels.

    Shape: `input` `(N, C, *)`, result `(N, C, *)`.

    Raises: ValueError where `p` is not in [0, 1].

    Source: Klambauer et al. 2017, arXiv:1706.02515.
    """
    check_probability(p)
    return alpha_dropped(input, p, training, inplace, True)
