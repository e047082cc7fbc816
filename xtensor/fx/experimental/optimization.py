"""Models made faster where they only run forward: normalization folded into convolutions, dropout taken out."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ...nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ...nn.modules.conv import Conv1d, Conv2d, Conv3d
from ...nn.modules.dropout import Dropout
from ...nn.modules.module import Module
from ...nn.utils.fusion import fuse_conv_bn_eval
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node
from ..tracer import Tracer

__all__ = [
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "optimize_for_inference",
    "remove_dropout",
    "replace_node_module",
]


def _parent_name(target: str) -> tuple[str, str]:
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node's first argument and the node call modules of these two classes, one after the other."""
    if not node.args or not isinstance(node.args[0], Node):
        return False
    return all(
        step.op == "call_module" and type(modules.get(str(step.target))) is kind
        for kind, step in zip(pattern, (node.args[0], node), strict=False)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Module) -> None:
    """Put another module where the one stands that a node calls."""
    parent, name = _parent_name(str(node.target))
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """The model with each batch normalization behind a convolution folded into that, for evaluation.

    inplace: change the model itself. no_trace: it is a GraphModule already.
    """
    pairs = ((Conv1d, BatchNorm1d), (Conv2d, BatchNorm2d), (Conv3d, BatchNorm3d))
    if not inplace:
        model = copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules, graph = dict(traced.named_modules()), copy.deepcopy(traced.graph)
    for pair in pairs:
        for node in graph.nodes:
            if not matches_module_pattern(pair, node, modules) or len(node.args[0].users) > 1:
                continue
            norm = modules[str(node.target)]
            if not norm.track_running_stats:
                continue
            replace_node_module(node.args[0], modules, fuse_conv_bn_eval(modules[node.args[0].target], norm))
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(self.submodules[target], Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: Module) -> Module:
    """The model without its dropout modules."""
    return _WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """The nodes as a module of these inputs and outputs."""
    graph, values = Graph(), {}
    for node in inputs:
        values[node] = graph.placeholder(node.name)
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output([values[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


def optimize_for_inference(
    model: Module, pass_config: dict[str, Any] | None = None, tracer: type[Tracer] = Tracer
) -> Module:
    """The model for evaluation: normalization folded into convolutions, dropout taken out.

    pass_config: `conv_bn_fuse` and `remove_dropout`, each whether that is done. Differs from PyTorch: layouts are XLA's, so none is
    changed.
    """
    wanted = {"conv_bn_fuse": True, "remove_dropout": True, **(pass_config or {})}
    if wanted["conv_bn_fuse"]:
        model = fuse(model)
    if wanted["remove_dropout"]:
        model = remove_dropout(model)
    made = tracer()
    graph = made.trace(model)
    return GraphModule(made.root, graph, type(model).__name__)
