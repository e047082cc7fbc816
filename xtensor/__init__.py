"""xtensor: an eager tensor library with PyTorch's semantics whose kernels run on XLA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import autograd, gradients, interop, linalg, nn, optim, random, utils
from .devices import current as get_default_device
from .devices import device, set_default_device
from .dtypes import (
    bfloat16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    channels_last,
    channels_last_3d,
    complex64,
    complex128,
    contiguous_format,
    double,
    dtype,
    finfo,
    float,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int,
    int8,
    int16,
    int32,
    int64,
    layout,
    long,
    memory_format,
    preserve_format,
    promote_types,
    set_default_dtype,
    short,
    strided,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .engine import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .ops.activation_functions import *
from .ops.activations import *
from .ops.adaptive_pooling import *
from .ops.arithmetic import *
from .ops.attention import *
from .ops.clamping import *
from .ops.class_losses import *
from .ops.comparison import *
from .ops.conversion import *
from .ops.convolution import *
from .ops.creation import *
from .ops.cumulative import *
from .ops.decompositions import *
from .ops.distances import *
from .ops.distributions import *
from .ops.einsum import *
from .ops.elementwise import *
from .ops.embedding import *
from .ops.export import *
from .ops.extrema import *
from .ops.generator import *
from .ops.index_rows import *
from .ops.indexing import *
from .ops.ingest import *
from .ops.joining import *
from .ops.linear_algebra import *
from .ops.losses import *
from .ops.masks import *
from .ops.matmul import *
from .ops.matrices import *
from .ops.metadata import *
from .ops.normalization import *
from .ops.norms import *
from .ops.padding import *
from .ops.pooling import *
from .ops.powers import *
from .ops.precision import *
from .ops.queries import *
from .ops.random import *
from .ops.ranges import *
from .ops.rearranging import *
from .ops.reductions import *
from .ops.reinterpret import *
from .ops.scalars import *
from .ops.scatter import *
from .ops.shapes import *
from .ops.sorting import *
from .ops.special import *
from .ops.statistics import *
from .ops.view_scatter import *
from .printing import get_printoptions, set_printoptions
from .tensor import Size, Tensor

if TYPE_CHECKING:  # the signatures of what declarations make
    from .functions import *

__version__ = "0.1.0"
__all__ = ["Size", "Tensor"]
