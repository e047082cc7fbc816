"""What several passes need: names of targets, and an order in which nodes stand behind what they use."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

from ...nn.modules.module import Module
from ...tensor import Tensor
from ..graph import Graph
from ..graph_module import GraphModule
from ..names import type_repr
from ..node import Node

__all__ = ["get_node_target", "is_node_output_tensor", "legalize_graph", "stable_topological_sort"]


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """What a node calls, as a name: the class of a submodule, a function's path, a method's name."""
    if node.op == "call_module":
        module = submodules[str(node.target)]
        return type_repr(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        return node._pretty_print_target(node.target)
    return str(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node's value is a tensor, by what `ShapeProp` left."""
    kind: Any = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put each node behind those that it uses, and change the order as little as that takes; RuntimeError for a circle."""
    nodes = list(gm.graph.nodes)
    places = {node: at for at, node in enumerate(nodes)}
    waits = {node: len(node.all_input_nodes) for node in nodes}
    ready = [places[node] for node in nodes if not waits[node]]  # a heap: the first in the graph goes first
    graph, values = Graph(tracer_cls=gm.graph._tracer_cls), {}
    graph._codegen = gm.graph._codegen
    while ready:
        node = nodes[heapq.heappop(ready)]
        values[node] = graph.node_copy(node, values.__getitem__)
        for user in node.users:
            waits[user] -= 1
            if not waits[user]:
                heapq.heappush(ready, places[user])
    if len(values) != len(waits):
        raise RuntimeError(f"Input graph has cycles, unable to add {[n for n, w in waits.items() if w]}")
    gm.graph = graph
    return gm


legalize_graph = stable_topological_sort
