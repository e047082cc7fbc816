"""Rows of `xtensor/ops/network/adaptive_pooling.py`."""

from . import Row, Sample, T

HALF = ("bfloat16",)
LINE = T(2, 2, 7, unique=True)
PLANE = T(2, 2, 5, 6, unique=True)
SPACE = T(1, 2, 4, 4, 4, unique=True)


def sizes(x, *outputs):
    return [Sample(x, size) for size in outputs]


def maxima(x, *outputs):
    return [*sizes(x, *outputs), Sample(x, outputs[0], return_indices=True)]


def at(values):
    return T(values=values, dtype="int64")


ROWS = [
    Row("adaptive_avg_pool1d", sizes(LINE, 3, 7, 1), others=HALF),
    Row("adaptive_avg_pool2d", sizes(PLANE, (3, 2), 1, (None, 4)), others=HALF),
    Row("adaptive_avg_pool3d", sizes(SPACE, (3, 2, 1), 2), others=HALF),
    Row(
        "adaptive_max_pool1d",
        maxima(LINE, 3, 7),
        reference="nn.functional.adaptive_max_pool1d",
        others=HALF,
    ),
    Row(
        "adaptive_max_pool2d",
        maxima(PLANE, (3, 2), 1),
        reference="nn.functional.adaptive_max_pool2d",
        others=HALF,
    ),
    Row(
        "adaptive_max_pool3d",
        maxima(SPACE, (3, 2, 1), 2),
        reference="nn.functional.adaptive_max_pool3d",
        others=HALF,
    ),
    *[
        Row(
            f"adaptive_max_pool{n}d_with_indices",
            sizes(x, 2),
            reference=f"nn.functional.adaptive_max_pool{n}d_with_indices",
            others=(),
        )
        for n, x in ((1, LINE), (2, PLANE), (3, SPACE))
    ],
    Row(
        "max_unpool1d",
        [
            Sample(T(1, 2, 2), at([[[0, 3], [1, 2]]]), 2),
            Sample(T(1, 1, 2), at([[[1, 3]]]), 2, output_size=(5,)),
        ],
        others=(),
        covers=("max_unpool",),
    ),
    Row("max_unpool2d", [Sample(T(1, 1, 1, 2), at([[[[0, 7]]]]), 2)], others=()),
    Row("max_unpool3d", [Sample(T(1, 1, 1, 1, 2), at([[[[[0, 15]]]]]), 2)], others=()),
]
