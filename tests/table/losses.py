"""Rows of `xtensor/ops/network/losses.py`."""

import numpy as np

from . import Row, Sample, T

HALF = ("bfloat16",)
P = dict(low=0.1, high=0.9)
SIGNS = T(values=[[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]], grad=False)
KINK = T(values=[[0.0, 1.0, 2.0], [-1.0, 0.5, 3.0]], smooth=False)


def each(x, y, *rest, **options):
    """The three reductions."""
    return [Sample(x, y, *rest, reduction=r, **options) for r in ("mean", "sum", "none")]


def reduced(loss):
    """A loss of arrays with PyTorch's reductions."""

    def run(*args, reduction="mean", **options):
        made = loss(*args, **options)
        return {"mean": np.mean, "sum": np.sum, "none": lambda x: x}[reduction](made)

    return run


def squared(x, y):
    return (x - y) ** 2


def absolute(x, y):
    return np.abs(x - y)


PAIR = T(2, 3), T(2, 3)
AGAINST = KINK, T(values=[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])

ROWS = [
    Row(
        "binary_cross_entropy",
        [
            *each(T(2, 3, **P), T(2, 3, **P)),
            Sample(T(2, 3, **P), T(2, 3, **P), T(3, grad=False, **P)),
            Sample(T(0), T(0)),
        ],
        numpy=reduced(lambda x, y, w=1: -w * (y * np.log(x) + (1 - y) * np.log1p(-x))),
        others=(),
        grad_tolerance=100,  # PyTorch adds 1e-12 to what it divides by
        reference="nn.functional.binary_cross_entropy",
    ),
    Row(
        "binary_cross_entropy_with_logits",
        [
            *each(T(2, 3), T(2, 3, **P)),
            Sample(T(2, 3), T(2, 3, **P), T(3, grad=False, **P), pos_weight=T(3, grad=False, **P)),
        ],
        others=(),
        reference="nn.functional.binary_cross_entropy_with_logits",
    ),
    Row(
        "gaussian_nll_loss",
        [*each(*PAIR, T(2, 3, **P)), Sample(*PAIR, T(2, 1, **P), full=True), Sample(*PAIR, 0.5)],
        others=(),
        reference="nn.functional.gaussian_nll_loss",
    ),
    Row(
        "hinge_embedding_loss",
        [*each(T(2, 3), SIGNS), Sample(KINK, SIGNS, 2.0)],
        others=(),
        reference="nn.functional.hinge_embedding_loss",
    ),
    Row(
        "huber_loss",
        [*each(*PAIR), Sample(*AGAINST, delta=0.5), Sample(*AGAINST)],
        others=HALF,
        reference="nn.functional.huber_loss",
    ),
    Row(
        "kl_div",
        [*each(T(2, 3), T(2, 3, **P)), Sample(*PAIR), Sample(*PAIR, reduction="batchmean", log_target=True)],
        others=(),
        reference="nn.functional.kl_div",
    ),
    Row(
        "l1_loss",
        [*each(*PAIR), Sample(*AGAINST), Sample(T(3), T(3))],
        numpy=reduced(absolute),
        others=(*HALF, "complex64"),
        reference="nn.functional.l1_loss",
    ),
    Row(
        "margin_ranking_loss",
        [*each(*PAIR, SIGNS), Sample(T(2, 3), T(2, 3), SIGNS, 0.5)],
        others=(),
        reference="nn.functional.margin_ranking_loss",
    ),
    Row(
        "mse_loss",
        [*each(*PAIR), Sample(*AGAINST), Sample(T(0), T(0)), Sample(T(2, 3), T(3))],
        numpy=reduced(squared),
        others=HALF,
        reference="nn.functional.mse_loss",
    ),
    Row(
        "poisson_nll_loss",
        [
            *each(*PAIR),
            Sample(T(2, 3, **P), T(2, 3, low=0.5, high=4.0), log_input=False),
            Sample(T(2, 3), T(2, 3, low=0.5, high=4.0), full=True),
        ],
        others=(),
        reference="nn.functional.poisson_nll_loss",
    ),
    Row(
        "smooth_l1_loss",
        [*each(*PAIR), Sample(*AGAINST, beta=0.5), Sample(*AGAINST), Sample(*AGAINST, beta=0)],
        others=HALF,
        reference="nn.functional.smooth_l1_loss",
    ),
    Row(
        "soft_margin_loss",
        each(T(2, 3), SIGNS),
        numpy=reduced(lambda x, y: np.log1p(np.exp(-y * x))),
        others=(),
        reference="nn.functional.soft_margin_loss",
    ),
]
