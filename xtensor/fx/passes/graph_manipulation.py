"""Sizes in bytes of what a graph holds, and targets replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...tensor import Tensor
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from .shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


class size_bytes(NamedTuple):
    """The bytes of a node's value, and those with its module's parameters and buffers."""

    output_size: int
    total_size: int


def replace_target_nodes_with(
    fx_module: GraphModule,
    old_op: str,
    old_target: Callable[..., Any] | str,
    new_op: str,
    new_target: Callable[..., Any] | str,
) -> None:
    """Have nodes of one opcode and target be of another."""
    graph, values = Graph(), {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args = tuple([values[a] if isinstance(a, Node) else a for a in node.args])
            kwargs = {k: values[a] if isinstance(a, Node) else a for k, a in node.kwargs.items()}
            values[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            values[node] = graph.node_copy(node, values.__getitem__)
    fx_module.graph = graph


def get_tensor_meta(node: Node) -> TensorMetadata:
    """What `ShapeProp` left in a node; RuntimeError where it did not run."""
    found = node.meta.get("tensor_meta")
    if found is None:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return found


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of one node."""
    held = 0
    if node.op == "call_module":
        module = fx_module.get_submodule(str(node.target))
        held = sum(t.numel() * t.element_size() for t in [*module.parameters(), *module.buffers()])
    meta = get_tensor_meta(node)
    made = meta.shape.numel() * meta.dtype.itemsize
    return size_bytes(made, held + made)


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Tensor] | None = None) -> None:
    """Leave in each node, as `size_bytes`, its bytes; the module is run on `args` where they are given."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)  # pyright: ignore[reportAttributeAccessIssue]
