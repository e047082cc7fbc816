"""Layers as functions: `xtensor.nn.functional`. The operators themselves are declared under `ops`."""

# ruff: noqa: F401, F403  # a public face: everything is imported to be found here

from __future__ import annotations

from ..ops.activation_functions import (
    celu,
    celu_,
    elu,
    elu_,
    gelu,
    glu,
    gumbel_softmax,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    relu_,
    rrelu,
    rrelu_,
    selu,
    selu_,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
    threshold_,
)
from ..ops.activations import hardshrink
from ..ops.adaptive_pooling import *
from ..ops.attention import scaled_dot_product_attention
from ..ops.bags import embedding_bag
from ..ops.class_losses import *
from ..ops.convolution import *
from ..ops.ctc import ctc_loss
from ..ops.distances import (
    cosine_embedding_loss,
    cosine_similarity,
    pairwise_distance,
    pdist,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ..ops.elementwise import sigmoid, tanh
from ..ops.embedding import *
from ..ops.folding import fold
from ..ops.folding import unfold_blocks as unfold
from ..ops.fractional_pooling import *
from ..ops.grids import affine_grid, grid_sample
from ..ops.grouped_products import *
from ..ops.interpolation import *
from ..ops.linear_losses import linear_cross_entropy
from ..ops.losses import *
from ..ops.matmul import bilinear, linear
from ..ops.multihead import multi_head_attention_forward
from ..ops.normalization import *
from ..ops.padding import pad
from ..ops.pooling import *
from ..ops.shuffles import *
from .dropout import *

# Functions are pickled by name, and not all of these are found in `xtensor` itself.
for _name, _function in list(globals().items()):
    if getattr(_function, "__module__", None) == "xtensor" and getattr(_function, "__name__", None) == _name:
        _function.__module__ = __name__
