"""What public programs and packages take from PyTorch's private modules, as far as it means something here."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib.util
import os
import re
import sys
import traceback
import types
import weakref
from collections.abc import Callable
from typing import Any, Final

import jax
import jaxlib.version

from .. import devices, dtypes, geometry
from ..amp.autocast_mode import autocast
from ..autograd.function import Function
from ..compat import cuda
from ..compat.backends.cpu import get_cpu_capability
from ..compat.backends.cuda import SDPAParams
from ..compat.jit import fork, wait
from ..compat.jit.annotations import BroadcastingList2
from ..compat.jit.graphs import get_trace_graph, tracing_state
from ..compat.overrides import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    handle_torch_function,
    has_torch_function,
)
from ..compiler import is_compiling
from ..compiling.modules import OptimizedModule
from ..control_flow import associative_scan, cond, scan, while_loop
from ..control_flow import map as map_over
from ..distributions.continuous import precision_to_scale_tril
from ..distributions.distribution import sum_rightmost
from ..distributions.transformed import ExpRelaxedCategorical, LogitRelaxedBernoulli
from ..engine import modes
from ..engine.modes import DecoratorContext
from ..engine.profile_report import format_time
from ..func import vmap
from ..fx.fake_tensors import FAKES
from ..library import Library, infer_schema
from ..nn import grad as nn_grad
from ..nn import init
from ..nn.functional import cross_entropy, gelu, linear, logsigmoid, nll_loss, pad, relu
from ..nn.hooks import everywhere
from ..nn.modules.container import ModuleList
from ..nn.modules.module import Module
from ..nn.modules.transformer import activation_named
from ..nn.state import _IncompatibleKeys
from ..nn.utils.prune import amount_of, check_amount
from ..nn.utils.stateless import call_with
from ..operators.below.aten import FunctionSchema, OpOverload, OpOverloadPacket, packet
from ..operators.below.dispatching import disabled, dispatches, undispatched
from ..operators.overriding import DISABLED
from ..ops.create.creation import Uninitialized
from ..ops.create.random import randn
from ..ops.linalg.added_products import addmm
from ..ops.linalg.decompositions import LinAlgError
from ..ops.linalg.matmul import mm
from ..ops.network.grids import MODES, PADDINGS
from ..ops.reduce.statistics import unique
from ..ops.shape.joining import cat
from ..ops.tensor.conversion import parse_to, suggested
from ..ops.tensor.typed_storages import LEGACY, LegacyStorage, TypedStorage
from ..storage import UntypedStorage
from ..tensor import Size, Tensor, array_of, sizes_of, strides_of
from ..transforms.batches import add_batch_dim, maybe_remove_batch_dim, older_vmap, remove_batch_dim
from ..trees import register_pytree_node
from ..utils.data.dataloader import Batches, InfiniteSampler, Pass, PooledBatches
from ..utils.data.fetch import DatasetKind
from ..xla.levels import batches_of
from .private_engine import ENGINE
from .private_files import FILES
from .private_kernels import KERNELS
from .private_training import TRAINING

__all__ = ["NAMES", "DispatchKeySet", "Switches"]


class Base(type):
    """The type of a base class of PyTorch's: instances of `of` are its own, as are its methods, and it makes none itself."""

    of: type

    def __getattr__(cls, name: str) -> Any:
        if "of" in vars(cls):
            return getattr(cls.of, name)
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)

    def __dir__(cls) -> list[str]:
        return [*{*super().__dir__(), *dir(vars(cls).get("of", cls.__base__))}]

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.of) if "of" in vars(cls) else type.__subclasscheck__(cls, subclass)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.of) if "of" in vars(cls) else type.__instancecheck__(cls, instance)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "of" in vars(cls):
            name = cls.__name__
            raise RuntimeError(f"Cannot directly construct {name}; subclass it and then construct that")
        return super().__call__(*args, **kwargs)


class TensorBase(metaclass=Base):
    """What tensors are instances of; Tensor is the class to derive from."""

    of = Tensor

    def __init_subclass__(cls) -> None:
        raise RuntimeError("Cannot subclass _TensorBase directly")


class StorageBase(UntypedStorage, metaclass=Base):
    """What untyped storages are instances of; one of a class that derives from it may be over another's bytes."""

    of = UntypedStorage

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__new__(cls)

    def __init__(self, data: Any = 0, **kwargs: Any) -> None:
        super().__init__(data._xt_storage if isinstance(data, UntypedStorage) else data, **kwargs)


