"""PyTorch's kernels that packages call by private names; judged by PyTorch."""

from __future__ import annotations

import operator

import xtensor
from tests.oracle import Cases, attempt
from xtensor.interop.private import NAMES

case = Cases()


def kernel(T, path):
    """What `torch.<path>` is under a library."""
    return NAMES[path] if T is xtensor else operator.attrgetter(path)(T)


@case
def sums_that_are_not_negative(T):
    x = T.tensor([-1.0, 2.0])
    written = x.clone()
    return [
        kernel(T, "_add_relu")(x, x, alpha=2),
        kernel(T, "_add_relu")(x, x, out=T.zeros(2)),
        kernel(T, "_add_relu_")(written, x) is written,
        written,
    ]


@case
def by_their_dispatched_names(T):
    x, line = T.arange(32.0).reshape(1, 2, 4, 4), T.arange(8.0).reshape(1, 2, 4)
    rows, labels = T.arange(12.0).reshape(3, 4), T.tensor([1, 0, 3])

    def nn(name, *args):
        return kernel(T, f"_C._nn.{name}")(*args)

    return [
        nn("upsample_nearest2d", x, [8, 8]),
        nn("upsample_nearest2d", x, None, [2.0, 2.0]),
        nn("upsample_nearest1d", line, [6], None),
        nn("_upsample_nearest_exact2d", x, [6, 6]),
        nn("upsample_bilinear2d", x, [8, 6], False, None, None),
        nn("upsample_bilinear2d", x, None, True, [1.5, 2.0]),
        T.ops.aten.upsample_nearest2d(x, [8, 8], 2.0, 2.0),
        T.ops.aten.upsample_bicubic2d(x, [8, 8], True).round(),
        nn("im2col", x, [2, 2], [1, 1], [0, 0], [1, 1]),
        nn("cross_entropy_loss", rows, labels, None, 2, -100, 0.1),
        nn("nll_loss_nd", rows, labels, None, 0, 1),
        nn("log_sigmoid", rows),
    ]


@case
def scales_of_mixed_precision(T):
    check, update = (
        kernel(T, "_amp_foreach_non_finite_check_and_unscale_"),
        kernel(T, "_amp_update_scale_"),
    )
    scale, tracker = T.full((1,), 4.0), T.zeros(1, dtype=T.int32)
    told = []
    for worst in (1.0, float("inf"), 2.0, 3.0, 4.0, float("nan")):
        grads = [T.tensor([8.0, worst]), T.tensor([[2.0]])]
        found = T.zeros(1)
        check(grads, found, scale.reciprocal())
        update(scale, tracker, found, 2.0, 0.5, 2)
        told += [*grads, found, scale.clone(), tracker.clone()]
    return told


@case
def products_with_int8(T):
    x = (T.arange(64.0).reshape(2, 32) % 7 - 3).bfloat16()
    weight = (T.arange(16 * 32).reshape(16, 32) % 11 - 5).to(T.int8)
    return [kernel(T, "_weight_int8pack_mm")(x, weight, T.arange(1, 17).bfloat16() / 4)]


@case
def masked_softmax(T):
    f = kernel(T, "_masked_softmax")
    x = T.arange(18.0).reshape(2, 1, 3, 3)
    square, rows = T.eye(3).bool(), T.tensor([[0, 0, 1], [1, 1, 1]]).bool()
    return [
        f(x, square, None, 0),
        f(x, rows, 3, 1),
        f(x, x > 4, 2),
        attempt(lambda: f(x, rows, 3, 0)),
        attempt(lambda: f(x, square, 3, 1)),
        attempt(lambda: f(x, square)),
        attempt(lambda: f(x, x)),
        attempt(lambda: f(x.long(), x > 4)),
    ]


@case
def rows_from_a_mask(T):
    f, aligned = kernel(T, "_nested_tensor_from_mask"), kernel(T, "_nested_tensor_from_mask_left_aligned")
    x = T.arange(12.0).reshape(2, 3, 2)
    mask, gap = T.tensor([[1, 1, 1], [1, 0, 0]]).bool(), T.tensor([[0, 1, 1], [1, 0, 0]]).bool()
    wrong = [(x, mask.float()), (x, x > 0), (x[0], mask), (x, mask[:, :2]), (x, gap)]
    return [
        list(f(x, mask).unbind()),
        list(f(x, gap, False).unbind()),
        [aligned(x, m) for m in (mask, gap)],
        [attempt(lambda given=given: f(*given)) for given in wrong],
    ]


@case
def statistics_of_batches(T):
    f = kernel(T, "batch_norm_update_stats")
    x, mean, variance = T.arange(6.0).reshape(3, 2), T.zeros(2), T.ones(2)
    return [
        *f(x, mean, variance, 0.1),
        mean,
        variance,
        f(x, None, None, 0.1)[0],
        attempt(lambda: f(x[:0], None, None, 0.1)),
    ]


@case
def convolutions_of_every_dimension(T):
    flat, solid = kernel(T, "_C._nn.thnn_conv2d"), kernel(T, "_C._nn.slow_conv3d")
    x, w = T.ones(1, 1, 3, 3), T.ones(1, 1, 2, 2)
    y, v = T.ones(1, 1, 3, 3, 3), T.ones(1, 1, 2, 2, 2)
    return [
        flat(x, w, [2, 2], padding=[1, 0]),
        attempt(lambda: flat(x, w, [2])),
        attempt(lambda: flat(x, w, [2, 2], stride=[])),
        solid(y, v, 2),
        attempt(lambda: solid(y, v, [2, 2, 2], stride=[1])),
    ]


test_private_kernels = case.test()
