"""The first interface of fully sharded training, `FullyShardedDataParallel`: over `fully_shard`, with what else its programs call."""

from __future__ import annotations

import contextlib
import enum
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ... import dtypes
from ...engine.modes import no_grad
from ...nn.modules.batchnorm import _BatchNorm
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...nn.utils.clip_grad import clip_grad_norm_
from ...tensor import Tensor
from .. import collectives, world
from ..checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    optimizer_state_for,
)
from ..device_mesh import DeviceMesh
from ..group import chosen, get_rank, is_initialized
from ..tensor.dtensor import full_tensor, like
from ..tensor.states import (
    OptimStateDictConfig,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
    give_states,
    is_first,
    set_settings,
    settings_of,
    state_settings,
)
from .shard import CALLS, FSDPModule, MixedPrecisionPolicy, fully_shard, kind_of_devices, sharded_kind
from .wrap import as_policy, wrap_children

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullyShardedDataParallel",
    "MixedPrecision",
    "OptimStateKeyType",
    "ShardingStrategy",
]


class ShardingStrategy(enum.Enum):
    """How much is split: XLA gathers what a program needs in each case. `NO_SHARD` copies everything to all devices."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


class BackwardPrefetch(enum.Enum):
    """What is gathered ahead, which XLA decides."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class OptimStateKeyType(enum.Enum):
    """What the keys of an optimizer's state are."""

    PARAM_NAME = enum.auto()
    PARAM_ID = enum.auto()


@dataclass(frozen=True)
class MixedPrecision:
    """The dtypes of a forward pass; see `MixedPrecisionPolicy`. Buffers are cast to `buffer_dtype` once, when the module is wrapped."""

    param_dtype: dtypes.dtype | None = None
    reduce_dtype: dtypes.dtype | None = None
    buffer_dtype: dtypes.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Iterable[type[Module]] = (_BatchNorm,)


@dataclass(frozen=True)
class CPUOffload:
    """Whether parameters are kept in the host's memory, which is refused where the mesh is not of CPUs."""

    offload_params: bool = False


