"""What is taken from inside JAX, in this file alone: each part is None where a later JAX has it no more.

`jitting`: how `jax.jit` makes its compiled call. `caching`: the seat that JAX has for a compile cache, and its thresholds.
`read_flags`: makes XLA read `XLA_FLAGS` now, once and for all. `PLATFORM_LOG`: the logger that tells of platforms which do not start.
`started`: tells whether XLA runs in this process; `started_clients`: its clients by platform, which a call starts.
`programs`: executables, as JAX's compiled call takes them over and as bytes.
`lowering`: where JAX makes the MLIR context that a program is lowered in. `compiling`: where it makes the options that one is compiled with.
`evaluate_dimension`: the value of a symbolic size, given those of its variables. `place_array`: an array of JAX's on a device, made of
NumPy's, in a tenth of the time of `jax.device_put`. `scan_counts`: how many operands of a scan stay, and how many it carries.
Whoever takes a part must do without it where it is missing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .cache import bounded

__all__ = [
    "PLATFORM_LOG",
    "CacheInterface",
    "caching",
    "compiling",
    "evaluate_dimension",
    "jitting",
    "lowering",
    "place_array",
    "programs",
    "read_flags",
    "scan_counts",
    "started",
    "started_clients",
]

PLATFORM_LOG = "jax._src.xla_bridge"

jitting: Any = None
caching: Any = None
programs: Any = None
read_flags: Any = None
started: Any = None
started_clients: Any = None
lowering: Any = None
compiling: Any = None
evaluate_dimension: Any = None
place_array: Any = None
CacheInterface: Any = object

try:
    from jax._src.interpreters.pxla import JitGlobalCppCacheKeys, cc_shard_arg
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateImportUsage]
    from jax._src.pjit import _get_cpp_global_cache
    from jax._src.tree_util import dispatch_registry

    jitting = SimpleNamespace(
        keys=JitGlobalCppCacheKeys,
        make=_jax.pjit,
        registry=dispatch_registry,
        shard=cc_shard_arg,
        signatures=_get_cpp_global_cache,
    )
except (ImportError, AttributeError):
    pass

try:
    from jax._src import compilation_cache
    from jax._src.compilation_cache_interface import CacheInterface
    from jax._src.config import (
        persistent_cache_min_compile_time_secs,
        persistent_cache_min_entry_size_bytes,
    )

    caching = SimpleNamespace(
        seat=compilation_cache,
        seconds=persistent_cache_min_compile_time_secs,
        size=persistent_cache_min_entry_size_bytes,
    )
except ImportError:
    pass

try:
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateImportUsage]

    CompileOptions = _jax.CompileOptions

    def _read_flags() -> None:
        """XLA reads its flags where first asked for an option, and never again."""
        _ = CompileOptions().executable_build_options.debug_options

    read_flags = _read_flags
except (ImportError, AttributeError):
    pass

try:
    from jax._src.xla_bridge import backends as started_clients
    from jax._src.xla_bridge import backends_are_initialized as started
except ImportError:
    pass

try:
    from jax._src import compilation_cache, core
    from jax._src.array import ArrayImpl
    from jax._src.config import trace_context
    from jax._src.interpreters import pxla
    from jax._src.lax.linalg import initialize_lapack
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateImportUsage]
    from jax._src.sharding_impls import SingleDeviceSharding
    from jax._src.tree_util import dispatch_registry

    programs = SimpleNamespace(
        Array=ArrayImpl,
        DeviceList=_jax.DeviceList,
        Executable=pxla.MeshExecutable,
        Execute=pxla.ExecuteReplicated,
        Fast=pxla.MeshExecutableFastpathData,
        Inputs=pxla.InputsHandler,
        Signatures=_jax.PjitFunctionCache,
        Single=SingleDeviceSharding,
        compile_options=lambda: _jax.CompileOptions().SerializeAsString(),
        context=trace_context,
        decompress=compilation_cache.decompress_executable,
        free=lambda array, aval: ArrayImpl(aval, array.sharding, [array], committed=False, _skip_checks=True),
        is_clean=core.trace_state_clean,
        lapack=initialize_lapack,
        packed=lambda executable: compilation_cache.compress_executable(
            compilation_cache.combine_executable_and_time(executable.serialize(), 0)
        ),
        parts=compilation_cache.extract_executable_and_time,
        registry=dispatch_registry,
        result_handler=pxla.global_aval_to_result_handler,
    )
except (ImportError, AttributeError):
    pass

try:
    from jax._src.interpreters import mlir

    lowering = SimpleNamespace(seat=mlir, make=mlir.make_ir_context)
except (ImportError, AttributeError):
    pass

try:
    from jax._src.interpreters import pxla
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateImportUsage]

    compiling = SimpleNamespace(
        seat=pxla, make=pxla.create_compile_options, parse=_jax.CompileOptions.ParseFromString
    )
except (ImportError, AttributeError):
    pass

try:
    from jax._src.export.shape_poly import _DimExpr

    evaluate_dimension = _DimExpr._evaluate
except (ImportError, AttributeError):
    pass

try:
    from jax._src.lib import xla_client  # pyright: ignore[reportPrivateImportUsage]
    from jax.core import ShapedArray

    _put = (
        xla_client.batched_device_put
    )  # beneath the function of this name, which first looks for arrays of JAX's
    _form = bounded(1024)(ShapedArray)

    def _place_array(array: Any, sharding: Any, committed: bool) -> Any:
        """An array on the one device of a sharding."""
        aval = _form(array.shape, array.dtype)
        return _put(aval, sharding, [array], list(sharding.device_set), committed)

    place_array = _place_array
except (ImportError, AttributeError):
    pass


def scan_counts(params: Any) -> tuple[int, int]:
    """How many operands of the primitive `scan` are constants and how many it carries on, which JAX tells by trees from 0.12 on."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carries, _ = params["ft_in"].unpack()
    return len(consts), len(carries)
