"""Layers and losses: convolutions, pools, norms, attention, cells. Most are held against their kernel in float64."""

from __future__ import annotations

import numpy as np
from scipy import special

from .cases import Cases, case, drawn, fixed, indices

__all__ = ["CASES"]

SINGLES = ("float32", "float64")
# -- pools
LINE, PLANE, VOLUME = drawn(2, 5, 251), drawn(2, 3, 37, 29), drawn(1, 2, 13, 11, 17)
INPUTS = {1: LINE, 2: PLANE, 3: VOLUME}


def softmaxed(a: np.ndarray, dim: int) -> np.ndarray:
    return special.softmax(a, dim)


CASES: Cases = {
    "glu": case(drawn(29, 150), numpy=lambda a: a[:, :75] * special.expit(a[:, 75:])),
    "softmax": [case(drawn(29, 149), dim, numpy=softmaxed) for dim in (0, 1)],
    "log_softmax": [
        case(drawn(29, 149), dim, numpy=lambda a, d: special.log_softmax(a, d)) for dim in (0, 1)
    ],
}
for _n, _x in INPUTS.items():
    CASES[f"max_pool{_n}d_values"] = case(_x, 3, 2, 1)
    CASES[f"max_pool{_n}d_indexed"] = case(_x, 3, 2, 1, dtypes=SINGLES)
    CASES[f"avg_pool{_n}d"] = case(_x, 3, 2, 1)
    CASES[f"adaptive_avg_pool{_n}d"] = case(_x, (5,) * _n)
    CASES[f"adaptive_max_pool{_n}d"] = case(_x, (5,) * _n, dtypes=SINGLES)
    _kernel = (3,) * _n
    CASES[f"conv{_n}d"] = [
        case(_x, drawn(7, _x.shape[1], *_kernel), drawn(7), 1, 1),
        case(_x, drawn(_x.shape[1] * 2, 1, *_kernel), None, 2, 0, 1, _x.shape[1]),
    ]
    CASES[f"conv_transpose{_n}d"] = case(_x, drawn(_x.shape[1], 7, *_kernel), drawn(7), 2, 1)
    CASES[f"upsample_nearest{_n}d"] = case(_x, tuple(n * 2 - 3 for n in _x.shape[2:]))
    CASES[f"upsample_nearest_exact{_n}d"] = case(_x, tuple(n * 2 - 3 for n in _x.shape[2:]))
CASES["fractional_max_pool2d"] = case(
    PLANE, (2, 2), (15, 13), drawn(2, 3, 2, low=0.1, high=0.9), dtypes=SINGLES
)
CASES["fractional_max_pool3d"] = case(
    VOLUME, (2, 2, 2), (5, 5, 6), drawn(1, 2, 3, low=0.1, high=0.9), dtypes=SINGLES
)

# -- interpolation: positions are computed in the input's own precision
for _name, _x in dict(linear1d=LINE, bilinear2d=PLANE, trilinear3d=VOLUME, bicubic2d=PLANE).items():
    CASES[f"upsample_{_name}"] = [
        case(_x, tuple(n * 2 - 3 for n in _x.shape[2:]), aligned, dtypes=SINGLES, bound=512)
        for aligned in (False, True)
    ]
for _name in ("bilinear2d_aa", "bicubic2d_aa", "lanczos2d_aa"):
    CASES[f"upsample_{_name}"] = case(PLANE, (17, 19), dtypes=SINGLES, bound=512)
CASES["affine_grid_generator"] = case(drawn(2, 2, 3), (2, 3, 37, 29), False, dtypes=SINGLES)
CASES["grid_sampler_2d"] = [
    case(PLANE, drawn(2, 31, 33, 2, low=-0.9, high=0.9), mode, 0, False, dtypes=SINGLES, bound=2048)
    for mode in range(3)
]
CASES["grid_sampler_3d"] = case(
    VOLUME, drawn(1, 7, 9, 11, 3, low=-0.9, high=0.9), 0, 0, False, dtypes=SINGLES, bound=2048
)

