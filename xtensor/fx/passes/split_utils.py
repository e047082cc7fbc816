"""A graph cut into submodules by the tags of its nodes."""

from __future__ import annotations

from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .split_module import Partition, called, note_uses

__all__ = ["getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """What stands under a dotted path; None where nothing does."""
    for part in name.split("."):
        if not hasattr(obj, part):
            return None
        obj = getattr(obj, part)
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Put an object under a dotted path."""
    *path, name = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, name, value)


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """A module of one submodule per tag, in the order of `tags`, each with the nodes whose `tag` attribute is the name.

    return_fqn_mapping: also give the new paths of submodules by the old ones. return_tuple: submodules of one result give tuples.
    """
    parts = {tag: Partition(tag) for tag in tags}
    home: dict[Node, Partition] = {}
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        if not hasattr(node, "tag"):
            raise AssertionError(f"Node {node} does not have tag attribute")
        home[node] = parts[node.tag]  # pyright: ignore[reportAttributeAccessIssue]
    note_uses(list(gm.graph.nodes), home.get)
    paths: dict[str, str] = {}
    for node in gm.graph.nodes:
        part = home.get(node)
        if part is None:
            continue
        for used in node.all_input_nodes:
            if used not in part.environment:
                if used.op == "get_attr":
                    part.environment[used] = part.graph.node_copy(used)
                    paths[str(used.target)] = f"{part.name}.{used.target}"
                else:
                    made = part.graph.placeholder(used.name, type_expr=used.type)
                    made.meta = dict(used.meta)
                    part.environment[used] = made
        part.environment[node] = part.graph.node_copy(node, part.environment.__getitem__)
        if node.op == "call_module":
            paths[str(node.target)] = f"{part.name}.{node.target}"
    graph, held, known = Graph(), {}, {}
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            known[node] = graph.node_copy(node)
    for tag in tags:
        part = parts[tag]
        result = part.result()
        part.graph.output((result,) if return_tuple and not isinstance(result, tuple) else result)
        held[tag] = GraphModuleCls(gm, part.graph, tag)
        called(graph, part, known, [n for n in part.inputs if n.op != "get_attr"], tag)
    for node in gm.graph.nodes:
        if node.op == "output":
            for used in node.all_input_nodes:
                if used not in known:
                    known[used] = graph.node_copy(used)
            graph.output(map_arg(node.args[0], known.__getitem__), type_expr=node.type)
    attributes = {
        str(n.target): getattr_recursive(gm, str(n.target)) for n in graph.nodes if n.op == "get_attr"
    }
    made = GraphModuleCls({**held, **attributes}, graph)
    return (made, paths) if return_fqn_mapping else made
