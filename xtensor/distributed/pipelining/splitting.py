"""`pipeline`: a model cut into stages at submodules that are named."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from ...fx import GraphModule, Node, symbolic_trace
from ...fx.passes.split_module import split_module
from ...nn.modules.module import Module
from .stage import PipelineStage

__all__ = ["Pipe", "SplitPoint", "pipeline"]


class SplitPoint(enum.Enum):
    """Where a model is cut: before a submodule, or behind it."""

    BEGINNING = 1
    END = 2


class Pipe:
    """A model in stages; see `pipeline`."""

    def __init__(self, split_gm: GraphModule) -> None:
        self.split_gm = split_gm
        self.stages = [m for name, m in split_gm.named_children() if name.startswith("submod_")]
        self.num_stages = len(self.stages)

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of a stage."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return self.stages[stage_idx]

    def build_stage(self, stage_index: int, device: Any = None, group: Any = None) -> PipelineStage:
        """The stage that this process has."""
        module = self.get_stage_module(stage_index)
        return PipelineStage(
            module if device is None else module.to(device), stage_index, self.num_stages, device, group=group
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.split_gm(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.split_gm)


def pipeline(
    module: Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[Any], Any] | None = None,
) -> Pipe:
    """Cut a model before or behind the submodules that `split_spec` names, into stages that each give all that the next one takes.

    Raises: ValueError where a name is no submodule that the model calls; NotImplementedError where a stage needs a value of another than the one
    before it, or where a policy is given.

    Differs from PyTorch: the model is traced by `fx`, without its arguments, so that what the values decide is refused.

    >>> from xtensor.distributed.pipelining import SplitPoint, pipeline
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> pipeline(model, (xtensor.ones(1, 2),), split_spec={"2": SplitPoint.BEGINNING}).num_stages
    2
    """
    if split_policy is not None:
        raise NotImplementedError(
            "pipeline(split_policy=) is not in xtensor: name the submodules in split_spec="
        )
    points = dict(split_spec or {})
    traced = symbolic_trace(module)
    numbers: dict[Node, int] = {}
    number = 0
    inside = ""
    for node in traced.graph.nodes:
        path = str(node.target) if node.op == "call_module" else path_of(node)
        if inside and not within(path, inside):  # behind a submodule that ends a stage
            number, inside = number + 1, ""
        for name in [n for n in points if within(path, n)]:
            if points.pop(name) is SplitPoint.BEGINNING:
                number += 1
            else:
                inside = name
        numbers[node] = number
    if points:
        raise ValueError(f"the model calls no submodule {', '.join(points)}")
    made = split_module(traced, module, lambda node: numbers[node])
    check_chain(made)
    return Pipe(made)


def path_of(node: Node) -> str:
    """The submodule whose call a node is part of."""
    stack = node.meta.get("nn_module_stack")
    return next(reversed(stack)) if stack else ""


def within(path: str, name: str) -> bool:
    """Whether a path is that of a submodule, or of one in it."""
    return path == name or path.startswith(f"{name}.")


def check_chain(made: GraphModule) -> None:
    """NotImplementedError where a stage takes what the one before it does not give."""
    before: Node | None = None
    for node in made.graph.nodes:
        if node.op != "call_module":
            continue
        for source in node.all_input_nodes:
            origin = source.all_input_nodes[0] if source.op == "call_function" else source
            if before is not None and origin is not before:
                raise NotImplementedError(
                    f"the stage {node.target} takes {origin.name}, which the stage before it does not give: cut the model elsewhere"
                )
        before = node