# -- norms
NORMED, WEIGHT, SHIFT = drawn(17, 12, 29), drawn(12, low=0.5), drawn(12)
MEAN, VARIANCE = drawn(12), drawn(12, low=0.5)


def channels(a: np.ndarray) -> np.ndarray:
    return a[:, None]


def normalised(a: np.ndarray, axes: tuple[int, ...], eps: float = 1e-5) -> np.ndarray:
    return (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + eps)


CASES |= {
    "batch_norm_training": case(NORMED, WEIGHT, SHIFT, MEAN, VARIANCE, momentum=0.1, eps=1e-5),
    "batch_norm_inference": case(
        *(NORMED, MEAN, VARIANCE, WEIGHT, SHIFT),
        eps=1e-5,
        numpy=lambda x, m, v, w, b, eps: (
            (x - channels(m)) / np.sqrt(channels(v) + eps) * channels(w) + channels(b)
        ),
    ),
    "layer_norm": case(
        *(drawn(67, 61), (61,), drawn(61), drawn(61), 1e-5),
        numpy=lambda x, s, w, b, eps: normalised(x, (-1,), eps) * w + b,
    ),
    "layer_statistics": case(drawn(67, 61), (61,), 1e-5),
    "rms_norm": case(
        *(drawn(67, 61), (61,), drawn(61), 1e-5),
        numpy=lambda x, s, w, eps: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w,
    ),
    "group_norm": case(
        *(NORMED, 3, WEIGHT, SHIFT, 1e-5),
        numpy=lambda x, g, w, b, eps: (
            normalised(x.reshape(17, 3, -1), (-1,), eps).reshape(x.shape) * channels(w) + channels(b)
        ),
    ),
    "group_statistics": case(NORMED, 3, 1e-5),
}

# -- attention, cells, bags
Q, K, VALUES = drawn(2, 3, 67, 16), drawn(2, 3, 61, 16), drawn(2, 3, 61, 16)


def attention_weights(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    return special.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -1)


GATES = {"rnn_tanh_cell": 1, "rnn_relu_cell": 1, "gru_cell": 3, "lstm_cell": 4}
CASES |= {
    "scaled_dot_product_attention": [
        case(Q, K, VALUES, numpy=lambda q, k, v: attention_weights(q, k, v) @ v),
        case(Q, Q, Q, None, 0.0, True),
    ],
    "attention_weights": case(Q, K, VALUES, numpy=attention_weights),
    **{
        name: [
            case(
                drawn(97, 13),
                [drawn(97, 11), drawn(97, 11)] if name == "lstm_cell" else drawn(97, 11),
                *(drawn(gates * 11, 13), drawn(gates * 11, 11), drawn(gates * 11), drawn(gates * 11)),
                bound=128,
            )
        ]
        for name, gates in GATES.items()
    },
    "_recurrent": case(
        *(drawn(29, 5, 13), drawn(1, 5, 11), drawn(1, 5, 11), None),
        [drawn(44, 13, low=-0.5, high=0.5), drawn(44, 11, low=-0.5, high=0.5), drawn(44), drawn(44)],
        *("LSTM", False, True, False, False),
        dtypes=SINGLES,
        bound=256,
    ),
    **{
        f"_{mode}_layer": case(
            *(drawn(29, 5, 13), drawn(5, 11), *([drawn(5, 11)] if mode == "lstm" else [None]), None),
            *(drawn(gates * 11, 13, low=-0.5, high=0.5), drawn(gates * 11, 11, low=-0.5, high=0.5)),
            *(drawn(gates * 11), drawn(gates * 11), None, False),
            dtypes=SINGLES,
            bound=256,
        )
        for mode, gates in {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}.items()
    },
    "_unpacked": case(drawn(67, 1031), fixed([31, 29, 7]), 31),
    "_packed": case(drawn(3, 31, 1031), fixed([31, 29, 7]), drawn(67, 2)),
    "bags": [
        case(drawn(53, 31), indices(67, below=53), fixed([0, 5, 5, 40]), False, mode, dtypes=SINGLES)
        for mode in (0, 1, 2)
    ],
}

