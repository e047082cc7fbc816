"""Graphs compared, and put into modules of their own."""

from __future__ import annotations

from ....nn.modules.module import Module
from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module that holds modules by name."""

    def __init__(self, d: dict[str, Module]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """A module of a graph that was made of another one's nodes, and the paths of its attributes in the old one by the new."""
    paths = {
        f"{comp_name}.{n.target}": str(n.target)
        for n in subgraph.nodes
        if n.op in ("call_module", "get_attr")
    }
    return GraphModule(gm, subgraph, class_name), paths


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs are the same, whatever their nodes are called."""
    found = SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)
    return len(found) > 0
