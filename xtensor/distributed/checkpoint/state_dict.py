"""`torch.distributed.checkpoint.state_dict`: states of models and optimizers by the names of parameters, whole or in parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...nn.modules.module import Module
from ...ops.create.creation import zeros_like
from ...optim.optimizer import Optimizer
from ...tensor import Tensor
from ..data_parallel import DistributedDataParallel
from ..group import get_world_size, is_initialized
from ..objects import broadcast_object_list
from ..tensor.dtensor import DTensor, like
from ..tensor.states import StateDictType, is_first, state_settings, whole

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """full_state_dict: whole tensors instead of those that lie on a mesh. cpu_offload: on the CPU. strict: no names may be missing."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def inner(model: Module) -> Module:
    """The module that a DistributedDataParallel holds, or the module itself."""
    return model.module if isinstance(model, DistributedDataParallel) else model


def given(state: dict[str, Any], options: StateDictOptions | None) -> dict[str, Any]:
    """A state by names as the options want it; empty in the other processes where the first is to have all of it on the CPU."""
    chosen = options or StateDictOptions()
    if not chosen.full_state_dict:
        return {k: v.cpu() if chosen.cpu_offload and is_plain(v) else v for k, v in state.items()}
    found = {k: whole(v, chosen.cpu_offload) for k, v in state.items()}
    return {} if chosen.cpu_offload and not is_first() else found


def is_plain(value: Any) -> bool:
    """Whether a value is a tensor of a single device."""
    return isinstance(value, Tensor) and not isinstance(value, DTensor)


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """A model's state, by names without those of wrappers."""
    with state_settings(model, StateDictType.SHARDED_STATE_DICT):
        return given(inner(model).state_dict(), options)


def named(model: Module) -> dict[int, str]:
    """The names of a model's parameters, by identity."""
    return {
        id(p): name.replace("_checkpoint_wrapped_module.", "") for name, p in inner(model).named_parameters()
    }


def as_list(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The optimizers' state, by the names of the parameters; one that has made no step yet is given its state."""
    names = named(model)
    state: dict[str, Any] = {}
    groups = []
    for optimizer in as_list(optimizers):
        _init_optim_state(optimizer)
        for group in optimizer.param_groups:
            rest = {k: v for k, v in group.items() if k != "params"}
            groups.append({**rest, "params": [names[id(p)] for p in group["params"]]})
        for parameter, own in optimizer.state.items():
            state[names[id(parameter)]] = given(own, options)
    chosen = options or StateDictOptions()
    if chosen.full_state_dict and chosen.cpu_offload and not is_first():
        return {}
    return {"state": state, "param_groups": groups}


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The states of a model and of its optimizers."""
    return (
        get_model_state_dict(model, options=options),
        get_optimizer_state_dict(model, optimizers, options=options),
    )


def from_first(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """The state that rank 0 was given, where that is asked for; the others may give an empty one."""
    if not options.broadcast_from_rank0 or not is_initialized() or get_world_size() == 1:
        return state
    box = [state]
    broadcast_object_list(box, 0)
    return box[0]


def _init_optim_state(optim: Optimizer) -> None:
    """Give an optimizer that has made no step its state, by a step that moves nothing: what is loaded needs somewhere to go."""
    every = [p for group in optim.param_groups for p in group["params"] if p.requires_grad]
    if optim.state or any(p.grad is not None for p in every):
        return
    rates = [group["lr"] for group in optim.param_groups]
    for parameter in every:
        parameter.grad = zeros_like(parameter)
    for group in optim.param_groups:
        group["lr"] = 0.0
    optim.step()
    for group, rate in zip(optim.param_groups, rates, strict=True):
        group["lr"] = rate
    optim.zero_grad()


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Give a model a state, whole tensors or such that lie on a mesh."""
    chosen = options or StateDictOptions()
    target = inner(model)
    own = target.state_dict()
    state = from_first(model_state_dict, chosen)
    found = {name: like(value, own.get(name)) for name, value in state.items()}
    return target.load_state_dict(found, strict=chosen.strict, assign=any(t.is_meta for t in own.values()))


def optimizer_state_for(
    model: Module,
    optimizer: Optimizer,
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """A state by the names of the parameters as an optimizer's `load_state_dict` takes it."""
    names = named(model)
    given = from_first(optim_state_dict, options or StateDictOptions())
    saved = {name: group for group in given["param_groups"] for name in group["params"]}
    every = [p for g in optimizer.param_groups for p in g["params"]]
    numbers = {id(p): i for i, p in enumerate(every)}
    groups = []
    for group in optimizer.param_groups:
        first = saved[names[id(group["params"][0])]]
        rest = {k: v for k, v in first.items() if k != "params"}
        groups.append({**rest, "params": [numbers[id(p)] for p in group["params"]]})
    state = {}
    for parameter in every:
        own = given["state"].get(names[id(parameter)])
        if own is not None:
            state[numbers[id(parameter)]] = {
                k: like(v, parameter) if isinstance(v, Tensor) and v.dim() else v for k, v in own.items()
            }
    return {"state": state, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Give optimizers a state by the names of the parameters."""
    given = from_first(optim_state_dict, options or StateDictOptions())
    for optimizer in as_list(optimizers):
        optimizer.load_state_dict(optimizer_state_for(model, optimizer, given))


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Give a model and its optimizers their states."""
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
