"""What is quantised here: the patterns of PyTorch's native backends, which differ in how weights are observed alone."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from typing import Any

from ..... import dtypes
from .....nn import functional as F
from .....nn.modules import (
    activation,
    batchnorm,
    conv,
    dropout,
    instancenorm,
    linear,
    normalization,
    pixelshuffle,
    pooling,
    rnn,
    rnncell,
    sparse,
)
from .....nn.modules.linear import Identity
from ...nn import intrinsic, qat
from ...nn.intrinsic import qat as intrinsic_qat
from ..fuser_method_mappings import METHODS
from ..quantization_mappings import DEFAULT_QAT_MODULE_MAPPINGS
from .backend_config import BackendConfig, BackendPatternConfig, DTypeConfig, ObservationType

__all__ = [
    "get_fbgemm_backend_config",
    "get_native_backend_config",
    "get_native_backend_config_dict",
    "get_onednn_backend_config",
    "get_qnnpack_backend_config",
    "get_x86_backend_config",
]

WEIGHTED = DTypeConfig(dtypes.quint8, dtypes.quint8, dtypes.qint8, dtypes.float32)
DYNAMIC = DTypeConfig(dtypes.quint8, dtypes.float32, dtypes.qint8, dtypes.float32, True)
HALF = DTypeConfig(dtypes.float16, dtypes.float32, dtypes.float16, dtypes.float32, True)
PLAIN = DTypeConfig(dtypes.quint8, dtypes.quint8)
NORMED = DTypeConfig(dtypes.quint8, dtypes.quint8, dtypes.float32, dtypes.float32)
TABLES = (
    DTypeConfig(dtypes.float32, dtypes.float32, dtypes.quint8),
    DTypeConfig(dtypes.float32, dtypes.float32, dtypes.quint4x2),
)
OWN = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
SHARED = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
UNSEEN = ObservationType.INPUT_OUTPUT_NOT_OBSERVED

KEEPING_MODULES = (
    *[getattr(pooling, f"{kind}Pool{n}d") for kind in ("AdaptiveAvg", "Avg", "Max") for n in (1, 2, 3)],
    activation.Hardtanh,
    Identity,
    pixelshuffle.PixelShuffle,
    pixelshuffle.PixelUnshuffle,
    activation.ReLU,
    activation.ReLU6,
)
"""Modules whose results are numbers, or means, of what they are given."""
KEEPING_FUNCTIONS = (
    "adaptive_avg_pool2d adaptive_avg_pool3d hardtanh hardtanh_ interpolate max_pool1d max_pool2d max_pool3d relu relu6 "
    "avg_pool2d avg_pool3d".split()
)
"""Of `nn.functional`, likewise."""
KEEPING_OPERATORS = (
    "cat adaptive_avg_pool1d pixel_shuffle pixel_unshuffle avg_pool1d clamp flatten mean narrow repeat_interleave transpose squeeze "
    "stack unsqueeze".split()
)
KEEPING_METHODS = (
    "contiguous clamp detach detach_ mean permute repeat repeat_interleave reshape resize_ relu relu_ squeeze squeeze_ transpose "
    "unsqueeze unsqueeze_ view".split()
)
OWN_MODULES = (
    activation.ELU,
    activation.LeakyReLU,
    activation.Hardswish,
    instancenorm.InstanceNorm1d,
    instancenorm.InstanceNorm2d,
    instancenorm.InstanceNorm3d,
    dropout.Dropout,
    activation.PReLU,
    batchnorm.BatchNorm2d,
    batchnorm.BatchNorm3d,
    intrinsic.BNReLU2d,
    intrinsic.BNReLU3d,
)
BOUNDED_MODULES = (activation.Hardsigmoid, activation.Sigmoid, activation.Softmax, activation.Tanh)


def library() -> Any:
    """The package, whose functions are targets of graphs."""
    return sys.modules[__name__.partition(".")[0]]


def config(pattern: Any, dtype_configs: Any, how: ObservationType = OWN) -> BackendPatternConfig:
    """A pattern with its dtypes."""
    return BackendPatternConfig(pattern).set_dtype_configs(list(dtype_configs)).set_observation_type(how)


def fusions() -> Iterator[BackendPatternConfig]:
    """Modules that become one; ReLU may be a function."""
    configs = {conv.Conv1d: (WEIGHTED,), linear.Linear: (WEIGHTED, DYNAMIC, HALF)}
    for kinds, method in METHODS.items():
        dtype_configs = configs.get(kinds[0], (PLAIN,) if kinds[0] in OWN_MODULES else (WEIGHTED,))
        lasts = (activation.ReLU, F.relu) if kinds[-1] is activation.ReLU else (kinds[-1],)
        for last in lasts:
            yield config((*kinds[:-1], last), dtype_configs).set_fuser_method(method)


def weighted() -> Iterator[BackendPatternConfig]:
    """Layers with a weight, as they are, fused, and in training."""
    linears = (linear.Linear, qat.Linear, intrinsic.LinearReLU, intrinsic_qat.LinearReLU)
    norms = (intrinsic.LinearBn1d, intrinsic_qat.LinearBn1d)
    for kind in (*linears, *norms):
        yield config(kind, (WEIGHTED, DYNAMIC, HALF)).set_qat_module(DEFAULT_QAT_MODULE_MAPPINGS.get(kind))
    names = [
        f"{kind}{n}d"
        for n in (1, 2, 3)
        for kind in ("Conv", "ConvTranspose", "ConvReLU", "ConvBn", "ConvBnReLU")
    ]
    for holder in (conv, qat, intrinsic, intrinsic_qat):
        for name in names:
            kind = getattr(holder, name, None)
            if kind is not None:
                yield config(kind, (WEIGHTED,)).set_qat_module(DEFAULT_QAT_MODULE_MAPPINGS.get(kind))
    for function in (F.linear, *[getattr(F, f"conv{n}d") for n in (1, 2, 3)]):
        dtype_configs = (WEIGHTED, DYNAMIC, HALF) if function is F.linear else (WEIGHTED,)
        yield config(function, dtype_configs)._set_input_type_to_index({"weight": 1, "bias": 2})
        for last in (activation.ReLU, F.relu):
            yield config((function, last), dtype_configs)
    for kind in (rnncell.GRUCell, rnncell.LSTMCell, rnncell.RNNCell, rnn.LSTM, rnn.GRU):
        yield config(kind, (DYNAMIC, HALF))
    for name in ("Embedding", "EmbeddingBag"):
        yield config(getattr(sparse, name), TABLES).set_qat_module(getattr(qat, name))
        yield config(getattr(qat, name), TABLES)


def others() -> Iterator[BackendPatternConfig]:
    """Sums and products, functions of numbers, and what moves them."""
    own = library()
    arguments = {0: OWN, 1: SHARED, 2: OWN}
    for function in (operator.add, own.add, operator.mul, own.mul):
        for last in (activation.ReLU, F.relu, own.relu):
            yield config((function, last), (PLAIN,))._set_num_tensor_args_to_observation_type(arguments)
        yield config(function, (PLAIN,))._set_num_tensor_args_to_observation_type(arguments)
    functions = (
        F.elu,
        F.hardswish,
        F.leaky_relu,
        F.dropout,
        F.hardsigmoid,
        own.matmul,
        own.sigmoid,
        own.tanh,
    )
    methods = ("hardsigmoid", "hardsigmoid_", "sigmoid", "sigmoid_", "tanh", "tanh_")
    for kind in (*OWN_MODULES, *BOUNDED_MODULES, *functions, *methods):
        yield config(kind, (PLAIN,))
    yield config(F.group_norm, (PLAIN,))._set_input_type_to_index({"weight": 2, "bias": 3})
    yield config(F.instance_norm, (PLAIN,))._set_input_type_to_index({"weight": 3, "bias": 4})
    yield config(normalization.LayerNorm, (NORMED,))
    yield config(F.layer_norm, (NORMED,))._set_input_type_to_index({"weight": 2, "bias": 3})
    keeping = [getattr(F, name) for name in KEEPING_FUNCTIONS] + [
        getattr(own, name) for name in KEEPING_OPERATORS
    ]
    for kind in (*KEEPING_MODULES, *keeping, operator.floordiv, *KEEPING_METHODS):
        yield config(kind, (PLAIN,), SHARED)
    for method in ("shape", "size"):
        yield config(method, (PLAIN,), UNSEEN)


def get_native_backend_config() -> BackendConfig:
    """What `quantize_fx` quantises unless it is told otherwise."""
    return BackendConfig("native").set_backend_pattern_configs((*fusions(), *weighted(), *others()))


def get_native_backend_config_dict() -> dict[str, Any]:
    """`get_native_backend_config` as a dict."""
    return get_native_backend_config().to_dict()


def get_fbgemm_backend_config() -> BackendConfig:
    """The same patterns; PyTorch's servers' backend."""
    return get_native_backend_config().set_name("fbgemm")


def get_x86_backend_config() -> BackendConfig:
    """The same patterns; PyTorch's backend of x86."""
    return get_native_backend_config().set_name("x86")


def get_onednn_backend_config() -> BackendConfig:
    """The same patterns; PyTorch's backend of oneDNN fuses more."""
    return get_native_backend_config().set_name("onednn")


def get_qnnpack_backend_config() -> BackendConfig:
    """The same patterns; PyTorch's backend of phones."""
    return get_native_backend_config().set_name("qnnpack")
