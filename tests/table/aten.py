"""Rows of `xtensor/ops/tensor/aten.py`."""

from . import Dtype, Row, Sample, T
from .grouped_products import eighths

X, PLANE, LIKELY = T(3, 4), T(2, 2, 5, 4), T(3, 4, low=0.1, high=0.9)
HALF = ("bfloat16",)
PER_CHANNEL = [T(3), T(3)]
MOVED = [T(3, grad=False), T(3, low=0.5, grad=False)]
BATCH = T(4, 3, 2)
PLACE = T(values=[0, 1, 4, 1], dtype="int64")
STARTS = T(values=[0, 1, 1], dtype="int64")
PLACES = T(values=[[[[0, 5]], [[3, 7]]]], dtype="int64")


def under_aten(name):
    """PyTorch's operator, which `torch` itself does not export."""

    def call(*args, **kwargs):
        import torch

        return getattr(torch.ops.aten, name)(*args, **kwargs)

    return call


def kept(args, kwargs, result):
    """What was kept is scaled, and the rest is zero."""
    values, mask = result
    assert (values == args[0] * mask * 2).all()


def by_columns(input, mat2, *args, **kwargs):
    """PyTorch's function with the columns of the right operand contiguous, as it wants them."""
    import torch

    return torch._scaled_mm(input, mat2.t().contiguous().t(), *args, **kwargs)


ROWS = [
    Row("_softmax", [Sample(X, 1, False), Sample(X, 0, False)], others=HALF),
    Row("_log_softmax", [Sample(X, 1, False), Sample(X, 0, False)], others=HALF),
    Row("_safe_softmax", [Sample(X, 1), Sample(T(values=[[-float("inf")] * 2, [1.0, 2.0]]), 1)], others=HALF),
    Row(
        "_softmax_backward_data",
        [Sample(X, LIKELY, 1, Dtype("float32"))],
        others=(),
        without=("out",),
        outs=(),
    ),
    Row("_log_softmax_backward_data", [Sample(X, LIKELY, 0, Dtype("float32"))], others=(), outs=()),
    Row("native_dropout", [Sample(X, 0.5, True)], others=(), random=True, check=kept, grad=False),
    Row(
        "native_dropout_backward",
        [Sample(X, T(values=[[True, False, True, True]] * 3, dtype="bool"), 2.0)],
        reference=under_aten("native_dropout_backward"),
        others=HALF,
    ),
    Row(
        "_native_batch_norm_legit",
        [Sample(BATCH, *PER_CHANNEL, *MOVED, True, 0.1, 1e-5), Sample(BATCH, *PER_CHANNEL, True, 0.1, 1e-5)],
        others=(),
        outs=(),
        without=("out",),
        strides=False,
        grad_tolerance=16.0,
    ),
    Row(
        "_native_batch_norm_legit_no_training",
        [Sample(BATCH, *PER_CHANNEL, *MOVED, 0.1, 1e-5)],
        others=(),
        outs=(),
        without=("out",),
        strides=False,
    ),
    Row(
        "_batch_norm_with_update",
        [Sample(BATCH, *PER_CHANNEL, *MOVED, 0.1, 1e-5)],
        reference=under_aten("_batch_norm_with_update"),
        others=(),
        outs=(),
        strides=False,
        grad_tolerance=16.0,
    ),
    Row("_adaptive_avg_pool2d", [Sample(PLANE, (2, 3))], others=HALF),
    Row("_adaptive_avg_pool3d", [Sample(T(1, 2, 3, 4, 4), (2, 3, 2))], others=HALF),
    Row(
        "max_pool2d_with_indices_backward",
        [Sample(T(1, 2, 1, 2), T(1, 2, 3, 4, grad=False), (3, 2), (3, 2), (0, 0), (1, 1), False, PLACES)],
        reference=under_aten("max_pool2d_with_indices_backward"),
        others=(),
        covers=("max_pool2d_scatter",),
        layouts=False,
    ),
    Row(
        "_upsample_bilinear2d_aa",
        [Sample(PLANE, (3, 6), False), Sample(PLANE, (3, 6), True), Sample(PLANE, (3, 6), False, 0.7, 1.6)],
        reference=under_aten("_upsample_bilinear2d_aa"),
        others=(),
        strides=False,
    ),
    Row(
        "_scaled_mm",
        [Sample(eighths(16, 32), eighths(32, 16), T(values=2.0), T(values=3.0), out_dtype=Dtype("float32"))],
        reference=by_columns,
        others=(),
        grad=False,
        without=("out",),
        layouts=False,
        outs=(),
    ),
    Row(
        "_scaled_mm_v2",
        [Sample(X, X, [T()], [0], [], [T()], [0], [], None, Dtype("float32"))],
        others=(),
        grad=False,
        without=("out",),
        layouts=False,
        outs=(),
    ),
    Row(
        "batch_norm",
        [Sample(BATCH, *PER_CHANNEL, *MOVED, train, 0.1, 1e-5, False) for train in (True, False)],
        others=(),
        strides=False,
        grad_tolerance=16.0,
    ),
    Row(
        "instance_norm",
        [Sample(BATCH, *PER_CHANNEL, None, None, True, 0.1, 1e-5, False)],
        others=(),
        strides=False,
        grad_tolerance=16.0,
    ),
    Row(
        "embedding",
        [
            Sample(T(5, 3), PLACE),
            Sample(T(5, 3, smooth=False), PLACE, 1),
            Sample(T(5, 3, smooth=False), PLACE, -1, True),
        ],
        others=HALF,
    ),
    Row(
        "embedding_bag",
        [Sample(T(5, 3, unique=True), PLACE, STARTS, False, mode) for mode in (1, 2)],
        others=(),
        second=False,  # PyTorch's is not differentiable twice
    ),
    Row("aten.adaptive_max_pool1d", [Sample(T(2, 2, 7, unique=True), 3)], others=HALF),
]