class StorageWeakRef:
    """A storage that may end meanwhile: equal for one and the same."""

    def __init__(self, storage: Any) -> None:
        self.reference = weakref.ref(
            storage._untyped_storage._xt_storage if isinstance(storage, TypedStorage) else storage._xt_storage
        )

    def expired(self) -> bool:
        """Whether the storage is no more."""
        return self.reference() is None

    def __hash__(self) -> int:
        return hash(self.reference)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.reference is other.reference


class DispatchKeySet:
    """Some of PyTorch's dispatch keys, by name; of their meaning, autocasting is here."""

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.names, *other.names)

    def has(self, key: str) -> bool:
        """Whether a key is among them."""
        return key in self.names


class _Keys(type):
    """`DispatchKey.CPU` and the like: the names themselves."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """The names of PyTorch's dispatch keys."""


class ExcludeDispatchKeyGuard:
    """A block without the operators' treatment under some keys: without autocasting, if its keys are among them."""

    def __init__(self, keys: DispatchKeySet) -> None:
        places = {"AutocastCPU": "cpu", "AutocastCUDA": "cuda"}
        self.blocks = [autocast(place, enabled=False) for key, place in places.items() if keys.has(key)]

    def __enter__(self) -> None:
        for block in self.blocks:
            block.__enter__()

    def __exit__(self, *error: Any) -> None:
        for block in reversed(self.blocks):
            block.__exit__(*error)


EDGES = (("replication", "replicate"), ("reflection", "reflect"))


class Switches(types.ModuleType):
    """Settings of PyTorch's compilers: they can be set and read, and change nothing here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Switches(f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made

    def __bool__(self) -> bool:
        return False

    def patch(self, name: str | dict[str, Any] | None = None, value: Any = None, **changes: Any) -> Patched:
        """Other values in a block, or while a function runs: by name and value, a dict, or keywords."""
        given = {name: value} if isinstance(name, str) else dict(name or {})
        return Patched(self, given | changes)


class Patched(contextlib.ContextDecorator):
    """Switches that are set until a block ends; their names may have dots."""

    def __init__(self, switches: Switches, changes: dict[str, Any]) -> None:
        self._changes = [(*self._place(switches, name), value) for name, value in changes.items()]
        self._before: list[list[Any]] = []

    @staticmethod
    def _place(switches: Switches, name: str) -> tuple[Any, str]:
        *path, last = name.split(".")
        return functools.reduce(getattr, path, switches), last

    def __enter__(self) -> None:
        self._before.append([getattr(place, name) for place, name, _ in self._changes])
        for place, name, value in self._changes:
            setattr(place, name, value)

    def __exit__(self, *_: object) -> None:
        for (place, name, _), value in zip(self._changes, self._before.pop(), strict=True):
            setattr(place, name, value)


def register_constant(cls: type) -> None:
    """Let objects of a class be containers of nothing, which their own `==` tells apart."""
    for name in ("__eq__", "__hash__"):
        if getattr(cls, name) in (object.__eq__, None):
            raise TypeError(
                f"register_constant(cls) expects `cls` to have a non-default `{name}` implementation."
            )
    register_pytree_node(cls, lambda x: ([], x), lambda _, x: x)


def module_of(name: str, **values: Any) -> types.ModuleType:
    """A module of PyTorch's that nothing else of is here."""
    made = types.ModuleType(f"torch.{name}")
    vars(made).update(values)
    return made


def module_exists(name: str) -> bool:
    """Whether a module can be imported; those of packages that are absent cannot."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def by_number(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A loss with the arguments of PyTorch's dispatcher: a number says how it is reduced."""

    def made(
        self: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        reduction: int = 1,
        *more: Any,
        **named: Any,
    ) -> Tensor:
        named.update(zip(("ignore_index", "label_smoothing"), more, strict=False))
        return loss(self, target, weight, reduction=("none", "mean", "sum")[reduction], **named)

    return made


def same_function(fn: Any = None, **options: Any) -> Any:
    """A decorator that changes nothing, with or without parentheses."""
    return fn if callable(fn) else lambda function: function


def nothing(*args: Any, **options: Any) -> None:
    """What a call does that changes only PyTorch's compilers, or tells its makers."""


