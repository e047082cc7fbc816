"""Rows of `xtensor/ops/network/convolution.py`."""

import numpy as np

from . import Row, Sample, T, matrices

HALF = ("bfloat16",)


def convolve(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Direct convolution, window by window."""
    n = w.ndim - 2
    batched = x.ndim == n + 2
    x = x if batched else x[None]

    def each(value):
        return (value,) * n if isinstance(value, int) else tuple(value)

    stride, dilation, size = each(stride), each(dilation), w.shape[2:]
    if padding in ("same", "valid"):
        reach = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, size, strict=True)]
        pads = [(r // 2, r - r // 2) for r in reach]
    else:
        pads = [(p, p) for p in each(padding)]
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    extent = [d * (k - 1) + 1 for d, k in zip(dilation, size, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, extent, axis=tuple(range(2, n + 2)))
    steps = tuple(slice(None, None, s) for s in stride)
    windows = windows[(slice(None), slice(None), *steps)]
    windows = windows[(..., *[slice(None, None, d) for d in dilation])]
    per_group, outs = w.shape[1], w.shape[0] // groups
    space, taps = "abc"[:n], "xyz"[:n]
    made = [
        np.einsum(
            f"ni{space}{taps},oi{taps}->no{space}",
            windows[:, g * per_group : (g + 1) * per_group],
            w[g * outs : (g + 1) * outs],
        )
        for g in range(groups)
    ]
    result = np.concatenate(made, 1)
    if b is not None:
        result = result + b.reshape(-1, *(1,) * n)
    return result if batched else result[0]


ROWS = [
    Row(
        "conv1d",
        [
            matrices((2, 2, 5), (3, 2, 3), (3,)),
            matrices((2, 2, 5), (4, 1, 3), stride=2, padding=1, groups=2),
            matrices((2, 5), (3, 2, 3), padding="same"),
            matrices((2, 2, 5), (3, 2, 2), dilation=2),
            matrices((2, 2, 5), (3, 1, 3)),
            matrices((0, 2, 5), (3, 2, 3)),
        ],
        numpy=convolve,
        others=HALF,
    ),
    Row(
        "conv2d",
        [
            matrices((2, 2, 5, 4), (3, 2, 3, 2), (3,)),
            matrices((2, 2, 5, 4), (2, 1, 3, 3), padding=1, groups=2),
            matrices((2, 2, 5, 4), (3, 2, 3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
            matrices((2, 5, 4), (3, 2, 3, 3), padding="same"),
            matrices((2, 2, 5, 4), (4, 1, 1, 1), groups=2),
            matrices((2, 2, 2, 4), (3, 2, 3, 2)),
        ],
        numpy=convolve,
        others=HALF,
    ),
    Row(
        "conv3d",
        [
            matrices((1, 2, 3, 3, 4), (2, 2, 2, 2, 2), (2,)),
            matrices((1, 2, 3, 3, 4), (2, 1, 2, 2, 2), stride=2, padding=1, groups=2),
        ],
        numpy=convolve,
        others=HALF,
    ),
    Row(
        "conv_transpose1d",
        [
            matrices((2, 2, 4), (2, 3, 3), (3,)),
            matrices((2, 2, 4), (2, 2, 3), stride=2, padding=1, output_padding=1, groups=2),
            matrices((2, 4), (2, 3, 3), dilation=2),
            matrices((2, 2, 4), (3, 2, 3)),
        ],
        others=HALF,
    ),
    Row(
        "conv_transpose2d",
        [
            matrices((2, 2, 3, 4), (2, 3, 3, 2), (3,)),
            matrices((2, 2, 3, 4), (2, 1, 3, 3), stride=2, padding=1, output_padding=1, groups=2),
        ],
        others=HALF,
    ),
    Row(
        "conv_transpose3d",
        [
            matrices((1, 2, 2, 3, 2), (2, 3, 2, 2, 2), (3,)),
            matrices((1, 2, 2, 3, 2), (2, 1, 2, 2, 2), stride=2, groups=2),
        ],
        others=HALF,
    ),
    Row(
        "conv_tbc",
        [
            Sample(T(5, 2, 3), T(2, 3, 4), T(4), 1),
            Sample(T(5, 2, 3), T(2, 3, 4), T(4)),
            Sample(T(5, 3), T(2, 3, 4), T(4)),
        ],
        others=(),
    ),
]
