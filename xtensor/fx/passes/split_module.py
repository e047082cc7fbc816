"""A graph cut into submodules, by a function that says where each node belongs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...nn.modules.module import Module
from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg
from ..proxy import Proxy

__all__ = ["Partition", "split_module"]


class Partition:
    """What goes to one submodule.

    inputs, outputs: nodes from outside that it uses, and nodes of its own that others use, each in the order of the first use.
    dependencies, dependents: names of those that come before and behind it. environment: by node, its copy in `graph`.
    """

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {[n.name for n in self.inputs]},\n "
            f"outputs: {[n.name for n in self.outputs]},\n partitions depended on: {list(self.dependencies)},\n "
            f"partition dependents: {list(self.dependents)}"
        )

    def result(self) -> Any:
        """What the submodule gives: one value, or a tuple."""
        made = tuple([self.environment[node] for node in self.outputs])
        return made[0] if len(made) == 1 else made


def note_uses(nodes: list[Node], part_of: Callable[[Node], Partition | None]) -> None:
    """Let the partitions know what they take from each other and from outside."""
    for user in nodes:
        after = part_of(user)
        for node in user.all_input_nodes:
            before = part_of(node)
            if before is after:
                continue
            if before is not None:
                before.outputs.setdefault(node)
                if after is not None:
                    before.dependents.setdefault(after.name)
            if after is not None:
                after.inputs.setdefault(node)
                if before is not None:
                    after.dependencies.setdefault(before.name)


def called(
    graph: Graph, partition: Partition, known: dict[Node, Node], inputs: list[Node], name: str
) -> None:
    """A call of a partition's submodule in the graph of all, after which its outputs are known there."""
    node = graph.call_module(name, tuple([known[n] for n in inputs]))
    if len(partition.outputs) == 1:
        (only,) = partition.outputs
        known[only] = node
        return
    proxy = Proxy(node)
    for i, output in enumerate(partition.outputs):
        known[output] = proxy[i].node  # pyright: ignore[reportIndexIssue]


def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
    **options: Any,
) -> GraphModule:
    """A module of submodules `submod_0`, ..., each with the nodes for which `split_callback(node)` gives its number.

    Attributes that the graph reads go to the submodules as inputs. qualname_map: filled with the old path by the new one.
    keep_original_order: attributes are read where they are needed, and parts keep their order. partition_affix: put into the
    submodules' names. tuple_return: a submodule of one result gives a tuple, too. Raises RuntimeError where parts need each other.

    >>> from xtensor.fx.passes.split_module import split_module
    >>> traced = xtensor.fx.symbolic_trace(lambda x: (x + 1).relu() * 2)
    >>> parts = split_module(traced, traced, lambda node: int(node.name == "mul"))
    >>> print(parts.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    partitions: dict[str, Partition] = {}
    home: dict[Node, Partition] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = str(split_callback(node))
        part = partitions.setdefault(name, Partition(name))
        part.node_names.append(node.name)
        home[node] = part
    note_uses(list(m.graph.nodes), home.get)
    order = sorted_partitions(partitions, keep_original_order)
    for part in order:
        if partition_affix is not None:
            part.submod_name = f"submod_{partition_affix}_{part.name}"
        for i, node in enumerate(part.inputs):
            name = node.name if keep_original_input_name else f"arg_{i}"
            made = part.graph.placeholder(name, type_expr=node.type)
            made.meta = dict(node.meta)
            part.environment[node] = made
    for node in m.graph.nodes:
        if node in home:
            copied(home[node], node, m, qualname_map, bool(keep_original_node_name))
    graph, attributes, known = Graph(), {}, {}

    def read(node: Node) -> None:
        known[node] = graph.get_attr(str(node.target))
        known[node].meta = dict(node.meta)
        attributes[str(node.target)] = _get_attr(m, str(node.target))

    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = node.args[0] if node.args else ...
            known[node] = graph.placeholder(str(node.target), type_expr=node.type, default_value=default)
            known[node].meta = dict(node.meta)
        elif node.op == "get_attr" and not keep_original_order:
            read(node)
    for part in order:
        for node in part.inputs:
            if node.op == "get_attr" and node not in known:
                read(node)
        if len(part.outputs) == 1 and tuple_return:
            part.graph.output((part.result(),))
        else:
            part.graph.output(part.result())
        attributes[part.submod_name] = GraphModule(part.targets, part.graph)
        called(graph, part, known, list(part.inputs), part.submod_name)
        if len(part.outputs) == 1 and tuple_return:
            (only,) = part.outputs
            known[only] = Proxy(known[only])[0].node  # pyright: ignore[reportIndexIssue]
    for node in m.graph.nodes:
        if node.op == "output":
            for used in node.all_input_nodes:
                if used not in known:
                    read(used)
            graph.output(map_arg(node.args[0], known.__getitem__), type_expr=node.type).meta = dict(node.meta)
    return GraphModule(attributes, graph)


def sorted_partitions(partitions: dict[str, Partition], in_order: bool | None) -> list[Partition]:
    """The partitions, each behind those that it needs; RuntimeError where there is no such order."""
    waits = {name: dict(part.dependencies) for name, part in partitions.items()}
    ready = [name for name, needs in waits.items() if not needs]
    done: list[Partition] = []
    while ready:
        part = partitions[ready.pop(0) if in_order else ready.pop()]
        done.append(part)
        for name in part.dependents:
            waits[name].pop(part.name, None)
            if not waits[name]:
                ready.append(name)
    if len(done) != len(partitions):
        raise RuntimeError("cycle exists between partitions!")
    return done


def copied(
    part: Partition, node: Node, m: Module, qualname_map: dict[str, str] | None, keep_name: bool
) -> None:
    """Put a node into its partition's graph."""
    target: Any = node.target
    if node.op == "call_module":
        value = _get_attr(m, str(node.target))
        target = str(node.target).replace(".", "_")
        part.targets[target] = value
        if qualname_map is not None:
            qualname_map[f"{part.submod_name}.{target}"] = str(node.target)
    args = map_arg(node.args, part.environment.__getitem__)
    kwargs = map_arg(node.kwargs, part.environment.__getitem__)
    made = part.graph.create_node(
        node.op, target, args, kwargs, name=node.name if keep_name else None, type_expr=node.type
    )
    made.meta = dict(node.meta)
    part.environment[node] = made
