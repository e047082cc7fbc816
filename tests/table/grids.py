"""Rows of `xtensor/ops/network/grids.py`."""

from . import Row, Sample, T

IMAGE, VOLUME = T(2, 2, 3, 4), T(1, 2, 3, 4, 2)
PLACES, SPOTS = T(2, 3, 2, 2, low=-1.4, high=1.4), T(1, 2, 2, 3, 3, low=-1.4, high=1.4)
PADDINGS = ("zeros", "border", "reflection")

ROWS = [
    Row(
        "grid_sample",
        [
            Sample(IMAGE, PLACES, mode=mode, padding_mode=padding, align_corners=padding == "zeros")
            for mode in ("bilinear", "nearest", "bicubic")
            for padding in PADDINGS
        ]
        + [Sample(VOLUME, SPOTS, mode=mode, align_corners=False) for mode in ("bilinear", "nearest")]
        + [Sample(IMAGE, SPOTS)],
        reference="nn.functional.grid_sample",
        others=("bfloat16",),
        second=False,  # PyTorch's is not differentiable twice
        tolerance=4.0,
        grad_tolerance=16.0,
    ),
    Row("grid_sampler", [Sample(IMAGE, PLACES, 0, 0, True)], others=(), second=False, grad_tolerance=16.0),
    Row("grid_sampler_2d", [Sample(IMAGE, PLACES, 0, 1, True)], others=(), second=False, grad_tolerance=16.0),
    Row("grid_sampler_3d", [Sample(VOLUME, SPOTS, 0, 2, True)], others=(), second=False, grad_tolerance=16.0),
    Row(
        "affine_grid",
        [
            Sample(T(2, 2, 3), (2, 1, 3, 4), align_corners=True),
            Sample(T(2, 2, 3), (2, 1, 3, 4), align_corners=False),
            Sample(T(1, 3, 4), (1, 1, 2, 3, 2), align_corners=False),
            Sample(T(2, 3, 4), (2, 1, 3, 4)),
        ],
        reference="nn.functional.affine_grid",
        others=("bfloat16",),
    ),
    Row("affine_grid_generator", [Sample(T(2, 2, 3), (2, 1, 3, 4), True)], others=()),
]
