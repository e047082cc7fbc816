"""Modules as functions of their parameters and buffers, and several modules as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..ops.shape.joining import stack
from ..tensor import Tensor
from .modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .modules.module import Module
from .utils.stateless import call_with

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The module's result with other parameters and buffers in the place of its own, by their names, in one dict or several.

    `tie_weights` gives a tensor that the module holds under several names the same replacement under each; `strict` refuses
    dicts that do not name exactly the module's own. Buffers that the module replaces are replaced in a single dict.

    >>> net = xtensor.nn.Linear(2, 1)
    >>> xtensor.func.functional_call(net, {"weight": xtensor.ones(1, 2), "bias": xtensor.zeros(1)}, xtensor.ones(2)).tolist()
    [2.0]
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, (list, tuple)):
            raise ValueError(
                "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
                f"{type(given)}"
            )
        if not all(isinstance(each, dict) for each in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        counts = Counter([name for each in given for name in each])
        if len(counts) < counts.total():
            repeated = [name for name, count in counts.items() if count > 1]
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous"
            )
        given = {name: tensor for each in given for name, tensor in each.items()}
    return call_with(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


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
        made = {}
        for name, first in states[0].items():
            own = [state[name] for state in states]
            if any(t.requires_grad != first.requires_grad for t in own):
                raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
            made[name] = stack(own).detach().requires_grad_(first.requires_grad)
        return made

    return stacked("named_parameters"), stacked("named_buffers")