# -- losses
SCORES, TARGETS = drawn(67, 61), drawn(67, 61)
CHANCES, LABELS = drawn(67, 61, low=0.05, high=0.95), indices(67, below=61)
SIGNS = fixed(np.where(np.arange(67 * 61).reshape(67, 61) % 3, 1.0, -1.0))


def crossed(a: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return -np.mean(special.log_softmax(a, 1)[np.arange(len(a)), labels])


CASES |= {
    "mse_loss": case(SCORES, TARGETS, numpy=lambda a, b: np.mean((a - b) ** 2)),
    "l1_loss": case(SCORES, TARGETS, numpy=lambda a, b: np.mean(np.abs(a - b))),
    "smooth_l1_loss": case(SCORES, TARGETS),
    "huber_loss": case(
        *(SCORES, TARGETS),
        numpy=lambda a, b: np.mean(np.where(np.abs(a - b) < 1, (a - b) ** 2 / 2, np.abs(a - b) - 0.5)),
    ),
    "soft_margin_loss": case(SCORES, SIGNS, numpy=lambda a, b: np.mean(np.logaddexp(0, -a * b))),
    "binary_cross_entropy": case(
        CHANCES, CHANCES, numpy=lambda x, y: -np.mean(y * np.log(x) + (1 - y) * np.log1p(-x))
    ),
    "binary_cross_entropy_with_logits": case(
        SCORES, CHANCES, numpy=lambda x, y: np.mean(np.logaddexp(0, x) - x * y)
    ),
    "kl_div": case(SCORES, CHANCES, numpy=lambda x, y: np.mean(y * (np.log(y) - x))),
    "poisson_nll_loss": case(SCORES, CHANCES, numpy=lambda x, y: np.mean(np.exp(x) - y * x)),
    "gaussian_nll_loss": case(
        SCORES, TARGETS, CHANCES, numpy=lambda x, y, v: np.mean(np.log(v) + (x - y) ** 2 / v) / 2
    ),
    "hinge_embedding_loss": case(
        SCORES, SIGNS, numpy=lambda x, y: np.mean(np.where(y > 0, x, np.maximum(0, 1 - x)))
    ),
    "margin_ranking_loss": case(
        SCORES, TARGETS, SIGNS, numpy=lambda a, b, y: np.mean(np.maximum(0, -y * (a - b)))
    ),
    "nll_loss": case(SCORES, LABELS, numpy=lambda a, y: -np.mean(a[np.arange(len(a)), y])),
    "cross_entropy": case(SCORES, LABELS, numpy=crossed),
    "soft_cross_entropy": case(
        SCORES, CHANCES, numpy=lambda a, y: -np.mean((y * special.log_softmax(a, 1)).sum(1))
    ),
    "multi_margin_loss": case(SCORES, LABELS, dtypes=SINGLES),
    "multilabel_margin_loss": case(
        SCORES, fixed(np.tile(np.r_[3, 0, 60, -1, np.zeros(57, int)], (67, 1))), dtypes=SINGLES
    ),
    "multilabel_soft_margin_loss": case(
        SCORES, fixed((np.arange(67 * 61).reshape(67, 61) % 2).astype(float))
    ),
    "linear_cross_entropy": case(drawn(67, 31), drawn(61, 31), LABELS, None, None, -100, 16, dtypes=SINGLES),
    "ctc_loss": case(
        drawn(50, 4, 11, low=-4.0, high=-1.0),
        fixed(np.random.default_rng(0).integers(1, 11, (4, 13))),
        *(fixed([50, 50, 45, 40]), fixed([13, 10, 7, 1]), 0, False),
        dtypes=SINGLES,
    ),
}
