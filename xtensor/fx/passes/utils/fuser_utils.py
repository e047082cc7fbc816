"""Nodes of a graph put into modules of their own."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ..tools_common import legalize_graph

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes: Iterable[Node]) -> list[Node]:
    """The nodes in an order in which each stands behind those that it uses."""
    left = dict.fromkeys(nodes)
    waits = {node: sum(used in left for used in node.all_input_nodes) for node in left}
    ready = [node for node in left if not waits[node]]
    found: list[Node] = []
    while ready:
        node = ready.pop(0)
        found.append(node)
        for user in node.users:
            if user in waits:
                waits[user] -= 1
                if not waits[user]:
                    ready.append(user)
    if len(found) != len(left):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return found


def leads_back(nodes: set[Node], along: Callable[[Node], Iterable[Node]]) -> bool:
    """Whether a way leads from one of the nodes over others to one of them; along: the nodes that one of the others is one with."""
    ahead = [user for node in nodes for user in node.users if user not in nodes]
    met: set[Node] = set()
    while ahead:
        node = ahead.pop()
        if node in nodes:
            return True
        if node not in met:
            whole = along(node)
            met.update(whole)
            ahead += [user for each in whole for user in each.users if user not in met]
    return False


def validate_partition(partition: Iterable[Node]) -> bool:
    """Whether nodes can be one: no way leads from one of them over others to one of them."""
    return not leads_back(set(partition), lambda node: (node,))


def fuse_as_graphmodule(
    gm: GraphModule, nodes: Sequence[Node], module_name: str, *, always_return_tuple: bool = False
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Nodes, each behind those that it uses, as a module; with the nodes that it takes and those of its results that are used outside.

    AssertionError for nodes of another graph, and for those that cannot be one.
    """
    if any(node.graph.owning_module is not gm for node in nodes):
        raise AssertionError(f"nodes are not of the graph of {gm._get_name()}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    graph, values = Graph(), {}
    inside, taken = set(nodes), []

    def value(node: Node) -> Node:
        if node not in values:
            made = graph.placeholder(node.name, type_expr=node.type)
            made.meta = node.meta.copy()
            values[node] = made
            taken.append(node)
        return values[node]

    for node in nodes:
        values[node] = graph.node_copy(node, value)
    given = [node for node in nodes if any(user not in inside for user in node.users)]
    outs = tuple([values[node] for node in given])
    graph.output(outs if len(outs) != 1 or always_return_tuple else outs[0])
    graph.lint()
    return GraphModule(gm, graph, class_name=module_name), tuple(taken), tuple(given)


def insert_subgm(
    gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...], orig_outputs: tuple[Node, ...]
) -> GraphModule:
    """Have a call of a module in the places of the nodes whose results it gives."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    last: Node = next(
        node for node in reversed(gm.graph.nodes) if node.op != "output" and node in set(orig_outputs)
    )
    with gm.graph.inserting_after(last):
        node = gm.graph.call_module(name, orig_inputs)
        result: Any = next(n for n in sub_gm.graph.nodes if n.op == "output").args[0]
        if len(orig_outputs) == 1 and not isinstance(result, tuple):
            orig_outputs[0].replace_all_uses_with(node, propagate_meta=True)
            return gm
    at = node
    node.meta["val"] = tuple([out.meta.get("val") for out in orig_outputs])
    for number, out in enumerate(orig_outputs):
        with gm.graph.inserting_after(at):
            at = gm.graph.call_function(operator.getitem, (node, number))
        out.replace_all_uses_with(at, propagate_meta=True)
    return gm


def erase_nodes(gm: GraphModule, nodes: Iterable[Node]) -> None:
    """Take nodes out of the graph, the last first."""
    for node in reversed(list(nodes)):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: Sequence[Any], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """A module for the nodes of each partition, `fused_0`, `fused_1`, ..., and calls of them in the nodes' places."""
    for number, partition in enumerate(partitions):
        nodes = [node for node in gm.graph.nodes if node in partition]
        made = fuse_as_graphmodule(gm, nodes, f"{prefix}{number}", always_return_tuple=always_return_tuple)
        insert_subgm(gm, *made)
        erase_nodes(gm, nodes)
    legalize_graph(gm)
    gm.graph.lint()
    gm.recompile()
    return gm
