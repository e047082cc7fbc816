"""parallelize_module: a plan of how the parts of a module are split over a mesh, carried out."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

from .... import checks
from ....nn.modules.module import Module
from ...device_mesh import DeviceMesh
from ..dtensor import device_mesh_of_context
from ..modules import joined_calls, replicate_rest
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Split a module over a mesh of one dimension (or a slice of one): by a style, or by styles of its submodules' names.

    A name may hold `*` and the like in any of its parts.

    Differs from PyTorch: in a single process the parameters that the plan leaves out are copied to all devices, plain tensors
    join them within the module's calls, and calls with plain tensors alone give plain tensors.
    """
    mesh = device_mesh or device_mesh_of_context()
    if mesh.ndim != 1:
        raise ValueError(f"parallelize_module takes a mesh of one dimension, not {mesh}: slice it by a name")
    if parallelize_plan is None:
        checks.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
            "parallelize_module call will do nothing.",
            UserWarning,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan._apply(module, mesh)
    elif isinstance(parallelize_plan, dict):
        for path, style in parallelize_plan.items():
            found = matching(module, path.split(".")) if path else [module]
            if not found:
                checks.warn(
                    f"Parallelize plan key '{path}' could not be resolved: no submodule matching it",
                    UserWarning,
                )
            for child in found:
                style._apply(child, mesh)
    else:
        kind: Any = type(parallelize_plan)
        raise TypeError(
            f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {kind} found!"
        )
    if not mesh.jax_mesh.is_multi_process:
        replicate_rest(module, mesh)
        joined_calls(module)
    return module


def matching(module: Module, parts: list[str]) -> list[Module]:
    """The submodules whose names fit, part by part."""
    if not parts:
        return [module]
    found = [child for name, child in module.named_children() if fnmatch(name, parts[0])]
    return [each for child in found for each in matching(child, parts[1:])]
