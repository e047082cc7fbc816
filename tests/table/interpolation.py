"""Rows of `xtensor/ops/network/interpolation.py`."""

from . import Row, Sample, T

HALF = ("bfloat16",)
LINE, PLANE, SPACE = T(2, 2, 5), T(2, 2, 5, 4), T(1, 2, 3, 4, 2)


def modes(x, *names, **options):
    return [Sample(x, mode=name, **options) for name in names]


ROWS = [
    Row(
        "interpolate",
        [
            *modes(LINE, "nearest", "nearest-exact", "linear", size=3),
            *modes(PLANE, "nearest", "nearest-exact", "bilinear", "bicubic", "area", size=(3, 7)),
            *modes(SPACE, "nearest", "nearest-exact", "trilinear", scale_factor=1.7),
            *modes(PLANE, "bilinear", "bicubic", scale_factor=(0.6, 1.6), align_corners=True),
            *modes(PLANE, "bilinear", "bicubic", "lanczos", size=(2, 6), antialias=True),
            Sample(PLANE, scale_factor=1.6, recompute_scale_factor=True),
            Sample(T(1, 1, 4, 4, dtype="uint8", low=0, high=255), size=(3, 6), mode="bilinear"),
            Sample(PLANE, size=(3, 7), scale_factor=2.0),
        ],
        reference="nn.functional.interpolate",
        others=HALF,
        covers=(
            *[f"upsample_{mode}{n}d" for mode in ("nearest", "nearest_exact") for n in (1, 2, 3)],
            "upsample_linear1d",
            "upsample_bilinear2d",
            "upsample_trilinear3d",
            "upsample_bicubic2d",
            *[f"upsample_{mode}2d_aa" for mode in ("bilinear", "bicubic", "lanczos")],
        ),
        strides=False,
    ),
    Row(
        "upsample",
        [Sample(PLANE, scale_factor=2)],
        reference="nn.functional.upsample",
        others=(),
        strides=False,
    ),
    Row(
        "upsample_nearest",
        [Sample(PLANE, size=7)],
        reference="nn.functional.upsample_nearest",
        others=(),
        strides=False,
    ),
    Row(
        "upsample_bilinear",
        [Sample(PLANE, size=7)],
        reference="nn.functional.upsample_bilinear",
        others=(),
        strides=False,
    ),
]
