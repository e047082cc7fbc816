"""xtensor: an eager tensor library with PyTorch's semantics whose kernels run on XLA."""

# Public names are imported `as` themselves, which is how type checkers know them for public.
# ruff: noqa: I001

from __future__ import annotations

import gc

# A collection in the midst of all these definitions, and JAX's, walks what has been loaded: 130 ms, and nothing to free.
_collecting = gc.isenabled()
_before = len(gc.get_objects())
gc.disable()

from importlib import import_module
from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any

from .xla import host

host.prepare()

from . import (
    autograd as autograd,
    capture,
    comparing as comparing,
    compat as compat,
    explain as explain,
    fft as fft,
    gradients as gradients,
    interop as interop,
    linalg as linalg,
    nn as nn,
    ops as ops,
    optim as optim,
    plans as plans,
    quantized as quantized,
    serialization as serialization,
    sparse as sparse,
    stored as stored,
    special as special,
    utils as utils,
)
from .devices import current as _current, device as device, set_default_device as set_default_device
from .dtypes import (
    bfloat16 as bfloat16,
    bool as bool,
    can_cast as can_cast,
    cdouble as cdouble,
    cfloat as cfloat,
    channels_last as channels_last,
    channels_last_3d as channels_last_3d,
    complex64 as complex64,
    complex128 as complex128,
    contiguous_format as contiguous_format,
    double as double,
    dtype as dtype,
    finfo as finfo,
    float as float,
    float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz,
    float8_e8m0fnu as float8_e8m0fnu,
    complex32 as complex32,
    chalf as chalf,
    bits1x8 as bits1x8,
    bits2x4 as bits2x4,
    bits4x2 as bits4x2,
    bits8 as bits8,
    bits16 as bits16,
    float4_e2m1fn_x2 as float4_e2m1fn_x2,
    int1 as int1,
    int2 as int2,
    int3 as int3,
    int4 as int4,
    int5 as int5,
    int6 as int6,
    int7 as int7,
    uint1 as uint1,
    uint2 as uint2,
    uint3 as uint3,
    uint4 as uint4,
    uint5 as uint5,
    uint6 as uint6,
    uint7 as uint7,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    get_default_dtype as get_default_dtype,
    half as half,
    iinfo as iinfo,
    int as int,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    jagged as jagged,
    layout as layout,
    legacy_contiguous_format as legacy_contiguous_format,
    long as long,
    memory_format as memory_format,
    per_channel_affine as per_channel_affine,
    per_channel_affine_float_qparams as per_channel_affine_float_qparams,
    per_channel_symmetric as per_channel_symmetric,
    per_tensor_affine as per_tensor_affine,
    per_tensor_symmetric as per_tensor_symmetric,
    preserve_format as preserve_format,
    promote_types as promote_types,
    qint8 as qint8,
    qint32 as qint32,
    qscheme as qscheme,
    quint2x4 as quint2x4,
    quint4x2 as quint4x2,
    quint8 as quint8,
    set_default_dtype as set_default_dtype,
    short as short,
    sparse_bsc as sparse_bsc,
    sparse_bsr as sparse_bsr,
    sparse_coo as sparse_coo,
    sparse_csc as sparse_csc,
    sparse_csr as sparse_csr,
    strided as strided,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from .engine import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
    is_anomaly_enabled as is_anomaly_enabled,
    is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from .errors import help as help
from .operators.generator import *
from .operators.precision import *
from .ops.create.creation import *
from .ops.create.distributions import *
from .ops.create.ingest import *
from .ops.create.random import *
from .ops.create.ranges import *
from .ops.index.index_rows import *
from .ops.index.indexing import *
from .ops.index.indices import *
from .ops.index.masks import *
from .ops.index.scatter import *
from .ops.linalg.added_products import *
from .ops.linalg.decompositions import *
from .ops.linalg.einsum import *
from .ops.linalg.least_squares import *
from .ops.linalg.linear_algebra import *
from .ops.linalg.low_rank import *
from .ops.linalg.lu_factors import *
from .ops.linalg.matmul import *
from .ops.linalg.matrices import *
from .ops.linalg.reflectors import *
from .ops.linalg.tensor_systems import *
from .ops.network.adaptive_pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from .ops.network.attention import *
from .ops.network.class_losses import *
from .ops.network.convolution import *
from .ops.network.ctc import ctc_loss as ctc_loss
from .ops.network.grids import (
    affine_grid_generator as affine_grid_generator,
    grid_sampler as grid_sampler,
    grid_sampler_2d as grid_sampler_2d,
    grid_sampler_3d as grid_sampler_3d,
)
from .ops.network.losses import *
from .ops.network.normalization import (
    group_norm as group_norm,
    layer_norm as layer_norm,
    native_batch_norm as native_batch_norm,
    native_group_norm as native_group_norm,
    native_layer_norm as native_layer_norm,
    rms_norm as rms_norm,
)
from .ops.network.pooling import *
from .ops.network.cells import *
from .ops.network.recurrent import *
from .ops.pointwise.activation_functions import *
from .ops.pointwise.activations import *
from .ops.pointwise.arithmetic import *
from .ops.pointwise.clamping import *
from .ops.pointwise.comparison import *
from .ops.pointwise.elementwise import *
from .ops.pointwise.gamma_functions import *
from .ops.pointwise.powers import *
from .ops.pointwise.special import *
from .ops.reduce.covariance import *
from .ops.reduce.cumulative import *
from .ops.reduce.distances import *
from .ops.reduce.extrema import *
from .ops.reduce.hashing import *
from .ops.reduce.histograms import *
from .ops.reduce.norms import *
from .ops.reduce.reductions import *
from .ops.reduce.segments import *
from .ops.reduce.slopes import *
from .ops.reduce.sorting import *
from .ops.reduce.statistics import *
from .ops.shape.copies import *
from .ops.shape.joining import *
from .ops.shape.metadata import *
from .ops.shape.other_layouts import *
from .ops.shape.rearranging import *
from .ops.shape.reinterpret import *
from .ops.shape.shapes import *
from .ops.shape.shuffles import *
from .ops.shape.view_scatter import *
from .ops.signal.fourier_frames import *
from .ops.signal.padding import *
from .ops.signal.windows import *
from .ops.tensor.aten import *
from .ops.tensor.conversion import *
from .ops.tensor.export import *
from .ops.tensor.queries import *
from .ops.tensor.scalars import *
from .printing import get_printoptions as get_printoptions, set_printoptions as set_printoptions
from .quantized.builds import *
from .quantized.construct import *
from .quantized.fake import *
from .serialization import load as load, save as save
from .sparse.construct import (
    sparse_bsc_tensor as sparse_bsc_tensor,
    sparse_bsr_tensor as sparse_bsr_tensor,
    sparse_compressed_tensor as sparse_compressed_tensor,
    sparse_coo_tensor as sparse_coo_tensor,
    sparse_csc_tensor as sparse_csc_tensor,
    sparse_csr_tensor as sparse_csr_tensor,
)
from .sparse.functions import (
    ccol_indices_copy as ccol_indices_copy,
    col_indices_copy as col_indices_copy,
    crow_indices_copy as crow_indices_copy,
    dsmm as dsmm,
    hsmm as hsmm,
    hspmm as hspmm,
    indices_copy as indices_copy,
    resize_as_sparse_ as resize_as_sparse_,
    row_indices_copy as row_indices_copy,
    saddmm as saddmm,
    smm as smm,
    spmm as spmm,
    sspaddmm as sspaddmm,
    values_copy as values_copy,
)
from .tensor import Size as Size, Tensor as Tensor
from .xla import logs

if TYPE_CHECKING:
    from . import (
        amp as amp,
        array_api as array_api,
        compiler as compiler,
        distributed as distributed,
        distributions as distributions,
        export as export,
        func as func,
        fx as fx,
        jax as jax,
        library as library,
        masked as masked,
        memory as memory,
        nested as nested,
        profiler as profiler,
        return_types as return_types,
        selfcheck as selfcheck,
        signal as signal,
        testing as testing,
    )
    from .amp import GradScaler as GradScaler
    from .amp.autocast_mode import *
    from .compat import (
        accelerator as accelerator,
        ao as ao,
        backends as backends,
        cpu as cpu,
        cuda as cuda,
        functional as functional,
        futures as futures,
        hub as hub,
        jit as jit,
        mps as mps,
        multiprocessing as multiprocessing,
        onnx as onnx,
        overrides as overrides,
        settings as settings,
        torch_version as torch_version,
        types as types,
        version as version,
    )
    from .compat.legacy import *
    from .compat.settings import *
    from .compiler import compile as compile
    from .func import vmap as vmap
    from .memory import (
        memory_snapshot as memory_snapshot,
        memory_summary as memory_summary,
        record_memory as record_memory,
    )
    from .functions import *  # the signatures of what declarations make
    from .xla import compile_cache as compile_cache

logs.from_environment()
if _before < 50_000:
    # The program has hardly begun, and what was defined stays: later collections need not walk its 150,000 objects, which took 0.15 s at each full one.
    gc.freeze()
if _collecting:
    gc.enable()
del gc, _before, _collecting

newaxis = None
get_default_device = _current
__version__ = "0.1.0"
__all__ = ["Size", "Tensor"]

# What is imported when it is first asked for: modules, and names with the modules that hold them.
_MODULES = compat.HOMES.keys() | frozenset(
    "amp array_api compiler distributed distributions export func fx jax library masked memory nested profiler return_types selfcheck "
    "signal testing".split()
)
_HOLDERS = {
    "amp.autocast_mode": "autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache "
    "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled "
    "is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype "
    "set_autocast_enabled set_autocast_gpu_dtype",
    "amp.grad_scaler": "GradScaler",
    "assertions": "_assert _check _check_index _check_is_size _check_not_implemented _check_tensor_all "
    "_check_tensor_all_with _check_type _check_value _check_with",
    "compiler": "compile",
    "func": "vmap",
    "memory": "memory_snapshot memory_summary record_memory",
    "overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
    "control_flow": "associative_scan cond map scan while_loop",
    "symbolic": "SymBool SymFloat SymInt sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum",
    "ops.tensor.typed_storages": "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage "
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


# `Module.compile` and `ops.aten` reach what is imported when it is first used.
capture.compiler.append(lambda *args, **options: __getattr__("compiler").compiled(*args, **options))
ops.namespaces.append(lambda: __getattr__("library").ops)


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """`xtensor.array_api`, the array API standard's namespace; ValueError for a version of the standard that it has not."""
    return __getattr__("array_api").namespace(api_version)


Tensor.__array_namespace__ = _array_namespace  # pyright: ignore[reportAttributeAccessIssue]


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_HOLDER_OF, *__getattr__("legacy").INPLACE})