class _Wrapping(type):
    """The class of the class: calling it shards a module."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if cls is FullyShardedDataParallel:
            return shard_model(*args, **options)
        return super().__call__(*args, **options)


class FullyShardedDataParallel(FSDPModule, metaclass=_Wrapping):
    """A module whose parameters are split over all devices, by `fully_shard`; the submodules that `auto_wrap_policy` says are so by themselves.

    `state_dict()` gives whole tensors in every process, unless `state_dict_type` says otherwise, and `load_state_dict` takes such.

    Differs from PyTorch: it gives the module itself, of a class that is a `FullyShardedDataParallel` too, with its parameters as they were,
    not flattened; `.module` is the module itself. `LOCAL_STATE_DICT` and communication hooks are refused.

    >>> from xtensor.distributed.device_mesh import init_device_mesh
    >>> from xtensor.distributed.fsdp import FullyShardedDataParallel
    >>> model = FullyShardedDataParallel(nn.Linear(4, 2), device_mesh=init_device_mesh("cpu", (1,)))
    >>> isinstance(model, FullyShardedDataParallel), list(model.state_dict())
    (True, ['weight', 'bias'])
    """

    def __getattr__(self, name: str) -> Any:
        if name in ("module", "_fsdp_wrapped_module"):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return self
        return super().__getattr__(name)

    # -- what is wrapped

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Any]:
        """The modules within a module, itself included, that are sharded by themselves; those that no other of them holds."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        if root_only:
            held = {id(c) for m in found for c in m.modules() if c is not m}
            found = [m for m in found if id(m) not in held]
        return found

    def check_is_root(self) -> bool:
        """Whether this is the outermost of its kind; of a module that was called as such it is taken to be."""
        return True

    # -- training

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients of all parameters so that their norm is at most `max_norm`; the norm that they had."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients add up in here; they are whole sums after each backward pass, so that nothing is left to do later."""
        yield

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """NotImplementedError: XLA reduces gradients within the programs that compute them."""
        raise NotImplementedError("FullyShardedDataParallel.register_comm_hook: XLA reduces gradients itself")

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Within this, the module's parameters are whole and plain; afterwards the values that they have then go back."""
        taken: list[tuple[Module, str, Any, Any]] = []
        made: dict[int, Any] = {}
        wrapped = FullyShardedDataParallel.fsdp_modules(module)
        for each in wrapped if recurse else wrapped[:1]:
            for child, name, _ in vars(each)[CALLS].owned:
                own: Any = child._parameters[name]
                if id(own) not in made:
                    made[id(own)] = summoned(own, offload_to_cpu, with_grads)
                taken.append((child, name, own, made[id(own)]))
        for child, name, _, whole in taken:
            child._parameters[name] = whole
        try:
            yield
        finally:
            for child, name, own, whole in taken:
                child._parameters[name] = own
                if writeback:
                    with no_grad():
                        own.copy_(like(whole.detach(), own))
                        if with_grads and whole.grad is not None:
                            own.grad = like(whole.grad, own)

    # -- states

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Say how the sharded modules within a module give their states; how they did."""
        return set_settings(module, state_dict_type, state_dict_config, optim_state_dict_config)

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """How the sharded modules within a module give their states."""
        return settings_of(module)

    @staticmethod
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> contextlib.AbstractContextManager[None]:
        """`set_state_dict_type` within a `with`."""
        return state_settings(module, state_dict_type, state_dict_config, optim_state_dict_config)

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Any, optim_state_dict: dict[str, Any] | None = None, group: Any = None
    ) -> dict[str, Any]:
        """The optimizer's state by the names of parameters, whole or in parts as `state_dict_type` says."""
        settings = settings_of(model)
        config: Any = settings.optim_state_dict_config
        full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        options = StateDictOptions(full_state_dict=full, cpu_offload=full and config.offload_to_cpu)
        return by_name(model, optim, options, full and config.rank0_only)

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """The optimizer's state by the names of parameters, whole, on the CPU; only of the first process, unless asked otherwise."""
        return by_name(model, optim, StateDictOptions(full_state_dict=True, cpu_offload=True), rank0_only)

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Any, group: Any = None) -> dict[str, Any]:
        """The optimizer's state by the names of parameters, as it lies."""
        return by_name(model, optim, StateDictOptions(), False)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """A state by the names of parameters as `optim.load_state_dict` takes it; with `load_directly` it is given to that at once."""
        found = optimizer_state_for(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any], model: Module, optim_input: Any = None, optim: Any = None
    ) -> dict[str, Any]:
        """A whole state by the names of parameters as `optim.load_state_dict` takes it."""
        return optimizer_state_for(model, optim, full_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any] | None,
        model: Module,
        optim_input: Any = None,
        optim: Any = None,
        group: Any = None,
    ) -> dict[str, Any]:
        """The whole state that the first process has, as `optim.load_state_dict` takes it in each."""
        options = StateDictOptions(broadcast_from_rank0=True)
        return optimizer_state_for(model, optim, full_optim_state_dict or {}, options)


def by_name(model: Module, optim: Any, options: StateDictOptions, first_only: bool) -> dict[str, Any]:
    """An optimizer's state by the names of parameters; empty in the other processes, where that is asked for."""
    every = StateDictOptions(full_state_dict=options.full_state_dict)
    found = get_optimizer_state_dict(model, optim, options=every)
    if first_only and not is_first():
        return {}
    if options.cpu_offload:
        found["state"] = {
            name: {k: v.cpu() if isinstance(v, Tensor) else v for k, v in own.items()}
            for name, own in found["state"].items()
        }
    return found


def summoned(own: Any, on_cpu: bool, with_grads: bool) -> Parameter:
    """All of a parameter, as one of a single device."""
    with no_grad():
        whole = full_tensor(own.detach()).clone()
        made = Parameter(whole.cpu() if on_cpu else whole, requires_grad=own.requires_grad)
        if with_grads and own.grad is not None:
            made.grad = full_tensor(own.grad)
    return made


