"""xtensor: an eager tensor library with PyTorch's semantics whose kernels run on XLA."""

from __future__ import annotations

import gc
from importlib import import_module
from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any

from . import host

# A full collection in the middle of all these definitions walks what JAX has loaded: 70 ms, and nothing to free.
_collecting = gc.isenabled()
gc.disable()
host.prepare()

from . import (
    autograd,
    comparing,
    fft,
    gradients,
    interop,
    linalg,
    nn,
    optim,
    random,
    serialization,
    special,
    utils,
)
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
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
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
from .ops.adaptive_pooling import adaptive_avg_pool1d
from .ops.added_products import *
from .ops.arithmetic import *
from .ops.aten import *
from .ops.attention import *
from .ops.clamping import *
from .ops.class_losses import *
from .ops.comparison import *
from .ops.conversion import *
from .ops.convolution import *
from .ops.copies import *
from .ops.covariance import *
from .ops.creation import *
from .ops.ctc import ctc_loss
from .ops.cumulative import *
from .ops.decompositions import *
from .ops.distances import *
from .ops.distributions import *
from .ops.einsum import *
from .ops.elementwise import *
from .ops.export import *
from .ops.extrema import *
from .ops.fourier_frames import *
from .ops.gamma_functions import *
from .ops.generator import *
from .ops.grids import affine_grid_generator, grid_sampler, grid_sampler_2d, grid_sampler_3d
from .ops.hashing import *
from .ops.histograms import *
from .ops.index_rows import *
from .ops.indexing import *
from .ops.indices import *
from .ops.ingest import *
from .ops.joining import *
from .ops.least_squares import *
from .ops.linear_algebra import *
from .ops.losses import *
from .ops.low_rank import *
from .ops.lu_factors import *
from .ops.masks import *
from .ops.matmul import *
from .ops.matrices import *
from .ops.metadata import *
from .ops.normalization import (
    group_norm,
    layer_norm,
    native_batch_norm,
    native_group_norm,
    native_layer_norm,
    rms_norm,
)
from .ops.norms import *
from .ops.other_layouts import *
from .ops.padding import *
from .ops.pooling import *
from .ops.powers import *
from .ops.precision import *
from .ops.queries import *
from .ops.random import *
from .ops.ranges import *
from .ops.rearranging import *
from .ops.recurrent import *
from .ops.reductions import *
from .ops.reflectors import *
from .ops.reinterpret import *
from .ops.scalars import *
from .ops.scatter import *
from .ops.segments import *
from .ops.shapes import *
from .ops.shuffles import *
from .ops.slopes import *
from .ops.sorting import *
from .ops.special import *
from .ops.statistics import *
from .ops.tensor_systems import *
from .ops.view_scatter import *
from .ops.windows import *
from .printing import get_printoptions, set_printoptions
from .serialization import load, save
from .tensor import Size, Tensor

if TYPE_CHECKING:
    from . import (
        accelerator,
        amp,
        ao,
        backends,
        compiler,
        cpu,
        cuda,
        distributed,
        distributions,
        func,
        functional,
        fx,
        hub,
        jit,
        library,
        masked,
        mps,
        multiprocessing,
        onnx,
        overrides,
        profiler,
        return_types,
        selfcheck,
        settings,
        signal,
        sparse,
        testing,
        torch_version,
        types,
        version,
    )
    from .amp import GradScaler
    from .amp.autocast_mode import *
    from .compiler import compile
    from .func import vmap
    from .functions import *  # the signatures of what declarations make
    from .legacy import *
    from .settings import *

if _collecting:
    gc.enable()
del gc, _collecting

newaxis = None
__version__ = "0.1.0"
__all__ = ["Size", "Tensor"]

# What is imported when it is first asked for: modules, and names with the modules that hold them.
_MODULES = frozenset(
    "__future__ accelerator amp ao backends compiler cpu cuda distributed distributions func functional foreach fx hub jit legacy "
    "library masked mps multiprocessing onnx overrides profiler return_types selfcheck settings signal sparse testing torch_version types version xpu".split()
)
_HOLDERS = {
    "amp.autocast_mode": "autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache "
    "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled "
    "is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype "
    "set_autocast_enabled set_autocast_gpu_dtype",
    "amp.grad_scaler": "GradScaler",
    "assertions": "_assert _check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_type "
    "_check_value _check_with",
    "compiler": "compile",
    "func": "vmap",
    "overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
    "symbolic": "SymBool SymFloat SymInt cond sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt "
    "sym_sum while_loop",
    "ops.typed_storages": "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage "
    "DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage TypedStorage",
    "legacy": "AcceleratorError Event OutOfMemoryError Stream UntypedStorage alpha_dropout alpha_dropout_ "
    " convolution dropout dropout_ embedding_renorm_ feature_alpha_dropout feature_alpha_dropout_ "
    "feature_dropout feature_dropout_ frobenius_norm from_file get_device get_device_module has_lapack has_mkl "
    "has_openmp has_spectral norm_except_dim nuclear_norm set_anomaly_enabled typename",
    "settings": "are_deterministic_algorithms_enabled get_deterministic_debug_mode get_num_interop_threads "
    "get_num_threads is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_default_tensor_type "
    "set_deterministic_debug_mode set_flush_denormal set_num_interop_threads set_num_threads set_warn_always "
    "use_deterministic_algorithms",
}
_HOLDER_OF = {name: holder for holder, names in _HOLDERS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOLDER_OF:
        found = getattr(import_module(f".{_HOLDER_OF[name]}", __name__), name)
    elif name.startswith("_foreach_"):
        found = __getattr__("foreach").named(name)
    elif name.endswith("_") and not name.startswith("_") and name in __getattr__("legacy").INPLACE:
        found = getattr(__getattr__("legacy"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_HOLDER_OF, *__getattr__("legacy").INPLACE})
