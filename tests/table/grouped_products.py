"""Rows of `xtensor/ops/linalg/grouped_products.py`."""

import functools

from xtensor.ops.linalg.grouped_products import ScalingType

from . import Row, Sample, T

ENDS = T(values=[2, 6], dtype="int32")
ALL, LINES = ScalingType.TensorWise, ScalingType.RowWise


def eighths(*shape):
    return T(*shape, dtype="float8_e4m3fn", grad=False)


def scaled(name, *args, **kwargs):
    """PyTorch's function, with its own recipes for ours, and the right operand's columns contiguous."""
    import torch

    theirs = torch.nn.functional
    own = {ALL: theirs.ScalingType.TensorWise, LINES: theirs.ScalingType.RowWise}
    args = [own.get(a, a) if isinstance(a, ScalingType) else a for a in args]
    args[1] = args[1].t().contiguous().t()
    return getattr(theirs, name)(*args, **kwargs)


ROWS = [
    Row(
        "grouped_mm",
        [
            Sample(T(6, 4), T(2, 4, 8), offs=ENDS),
            Sample(T(2, 3, 4), T(2, 4, 8)),
            Sample(T(4, 8), T(8, 4), offs=T(values=[4, 8], dtype="int32")),
            Sample(T(2, 4, 8), T(8, 8), offs=T(values=[4, 8], dtype="int32")),
            Sample(T(6, 4), T(2, 4, 8)),
        ],
        reference="nn.functional.grouped_mm",
        others=(),
        covers=("grouped_mm",),
        layouts=False,
        strides=False,
    ),
    Row(
        "scaled_mm",
        [
            Sample(eighths(16, 32), eighths(32, 16), T(values=2.0), ALL, T(values=3.0), ALL),
            Sample(eighths(16, 32), eighths(32, 16), T(16, 1), LINES, T(1, 16), LINES),
        ],
        reference=functools.partial(scaled, "scaled_mm"),
        others=(),
        grad=False,
        covers=("scaled_mm",),
        layouts=False,
        strides=False,
        meta=False,
    ),
    Row(
        "scaled_grouped_mm",
        [Sample(eighths(16, 32), eighths(32, 16), T(values=2.0), ALL, T(values=3.0), ALL)],
        reference=functools.partial(scaled, "scaled_grouped_mm"),
        others=(),
        grad=False,
        layouts=False,
        meta=False,
    ),
]
