"""Rows of `xtensor/ops/reduce/distances.py`."""

import numpy as np

from . import Row, Sample, T

SIGNS = T(values=[1.0, -1.0], grad=False)
THREE = T(2, 3), T(2, 3), T(2, 3)


def each(*args, **options):
    return [Sample(*args, reduction=r, **options) for r in ("mean", "sum", "none")]


def cosine(a, b, dim=1, eps=1e-8):
    scale = np.linalg.norm(a, axis=dim) * np.linalg.norm(b, axis=dim)
    return (a * b).sum(dim) / np.maximum(scale, eps)


ROWS = [
    Row(
        "cdist",
        [
            Sample(T(2, 3), T(4, 3)),
            Sample(T(2, 3), T(4, 3), 1.0),
            Sample(T(2, 3), T(4, 3), np.inf),
            Sample(T(2, 3), T(4, 3), 3.0),
            Sample(T(2, 2, 3), T(1, 4, 3)),
            Sample(T(0, 3), T(4, 3)),
        ],
        others=(),
    ),
    Row(
        "cosine_embedding_loss",
        [*each(T(2, 3), T(2, 3), SIGNS), Sample(T(2, 3), T(2, 3), SIGNS, 0.2)],
        reference="nn.functional.cosine_embedding_loss",
        others=("int64", "uint8"),
    ),
    Row(
        "cosine_similarity",
        [Sample(T(2, 3), T(2, 3)), Sample(T(2, 3), T(3), -1), Sample(T(2, 3), T(2, 3), 0)],
        numpy=cosine,
        others=("bfloat16",),
    ),
    Row(
        "pairwise_distance",
        [Sample(T(2, 3), T(2, 3)), Sample(T(2, 3), T(3), 1.0), Sample(T(2, 3), T(2, 3), 3.0, keepdim=True)],
        others=("complex64", "uint8", "bool"),
    ),
    Row(
        "pdist", [Sample(T(4, 3)), Sample(T(4, 3), 1.0), Sample(T(4, 3), np.inf), Sample(T(1, 3))], others=()
    ),
    Row(
        "triplet_margin_loss",
        [*each(*THREE), Sample(*THREE, swap=True), Sample(*THREE, 2.0, 1.0)],
        reference="nn.functional.triplet_margin_loss",
        others=("complex64", "uint8"),
    ),
    Row(
        "triplet_margin_with_distance_loss", [*each(*THREE), Sample(*THREE, margin=2.0, swap=True)], others=()
    ),
]