def no(*args: Any, **options: Any) -> bool:
    """The answer to whether PyTorch's compilers are at work."""
    return False


class Block(DecoratorContext):
    """A block, or a decorator, that changes nothing."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def clones(module: Module, count: int) -> ModuleList:
    """Copies of a module."""
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def indented(text: str, spaces: int) -> str:
    """All lines but the first moved to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def flatten_dense_tensors(tensors: Any) -> Tensor:
    """Tensors in one row, one after the other."""
    return cat([t.contiguous().view(-1) for t in tensors])


def unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """A row cut into the shapes of tensors."""
    parts, start = [], 0
    for t in tensors:
        parts.append(flat.narrow(0, start, t.numel()).view_as(t))
        start += t.numel()
    return tuple(parts)


def trunc_normal(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> Tensor:
    """`nn.init.trunc_normal_` with all its arguments in place."""
    return init.trunc_normal_(tensor, mean, std, a, b, generator)


def input_projections(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> list[Tensor]:
    """Query, key and value times their thirds of a packed weight."""
    weights = w.chunk(3)
    biases = (None, None, None) if b is None else b.chunk(3)
    return [linear(x, one, bias) for x, one, bias in zip((q, k, v), weights, biases, strict=True)]


def standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Standard normal numbers."""
    return randn(tuple(shape), dtype=dtype, device=device)


def parsed_to(*args: Any, **options: Any) -> tuple[Any, ...]:
    """What the arguments of `Module.to` say: a device, a dtype, whether not to wait, a memory format."""
    dtype, place, _, memory_format = parse_to(args, options)
    return place, dtype, bool(options.get("non_blocking", False)), memory_format


class Functions(types.ModuleType):
    """The functions of `torch`, by another name."""

    def __getattr__(self, name: str) -> Any:
        found = None
        if not name.startswith("__"):
            found = NAMES.get(name) or getattr(sys.modules[__name__.partition(".")[0]], name, None)
        if found is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        return found


class WorkerError:
    """An exception of another process or thread, kept to be raised here."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, value, _ = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        self.where = where
        self.exc_msg = "".join(traceback.format_exception(value))

    def reraise(self) -> None:
        """Raise it, or a RuntimeError where its class wants other arguments."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            error = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


def device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device, given as a number, a name or a device; of one without a number, that of the current one."""
    if isinstance(device, int):
        return device
    place = None if device is None else devices.device(device)
    if place is not None and place.type == "cpu":
        if not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        return -1 if place.index is None else place.index
    if place is None or place.index is None:
        if not optional:
            raise ValueError(f"Expected a device with an index or an integer, but got: {device}")
        return 0
    return place.index


class Reduction:
    """The older spelling of losses' reductions."""

    @staticmethod
    def get_enum(reduction: str) -> int:
        """PyTorch's number of a reduction."""
        if reduction not in ("none", "mean", "elementwise_mean", "sum"):
            raise ValueError(f"{reduction} is not a valid value for reduction")
        return ("none", "mean", "sum").index(reduction.removeprefix("elementwise_"))

    @staticmethod
    def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
        """The reduction that two older arguments mean."""
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"


DISPATCHED = """
    col2im im2col upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d
    upsample_trilinear3d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
"""
"""Of `torch._C._nn`, those that are as in `torch.ops.aten`."""

# Decorators for PyTorch's compilers: the function or class stays as it is.
UNCHANGED = """
    _compile._disable_dynamo _dynamo.disable _dynamo.eval_frame.disable _dynamo.external_utils.wrap_inline
    _dynamo.decorators.allow_in_graph _dynamo.decorators.assume_constant_result _dynamo.decorators.disable
    _dynamo.decorators.disallow_in_graph _dynamo.decorators.dont_skip_tracing _dynamo.decorators.forbid_in_graph
    _dynamo.decorators.leaf_function _dynamo.decorators.nonstrict_trace _dynamo.decorators.run _dynamo.decorators.skip
    _dynamo.decorators.substitute_in_graph _dynamo.optimize _dynamo.eval_frame.optimize
    _jit_internal._copy_to_script_wrapper _jit_internal._drop _jit_internal._overload _jit_internal._overload_method
    _jit_internal.export _jit_internal.ignore _jit_internal.unused _utils.classproperty
    _library.opaque_object.register_opaque_type distributed.rpc.api._require_initialized compiler.nested_compile_region compiler.wrap_numpy jit._drop
    utils._config_module.install_config_module
"""
# Calls that change only PyTorch's compilers and allocators, or tell its makers: None, and nothing happens.
WITHOUT_EFFECT = """
    backends.disable_global_flags _C._accelerator_emptyCache _C._cuda_clearCublasWorkspaces _C._jit_override_can_fuse_on_cpu
    _C._jit_override_can_fuse_on_gpu _C._jit_set_fusion_strategy _C._jit_set_nvfuser_enabled
    _C._jit_set_nvfuser_guard_mode _C._jit_set_profiling_executor _C._jit_set_profiling_mode
    _C._jit_set_texpr_fuser_enabled _C._log_api_usage_once _C._set_graph_executor_optimize
    set_vital utils.data._utils.signal_handling._set_SIGCHLD_handler _C._error_if_any_worker_fails
    _C._remove_worker_pids _C._set_worker_pids _C._set_worker_signal_handlers
    _C._set_math_sdp_allow_fp16_bf16_reduction _dynamo.decorators.graph_break _dynamo.decorators.mark_dynamic
    _dynamo.decorators.mark_static _dynamo.decorators.mark_static_address _dynamo.decorators.mark_unbacked
    _dynamo.decorators.maybe_mark_dynamic _dynamo.decorators.skip_frame _dynamo.reset _dynamo.reset_code_caches
    _guards.detect_fake_mode _guards.active_fake_mode _inductor.cudagraph_mark_step_begin _logging._internal.set_logs
"""
# Questions about what PyTorch has beside tensors (compilers, layers, vital signs): no.
NO = """
    _C._are_functorch_transforms_active vitals_enabled
    _C._jit_can_fuse_on_cpu _C._jit_can_fuse_on_gpu _dynamo.utils.is_compile_supported
"""
# Blocks in which PyTorch's compilers behave otherwise.
BLOCKS = """
    _dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex _dynamo.decorators.set_stance
    _dynamo.utils.disable_cache_limit _dynamo.decorators.error_on_graph_break _dynamo.decorators.patch_dynamo_config autograd.profiler.emit_itt
    _C._DisableFuncTorch _C._EnablePythonDispatcher autograd.profiler.emit_nvtx _subclasses.fake_tensor.unset_fake_temporarily
"""


# Names of PyTorch's that are here by what they mean: private ones, and switches of its compilers.
def vmap_with_none(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """`vmap` as PyTorch's own packages called it before `torch.func`; None may be among the results."""
    if not allow_none_pass_through:
        return older_vmap(func, in_dims, out_dims)

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        whole: list[Any] = []

        def present(*given: Any) -> tuple[Any, ...]:
            found = func(*given)
            whole[:] = found if isinstance(found, tuple) else (found,)
            return tuple([o for o in whole if o is not None])

        results = iter(older_vmap(present, in_dims, out_dims)(*args))
        made = tuple([None if o is None else next(results) for o in whole])
        return made[0] if len(whole) == 1 else made

    return wrapped


def edge_padding(mode: str, dims: int) -> Callable[..., Tensor]:
    """PyTorch's kernel of one kind of padding, for so many dimensions."""

    def padded(input: Tensor, padding: Any) -> Tensor:
        if len(padding) != 2 * dims:
            got = f", but got: {len(padding)}" if mode == "reflect" else ""
            raise RuntimeError(f"padding size is expected to be {2 * dims}{got}")
        return pad(input, tuple(padding), mode)

    return padded


def assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """RuntimeError unless a tensor holds a number other than zero."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def internal_overlap(tensor: Tensor) -> int:
    """Whether elements of a tensor share memory: 0 for no, 1 for yes, 2 where that is hard to tell."""
    found = geometry.has_internal_overlap(tuple(sizes_of(tensor)), tuple(strides_of(tensor)))
    return ("NO", "YES", "TOO_HARD").index(found)


def fill_uninitialized(mode: bool) -> None:
    """Choose whether memory that is left unset is marked."""
    Uninitialized.filled = mode


def unique_parts(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """What `unique` gives, always three: what was not asked for is empty."""
    return three_of(unique(input, sorted, return_inverse, return_counts), return_inverse, return_counts)


def unique_parts_along(
    input: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """What `unique` gives along a dimension, always three: what was not asked for is empty."""
    return three_of(unique(input, sorted, return_inverse, return_counts, dim), return_inverse, return_counts)


def three_of(found: Any, inverse: bool, counts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The results of `unique` at their places."""
    values, *rest = found if isinstance(found, tuple) else (found,)
    empty = values.new_empty((0,), dtype=dtypes.int64)
    return values, rest[0] if inverse else empty, rest[-1] if counts else empty


class Resize(Function):
    """Another shape of the same number of elements, as PyTorch's oldest functions have it."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: Any) -> Tensor:
        ctx.sizes = tensor.shape
        return tensor.contiguous().view(sizes).clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad,) = grad_outputs
        return grad.contiguous().view(ctx.sizes), None


VF = Functions("torch._VF")
vars(VF)["unique_dim"] = unique_parts_along


def infer_size(a: Any, b: Any) -> Size:
    """The sizes that two broadcast to."""
    return Size(geometry.broadcast_shapes(tuple(a), tuple(b)))


def integer_product(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices of int8, in int32."""
    for name, t in (("self", input), ("mat2", mat2)):
        if t.dtype is not dtypes.int8:
            raise RuntimeError(f"Expected {name} dtype to be of type int8 but got {dtypes.c_name(t.dtype)}")
    return mm(input.to(dtypes.int32), mat2.to(dtypes.int32), out=out)


def addmm_activation(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    use_gelu: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """`addmm`, and what `gelu` or `relu` makes of it."""
    made = addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    made = gelu(made) if use_gelu else relu(made)
    return made if out is None else out.copy_(made)


# Older collectives, which tables of packages name; they have no kernels.
_collectives = Library("c10d_functional", "DEF")
_collectives.define("all_gather_into_tensor(Tensor shard, str tag, int[] ranks, int group_size) -> Tensor")
_collectives.define("wait_tensor(Tensor self) -> Tensor")

NAMES: dict[str, Any] = {
    "_C.StorageBase": StorageBase,
    "_C.TensorBase": TensorBase,
    "_C._LinAlgError": LinAlgError,
    "_C._SDPAParams": SDPAParams,
    "_C._TensorBase": TensorBase,
    "_C._infer_size": infer_size,
    "_addmm_activation": addmm_activation,
    "_int_mm": integer_product,
    "_unique": lambda input, sorted=True, return_inverse=False: unique_parts(input, sorted, return_inverse)[
        :2
    ],
    "_unique2": unique_parts,
    "autograd._functions.Resize": Resize,
    "autograd._functions.tensor.Resize": Resize,
    "autograd._profiler_enabled": lambda: bool(modes.state.mode & modes.PROFILING),
    "autograd.profiler_util._format_time": format_time,
    **{f"_C._nn.{name}": packet(name) for name in DISPATCHED.split()},
    "_C._nn.cross_entropy_loss": by_number(cross_entropy),
    "_C._nn.flatten_dense_tensors": flatten_dense_tensors,
    "_C._nn.unflatten_dense_tensors": unflatten_dense_tensors,
    "_C._nn.log_sigmoid": logsigmoid,
    "_C._nn.nll_loss_nd": by_number(nll_loss),
    **{f"_C._nn.{name}_pad{n}d": edge_padding(mode, n) for name, mode in EDGES for n in (1, 2, 3)},
    "_C._get_deterministic_fill_uninitialized_memory": lambda: Uninitialized.filled,
    "_C._set_deterministic_fill_uninitialized_memory": fill_uninitialized,
    "_assert_async": assert_async,
    "_debug_has_internal_overlap": internal_overlap,
    "_mkldnn": dtypes.mkldnn,
    **ENGINE,
    **FAKES,
    **FILES,
    **KERNELS,
    **TRAINING,
    "_vmap_internals._vmap": vmap_with_none,
    "_vmap_internals.vmap": vmap,
    **dict.fromkeys(UNCHANGED.split(), same_function),
    **dict.fromkeys(WITHOUT_EFFECT.split(), nothing),
    **dict.fromkeys(NO.split(), no),
    **dict.fromkeys(BLOCKS.split(), Block),
    "_C._nn._parse_to": parsed_to,
    "_C.DispatchKey": DispatchKey,
    "_C.DispatchKeySet": DispatchKeySet,
    "_C._disabled_torch_function_impl": DISABLED,
    "_C._disabled_torch_dispatch_impl": disabled,
    "_C._is_torch_function_enabled": lambda: not modes.state.overrides_off,
    "_C._is_torch_function_mode_enabled": lambda: bool(modes.state.function_modes),
    "_C._dispatch_isTensorSubclassLike": lambda tensor: dispatches(type(tensor)),
    "_C._len_torch_dispatch_stack": lambda: len(modes.state.dispatch_modes),
    "_C._DisableTorchDispatch": undispatched,
    "_ops.OpOverload": OpOverload,
    "_ops.OpOverloadPacket": OpOverloadPacket,
    "_C.FunctionSchema": FunctionSchema,
    "_C.DisableTorchFunction": DisableTorchFunction,
    "_C.DisableTorchFunctionSubclass": DisableTorchFunctionSubclass,
    "_C._ExcludeDispatchKeyGuard": ExcludeDispatchKeyGuard,
    "_C._get_cpu_capability": get_cpu_capability,
    "_C._get_privateuse1_backend_name": lambda: "privateuseone",
    "_tensor_classes": set(),
    "nn.functional.GRID_SAMPLE_INTERPOLATION_MODES": {mode: i for i, mode in enumerate(MODES)},
    "nn.functional.GRID_SAMPLE_PADDING_MODES": {mode: i for i, mode in enumerate(PADDINGS)},
    "utils._import_utils": module_of(
        "utils._import_utils",
        _check_module_exists=module_exists,
        dill_available=lambda: module_exists("dill"),
    ),
    "__config__._cxx_flags": lambda: "",
    "__config__.parallel_info": lambda: f"at::get_num_threads() : {os.cpu_count()}\n",
    "__config__.show": lambda: f"xtensor on JAX {jax.__version__} (jaxlib {jaxlib.version.__version__})\n",
    "_dynamo.OptimizedModule": OptimizedModule,
    "_dynamo.config": Switches("torch._dynamo.config"),
    "_dynamo.eval_frame.OptimizedModule": OptimizedModule,
    "_dynamo.external_utils.is_compiling": is_compiling,
    "_dynamo.is_compiling": is_compiling,
    "_C._functorch.is_batchedtensor": lambda tensor: bool(batches_of(array_of(tensor))),
    **{f"{m}._add_batch_dim": add_batch_dim for m in ("_C._functorch", "_functorch.vmap")},
    **{f"{m}._remove_batch_dim": remove_batch_dim for m in ("_C._functorch", "_functorch.vmap")},
    **{f"{m}._maybe_remove_batch_dim": maybe_remove_batch_dim for m in ("_C._functorch", "_functorch.vmap")},
    "_functorch.config": Switches("torch._functorch.config"),
    "_inductor.config": Switches("torch._inductor.config"),
    "_inductor.decomposition": module_of("_inductor.decomposition", register_decomposition=same_function),
    "_library.infer_schema.infer_schema": infer_schema,
    "_prims_common": module_of(
        "_prims_common",
        make_contiguous_strides_for=lambda shape: geometry.contiguous_strides(tuple(shape)),
        suggest_memory_format=suggested,
        corresponding_complex_dtype=lambda dtype: dtype.to_complex(),
        corresponding_real_dtype=lambda dtype: dtype.to_real(),
    ),
    "_jit_internal.BroadcastingList1": BroadcastingList2,
    "_jit_internal.BroadcastingList2": BroadcastingList2,
    "_jit_internal.BroadcastingList3": BroadcastingList2,
    "_jit_internal.Final": Final,
    "Storage": LEGACY[dtypes.float32],
    "_storage_classes": {TypedStorage, UntypedStorage, *LEGACY.values()},
    "_tensor.Tensor": Tensor,
    "storage._LegacyStorage": LegacyStorage,
    "storage._dtype_to_storage_type_map": lambda: {kind: one.__name__ for kind, one in LEGACY.items()},
    "_utils._flatten_dense_tensors": flatten_dense_tensors,
    "_utils._unflatten_dense_tensors": unflatten_dense_tensors,
    "_higher_order_ops.associative_scan.associative_scan": associative_scan,
    "_higher_order_ops.cond": cond,
    "_higher_order_ops.map.map": map_over,
    "_higher_order_ops.scan.scan": scan,
    "_higher_order_ops.while_loop.while_loop": while_loop,
    "_VF": VF,
    "_C._get_default_device": lambda: str(devices.current()),
    "_tensor_str._str": lambda tensor, *, tensor_contents=None: repr(tensor),
    "_utils._get_available_device_type": lambda: "cuda" if cuda.is_available() else None,
    "_utils._get_device_index": device_index,
    "_utils.ExceptionWrapper": WorkerError,
    "_utils._element_size": lambda dtype: dtype.itemsize,
    "autograd.function._SingleLevelFunction": Function,
    "cuda.amp.common.amp_definitely_not_available": lambda: not cuda.is_available(),
    "distributions.multivariate_normal._precision_to_scale_tril": precision_to_scale_tril,
    "distributions.relaxed_bernoulli.LogitRelaxedBernoulli": LogitRelaxedBernoulli,
    "distributions.relaxed_categorical.ExpRelaxedCategorical": ExpRelaxedCategorical,
    "distributions.utils._standard_normal": standard_normal,
    "distributions.utils._sum_rightmost": sum_rightmost,
    "multiprocessing.reductions.StorageWeakRef": StorageWeakRef,
    "nn.functional._Reduction": Reduction,
    "nn.functional._in_projection_packed": input_projections,
    "nn.functional.handle_torch_function": handle_torch_function,
    "nn.functional.has_torch_function": has_torch_function,
    "nn.init._no_grad_fill_": lambda tensor, val: init.constant_(tensor, val),
    "nn.init._no_grad_normal_": lambda tensor, mean, std, generator=None: init.normal_(
        tensor, mean, std, generator
    ),
    "nn.init._no_grad_trunc_normal_": trunc_normal,
    "nn.init._no_grad_uniform_": lambda tensor, a, b, generator=None: init.uniform_(tensor, a, b, generator),
    "nn.init._no_grad_zero_": lambda tensor: init.zeros_(tensor),
    "nn.functional.grad": nn_grad,
    "nn.modules.module._global_backward_hooks": everywhere.backward,
    "nn.modules.module._global_backward_pre_hooks": everywhere.backward_pre,
    "nn.modules.module._global_forward_hooks": everywhere.forward,
    "nn.modules.module._global_forward_hooks_always_called": everywhere.forward_always,
    "nn.modules.module._global_forward_hooks_with_kwargs": everywhere.forward_with_kwargs,
    "nn.modules.module._global_forward_pre_hooks": everywhere.forward_pre,
    "nn.modules.module._global_buffer_registration_hooks": everywhere.buffer_registration,
    "nn.modules.module._global_module_registration_hooks": everywhere.module_registration,
    "nn.modules.module._global_parameter_registration_hooks": everywhere.parameter_registration,
    "nn.modules.module._IncompatibleKeys": _IncompatibleKeys,
    "nn.modules.module._addindent": indented,
    "nn.modules.normalization._shape_t": int | list[int] | Size,
    "nn.modules.transformer._get_activation_fn": activation_named,
    "nn.modules.transformer._get_clones": clones,
    "nn.utils.prune._compute_nparams_toprune": amount_of,
    "nn.utils.prune._validate_pruning_amount": check_amount,
    "nn.utils.prune._validate_pruning_amount_init": check_amount,
    "nn.utils.stateless._functional_call": call_with,
    "_C._get_tracing_state": tracing_state,
    "jit._fork": fork,
    "jit._get_trace_graph": get_trace_graph,
    "jit._trace._get_trace_graph": get_trace_graph,
    "jit._wait": wait,
    "read_vitals": lambda: "",
    "utils._pytree.register_constant": register_constant,
    "utils._mode_utils.all_same_mode": lambda modes: all(mode == modes[0] for mode in modes),
    "utils._mode_utils.no_dispatch": undispatched,
    "utils._contextlib._DecoratorContextManager": DecoratorContext,
    "utils.data._utils.python_exit_status": False,
    "utils.data._utils.collate.np_str_obj_array_pattern": re.compile(r"[SaUO]"),
    "utils.data.dataloader._BaseDataLoaderIter": Pass,
    "utils.data.dataloader._InfiniteConstantSampler": InfiniteSampler,
    "utils.data.dataloader._DatasetKind": DatasetKind,
    "utils.data.dataloader._collate_fn_t": Callable[[list[Any]], Any],
    "utils.data.dataloader._worker_init_fn_t": Callable[[int], None],
    "utils.data.dataloader._MultiProcessingDataLoaderIter": PooledBatches,
    "utils.data.dataloader._SingleProcessDataLoaderIter": Batches,
}
