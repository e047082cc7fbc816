"""Rows of `xtensor/ops/network/normalization.py`."""

import numpy as np

from . import Row, Sample, T

HALF = ("bfloat16",)
POSITIVE = dict(low=0.5, high=2.0)
X = T(3, 4, 2)
MEAN, VAR = T(4, grad=False), T(4, grad=False, **POSITIVE)


def shaped(values, a):
    return values.reshape(-1, *(1,) * (a.ndim - 2))


def scaled(a, weight, bias):
    a = a if weight is None else a * shaped(weight, a)
    return a if bias is None else a + shaped(bias, a)


def batch(a, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if training or mean is None:
        axes = (0, *range(2, a.ndim))
        mean, var = a.mean(axes), a.var(axes)
    return scaled((a - shaped(mean, a)) / np.sqrt(shaped(var, a) + eps), weight, bias)


def groups(a, n, weight=None, bias=None, eps=1e-5):
    split = a.reshape(a.shape[0], n, -1)
    made = (split - split.mean(-1, keepdims=True)) / np.sqrt(split.var(-1, keepdims=True) + eps)
    return scaled(made.reshape(a.shape), weight, bias)


def layer(a, shape, weight=None, bias=None, eps=1e-5):
    axes = tuple(range(-len(shape), 0))
    made = (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + eps)
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def rms(a, shape, weight=None, eps=None):
    axes = tuple(range(-len(shape), 0))
    eps = np.finfo(a.dtype).eps if eps is None else eps
    made = a / np.sqrt((a * a).mean(axes, keepdims=True) + eps)
    return made if weight is None else made * weight


ROWS = [
    Row(
        "normalization.batch_norm",
        [
            Sample(X, MEAN, VAR, T(4), T(4), True),
            Sample(X, MEAN, VAR, T(4), T(4)),
            Sample(X, None, None, training=True),
            Sample(T(3, 4), MEAN, VAR),
            Sample(T(1, 4), None, None, training=True),
        ],
        numpy=batch,
        others=HALF,
        covers=("batch_norm_training", "batch_norm_inference"),
        reference="nn.functional.batch_norm",
    ),
    Row(
        "group_norm",
        [Sample(X, 2, T(4), T(4)), Sample(X, 4), Sample(T(3, 4, 1), 1), Sample(X, 3)],
        numpy=groups,
        others=HALF,
        reference="nn.functional.group_norm",
    ),
    Row(
        "normalization.instance_norm",
        [
            Sample(X, None, None, T(4), T(4)),
            Sample(X, MEAN, VAR, use_input_stats=False),
            Sample(X, MEAN, VAR),
        ],
        others=HALF,
        reference="nn.functional.instance_norm",
    ),
    Row(
        "layer_norm",
        [
            Sample(T(2, 3), (3,), T(3), T(3)),
            Sample(T(2, 3), (3,)),
            Sample(T(2, 1, 3), (1, 3), T(1, 3)),
            Sample(T(0, 3), (3,)),
            Sample(T(2, 3), (2,)),
        ],
        numpy=layer,
        others=HALF,
        reference="nn.functional.layer_norm",
    ),
    Row(
        "local_response_norm",
        [Sample(X, 2), Sample(X, 3, 0.1, 0.5, 2.0)],
        others=(),
        covers=("channel_windows",),
        reference="nn.functional.local_response_norm",
    ),
    Row(
        "native_batch_norm",
        [
            Sample(X, T(4), T(4), MEAN, VAR, True, 0.1, 1e-5),
            Sample(X, None, None, None, None, True, 0.1, 1e-5),
        ],
        others=("bfloat16",),
    ),
    Row(
        "native_group_norm",
        [Sample(X, T(4), T(4), 3, 4, 2, 2, 1e-5)],
        grad=False,  # of statistics PyTorch asks, and has none; group_norm's row has the gradient
        others=("bfloat16",),
        covers=("group_statistics",),
    ),
    Row(
        "native_layer_norm",
        [Sample(T(2, 3), (3,), T(3), T(3), 1e-5)],
        others=("bfloat16",),
        covers=("layer_statistics",),
    ),
    Row(
        "normalize",
        [
            Sample(T(2, 3)),
            Sample(T(2, 3), dim=0),
            Sample(T(2, 3), 1.0),
            Sample(T(values=[[0.0, 0.0], [3.0, 4.0]], smooth=False)),
        ],
        others=(),
        reference="nn.functional.normalize",
    ),
    Row(
        "rms_norm",
        [Sample(T(2, 3), (3,), T(3)), Sample(T(2, 3), (3,), eps=1e-3), Sample(T(2, 1, 3), (1, 3))],
        numpy=rms,
        others=HALF,
        reference="nn.functional.rms_norm",
    ),
]