def mesh_for(strategy: ShardingStrategy | None, group: Any, given: DeviceMesh | None) -> DeviceMesh:
    """The mesh of a strategy: its last dimension splits, the others copy."""
    kind = kind_of_devices() if given is None else given.device_type
    if given is not None and strategy is not ShardingStrategy.NO_SHARD:
        return given
    if isinstance(group, (tuple, list)):  # the processes that split, and those that copy
        inner, outer = (each.ranks for each in group)
        return DeviceMesh(kind, [[rank - get_rank() + other for rank in inner] for other in outer])
    if given is not None:
        numbers = given.mesh.flatten().tolist()
    elif group is not None:
        numbers = list(group.ranks)
    else:
        numbers = list(range(len(world.devices_of(kind))))
    if strategy is ShardingStrategy.NO_SHARD:
        return DeviceMesh(kind, [[n] for n in numbers])
    if strategy in HYBRID:  # the processes of a host split
        size = int(os.environ.get("LOCAL_WORLD_SIZE", len(numbers)))
        return DeviceMesh(kind, [numbers[i : i + size] for i in range(0, len(numbers), size)])
    return DeviceMesh(kind, numbers)


def shard_model(
    module: Any,
    process_group: Any = None,
    sharding_strategy: ShardingStrategy | None = None,
    cpu_offload: CPUOffload | None = None,
    auto_wrap_policy: Any = None,
    backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
    mixed_precision: MixedPrecision | None = None,
    ignored_modules: Iterable[Module] | None = None,
    param_init_fn: Callable[[Module], None] | None = None,
    device_id: Any = None,
    sync_module_states: bool = False,
    forward_prefetch: bool = False,
    limit_all_gathers: bool = True,
    use_orig_params: bool = False,
    ignored_states: Iterable[Any] | None = None,
    device_mesh: DeviceMesh | None = None,
) -> Any:
    """See `FullyShardedDataParallel`."""
    mesh = mesh_for(sharding_strategy, process_group, device_mesh)
    if cpu_offload is not None and cpu_offload.offload_params and mesh.device_type != "cpu":
        raise NotImplementedError("CPUOffload is not in xtensor: parameters stay on the devices")
    left = [*(ignored_modules or ()), *(ignored_states or ())]
    modules = {id(c) for m in left if isinstance(m, Module) for c in m.modules()}
    ignored = {p for m in left for p in (m.parameters() if isinstance(m, Module) else [m])}
    make_real(module, param_init_fn)
    if sync_module_states and is_initialized():
        group = chosen(process_group if not isinstance(process_group, (tuple, list)) else None)
        with no_grad():
            for tensor in (*module.parameters(), *module.buffers()):
                if not hasattr(tensor, "placements"):
                    collectives.broadcast(tensor.detach(), group.ranks[0], group)

    def shard(each: Module, mixed_precision: Any = mixed_precision, root: bool = False, **_: Any) -> Module:
        given = mixed_precision or MixedPrecision()
        low = not isinstance(each, tuple(given._module_classes_to_ignore))
        cast = given.cast_forward_inputs or (root and given.cast_root_forward_inputs)
        policy = MixedPrecisionPolicy(given.param_dtype, given.reduce_dtype, None, cast)
        if given.buffer_dtype is not None and low:
            for buffer in each.buffers():
                if buffer.is_floating_point():
                    buffer.data = buffer.to(given.buffer_dtype)
        kind = type(each)
        fully_shard(
            each, mesh=mesh, mp_policy=policy if low else MixedPrecisionPolicy(), ignored_params=ignored
        )
        each.__class__ = sharded_kind(kind, FullyShardedDataParallel)
        give_states(each)
        return each

    if auto_wrap_policy is not None:
        left_alone = modules | {id(p) for p in ignored}

        def skipped(value: Any) -> bool:
            return id(value) in left_alone or isinstance(value, FullyShardedDataParallel)

        wrap_children(module, as_policy(auto_wrap_policy), shard, skipped)
    return shard(module, root=True)


def make_real(module: Module, init: Callable[[Module], None] | None) -> None:
    """Give modules on the meta device values: by the function, or by `to_empty` and `reset_parameters`."""
    for each in module.modules():
        own = [*each._parameters.values(), *each._buffers.values()]
        if not any(t is not None and t.is_meta for t in own):
            continue
        if init is not None:
            init(each)
        else:
            each.to_empty(device="cpu", recurse=False)
            with no_grad():
                each.reset_parameters()


FullyShardedDataParallel.__signature__ = inspect.signature(shard_model)  # pyright: ignore[reportAttributeAccessIssue]
