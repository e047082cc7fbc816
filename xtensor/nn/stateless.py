"""Modules as functions of their parameters and buffers, and several modules as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..ops.shape.joining import stack
from ..tensor import Tensor
from .modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .modules.module import Module

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


@contextmanager
def swapped(module: Module, tensors: dict[str, Tensor]) -> Iterator[None]:
    """Other tensors in the place of parameters and buffers inside the block."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for path, tensor in tensors.items():
            owner, _, name = path.rpartition(".")
            holder = module.get_submodule(owner)
            where = next((d for d in (holder._parameters, holder._buffers) if name in d), None)
            if where is None:
                raise KeyError(f"{path} is no parameter or buffer of the module")
            held: Any = where
            before.append((held, name, held[name]))
            held[name] = tensor
        yield
    finally:
        for held, name, tensor in reversed(before):
            held[name] = tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The module's result with other parameters and buffers in the place of its own, by their names.

    `tie_weights` gives a tensor that the module holds under several names the same replacement under each.
    """
    dicts = parameter_and_buffer_dicts
    given = dict(dicts) if isinstance(dicts, dict) else {k: v for d in dicts for k, v in d.items()}
    own = dict(module.named_parameters(remove_duplicate=False)) | dict(
        module.named_buffers(remove_duplicate=False)
    )
    if strict and set(given) != set(own):
        raise RuntimeError(
            f"Error(s) in loading state_dict: Missing key(s): {sorted(set(own) - set(given))}, unexpected key(s): "
            f"{sorted(set(given) - set(own))}."
        )
    if tie_weights:
        by_tensor = {id(own[name]): tensor for name, tensor in given.items() if name in own}
        given |= {n: by_tensor[id(t)] for n, t in own.items() if n not in given and id(t) in by_tensor}
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with swapped(module, given):
        return module(*positional, **(kwargs or {}))


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Make every batch norm of a module one without running statistics, in place, as `vmap` needs it; gives the module."""
    for module in root.modules():
        if isinstance(module, (BatchNorm1d, BatchNorm2d, BatchNorm3d)) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one kind, stacked along a new first dimension."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(kind: str) -> dict[str, Tensor]:
        states = [dict(getattr(m, kind)()) for m in models]
        return {name: stack([s[name] for s in states]).detach() for name in states[0]}

    parameters = stacked("named_parameters")
    wanted = {name: p.requires_grad for name, p in models[0].named_parameters()}
    return {n: t.requires_grad_(wanted[n]) for n, t in parameters.items()}, stacked("named_buffers")
