"""How a sharded module gives its state: whole, on all processes or on the first, or as it lies."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...engine.modes import no_grad
from ...nn.modules.module import Module
from ...tensor import Tensor
from ..group import get_rank, is_initialized
from .dtensor import DTensor, full_tensor, like

__all__ = [
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "OptimStateDictConfig",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class StateDictType(enum.Enum):
    """What a state holds: whole tensors, or such as lie on the mesh; `LOCAL_STATE_DICT` is refused."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


@dataclass
class StateDictConfig:
    """offload_to_cpu: give whole tensors on the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """rank0_only: the other processes are given an empty state."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Of a state that is refused."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Of a state whose tensors lie on the mesh."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """offload_to_cpu: give whole tensors on the CPU."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """rank0_only: the other processes are given an empty state."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Of a state that is refused."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Of a state whose tensors lie on the mesh."""

    _use_dtensor: bool = False


CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


@dataclass
class StateDictSettings:
    """How a module gives its state, and its optimizer's."""

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: OptimStateDictConfig = field(default_factory=FullOptimStateDictConfig)


SETTINGS = "_xt_state_settings"
"""Under which a module that gives states keeps how."""


def give_states(module: Module) -> None:
    """Let a module's `state_dict` be as its settings say, whole at first, and `load_state_dict` take whole tensors."""
    vars(module)[SETTINGS] = StateDictSettings()
    module._register_state_dict_hook(given)
    module.register_load_state_dict_pre_hook(taken)


def settings_of(module: Module) -> StateDictSettings:
    """How a module gives its state, or the first within it that has been told."""
    found = [vars(m)[SETTINGS] for m in module.modules() if SETTINGS in vars(m)]
    return found[0] if found else StateDictSettings()


def set_settings(
    module: Module,
    kind: StateDictType,
    config: StateDictConfig | None = None,
    optim_config: OptimStateDictConfig | None = None,
) -> StateDictSettings:
    """Say how a module and those within it give their states; how they did."""
    before = settings_of(module)
    if kind not in CONFIGS:
        raise NotImplementedError(f"{kind} is not in xtensor: use StateDictType.SHARDED_STATE_DICT")
    wanted, optim_wanted = CONFIGS[kind]
    chosen = StateDictSettings(kind, config or wanted(), optim_config or optim_wanted())
    for value, its in ((chosen.state_dict_config, wanted), (chosen.optim_state_dict_config, optim_wanted)):
        if not isinstance(value, its):
            raise RuntimeError(f"Expected state_dict_config of type {its} but got {type(value)}")
    for each in module.modules():
        if SETTINGS in vars(each):
            vars(each)[SETTINGS] = chosen
    return before


@contextlib.contextmanager
def state_settings(
    module: Module,
    kind: StateDictType,
    config: StateDictConfig | None = None,
    optim_config: OptimStateDictConfig | None = None,
) -> Iterator[None]:
    """`set_settings` for a while."""
    before = set_settings(module, kind, config, optim_config)
    try:
        yield
    finally:
        set_settings(module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config)


def is_first() -> bool:
    """Whether this is the first process, or the only one."""
    return not is_initialized() or get_rank() == 0


def whole(value: Any, on_cpu: bool) -> Any:
    """All of a tensor, in every process, on the CPU if asked; of anything else, itself."""
    if not isinstance(value, Tensor):
        return value
    with no_grad():
        found = full_tensor(value.detach()) if isinstance(value, DTensor) else value
        return found.cpu() if on_cpu else found


def given(module: Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    """A hook behind `state_dict`: make what the module put there as its settings say."""
    settings = vars(module)[SETTINGS]
    if settings.state_dict_type is not StateDictType.FULL_STATE_DICT:
        return
    config = settings.state_dict_config
    for name in [n for n in state if n.startswith(prefix)]:
        state[name] = whole(state[name], config.offload_to_cpu)
        if config.rank0_only and not is_first():
            del state[name]


def taken(module: Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """A hook before `load_state_dict`: whole tensors go where the module's lie."""
    for name, own in (*module.named_parameters(remove_duplicate=False), *module.named_buffers()):
        if prefix + name in state:
            state[prefix + name] = like(state[prefix + name], own)
