"""`torch.distributed.checkpoint.state_dict`: states of models and optimizers by the names of parameters, whole or in parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...engine.modes import no_grad
from ...nn.modules.module import Module
from ...ops.create.creation import zeros_like
from ...optim.optimizer import Optimizer
from ...tensor import Tensor
from ..data_parallel import DistributedDataParallel
from ..group import get_world_size, is_initialized
from ..objects import broadcast_object_list
from ..tensor.dtensor import DTensor, distribute_tensor, full_tensor

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


def given(value: Any, options: StateDictOptions | None) -> Any:
    """A tensor of a state as the options want it."""
    chosen = options or StateDictOptions()
    if isinstance(value, Tensor):
        if chosen.full_state_dict and isinstance(value, DTensor):
            with no_grad():
                value = full_tensor(value.detach())
        return value.cpu() if chosen.cpu_offload and not isinstance(value, DTensor) else value
    return value


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """A model's state, by names without those of wrappers."""
    return {name: given(value, options) for name, value in inner(model).state_dict().items()}


def named(model: Module) -> dict[int, str]:
    """The names of a model's parameters, by identity."""
    return {id(p): name for name, p in inner(model).named_parameters()}


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
            state[names[id(parameter)]] = {k: given(v, options) for k, v in own.items()}
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


def like(value: Any, own: Any) -> Any:
    """A tensor of a state where the present one lies, or will."""
    if not isinstance(value, Tensor) or isinstance(value, DTensor) or not isinstance(own, Tensor):
        return value
    target: Any = own
    if isinstance(own, DTensor) or (own.is_meta and hasattr(own, "placements")):
        return distribute_tensor(value, target.device_mesh, target.placements)
    return value


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


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Give optimizers a state by the names of the parameters."""
    names = named(model)
    optim_state_dict = from_first(optim_state_dict, options or StateDictOptions())
    saved = {name: group for group in optim_state_dict["param_groups"] for name in group["params"]}
    for optimizer in as_list(optimizers):
        every = [p for g in optimizer.param_groups for p in g["params"]]
        numbers = {id(p): i for i, p in enumerate(every)}
        groups = []
        for group in optimizer.param_groups:
            first = saved[names[id(group["params"][0])]]
            groups.append(
                {
                    **{k: v for k, v in first.items() if k != "params"},
                    "params": [numbers[id(p)] for p in group["params"]],
                }
            )
        state = {}
        for parameter in every:
            own = optim_state_dict["state"].get(names[id(parameter)])
            if own is not None:
                state[numbers[id(parameter)]] = {
                    k: like(v, parameter) if isinstance(v, Tensor) and v.dim() else v for k, v in own.items()
                }
        optimizer.load_state_dict({"state": state, "param_groups": groups})


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
