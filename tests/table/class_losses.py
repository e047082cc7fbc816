"""Rows of `xtensor/ops/network/class_losses.py`."""

import numpy as np

from . import Row, Sample, T

HALF = ("bfloat16",)
CLASSES = T(values=[2, 0], dtype="int64")
SOME = T(values=[2, -100], dtype="int64")
PLANES = T(values=[[[0], [2]], [[1], [1]]], dtype="int64")
WEIGHT = T(3, low=0.1, high=0.9, grad=False)
LABELS = T(values=[[2, 0, -1], [1, -1, 0]], dtype="int64")


def each(x, y, **options):
    return [Sample(x, y, reduction=r, **options) for r in ("mean", "sum", "none")]


def picked(a, target, weight=None, ignore_index=-100, reduction="mean"):
    if a.ndim != 2:
        a, target = np.moveaxis(a, 1, -1).reshape(-1, a.shape[1]), target.reshape(-1)
    used = target != ignore_index
    scale = np.where(used, 1.0 if weight is None else weight[np.where(used, target, 0)], 0.0)
    made = -a[np.arange(len(a)), np.where(used, target, 0)] * scale
    return made.sum() / scale.sum() if reduction == "mean" else made.sum() if reduction == "sum" else made


ROWS = [
    Row(
        "cross_entropy",
        [
            *each(T(2, 3), CLASSES),
            Sample(T(2, 3), SOME, WEIGHT),
            Sample(T(2, 3), CLASSES, label_smoothing=0.2),
            Sample(T(2, 3), T(2, 3, low=0.1, high=0.9), label_smoothing=0.1),
            Sample(T(3), T(values=1, dtype="int64")),
            Sample(T(2, 3, 2, 1), PLANES),
            Sample(T(2, 3), T(values=[3, 0], dtype="int64")),
            Sample(T(2, 0), T(values=[0, 0], dtype="int64"), T(0)),
            Sample(T(2, 0), T(values=[0, 0], dtype="int64"), label_smoothing=0.1),
            Sample(T(2, 3), T(3, dtype="int64")),
        ],
        others=HALF,
        covers=("soft_cross_entropy",),
        reference="nn.functional.cross_entropy",
    ),
    Row(
        "multi_margin_loss",
        [*each(T(2, 3), CLASSES), Sample(T(2, 3), CLASSES, 2, 0.5, WEIGHT)],
        others=(),
        reference="nn.functional.multi_margin_loss",
    ),
    Row(
        "multilabel_margin_loss",
        each(T(2, 3), LABELS),
        others=(),
        reference="nn.functional.multilabel_margin_loss",
    ),
    Row(
        "multilabel_soft_margin_loss",
        [
            *each(T(2, 3), T(values=[[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]], grad=False)),
            Sample(T(2, 3), T(2, 3, grad=False), WEIGHT),
        ],
        others=(),
        reference="nn.functional.multilabel_soft_margin_loss",
    ),
    Row(
        "nll_loss",
        [
            *each(T(2, 3), CLASSES),
            Sample(T(2, 3), SOME, WEIGHT),
            Sample(T(2, 3), CLASSES, ignore_index=0),
            Sample(T(2, 3, 2, 1), PLANES),
            Sample(T(2, 3), T(values=[3, 0], dtype="int64")),
        ],
        numpy=picked,
        others=HALF,
        reference="nn.functional.nll_loss",
    ),
]
