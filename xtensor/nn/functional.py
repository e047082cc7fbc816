"""Layers as functions: `xtensor.nn.functional`. The operators themselves are declared under `ops`."""

# ruff: noqa: F401, F403  # a public face: everything is imported to be found here

from ..ops.index.bags import embedding_bag
from ..ops.index.embedding import *
from ..ops.linalg.grouped_products import *
from ..ops.linalg.matmul import bilinear, linear
from ..ops.network.adaptive_pooling import *
from ..ops.network.attention import scaled_dot_product_attention
from ..ops.network.class_losses import *
from ..ops.network.convolution import *
from ..ops.network.ctc import ctc_loss
from ..ops.network.fractional_pooling import *
from ..ops.network.grids import affine_grid, grid_sample
from ..ops.network.interpolation import *
from ..ops.network.linear_losses import linear_cross_entropy
from ..ops.network.losses import *
from ..ops.network.multihead import multi_head_attention_forward
from ..ops.network.normalization import *
from ..ops.network.pooling import *
from ..ops.pointwise.activation_functions import (
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
from ..ops.pointwise.activations import hardshrink
from ..ops.pointwise.elementwise import sigmoid, tanh
from ..ops.reduce.distances import (
    cosine_embedding_loss,
    cosine_similarity,
    pairwise_distance,
    pdist,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ..ops.shape.shuffles import *
from ..ops.signal.folding import fold
from ..ops.signal.folding import unfold_blocks as unfold
from ..ops.signal.padding import pad
from .dropout import *

# Functions are pickled by name, and not all of these are found in `xtensor` itself.
for _name, _function in list(globals().items()):
    if getattr(_function, "__module__", None) == "xtensor" and getattr(_function, "__name__", None) == _name:
        _function.__module__ = __name__
